/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembered run times, and how many of them suffice.
 */
#include "scheduler/core/forecast/runtimes.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/shares.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

#define KEY_MAX (2 * CORE_NAME_MAX + 2)
/* Ends after which the history of a name is used; also of a user, and of all together. */
#define NAME_ENOUGH 3
#define USER_ENOUGH 5
#define ALL_ENOUGH 8
#define TRIES 4
#define OVERDUE_MS 30000 /* a job at its time limit is stopped within this time */
/* A job without a limit and without data is treated as if it had run at least this long. */
#define FIRST_MS 600000

struct named {
    struct runtimes ends;
    char key[KEY_MAX];
    struct link by_use;
};

static void runtimes_add(struct runtimes *r, int64_t used_ms, int64_t asked_ms)
{
    r->of[r->next].used_ms = used_ms > 0 ? used_ms : 0;
    r->of[r->next].asked_ms = asked_ms;
    r->next = (r->next + 1) % RUNTIMES_KEPT;
    r->n += r->n < RUNTIMES_KEPT;
}

/* The run time of that job, scaled to this limit. */
static int64_t scaled_runtime_ms(const struct runtimes *r, int32_t k, int64_t limit_ms)
{
    int64_t used = r->of[k].used_ms, asked = r->of[k].asked_ms;
    if (limit_ms == 0)
        return used;
    if (asked == 0 || used >= asked)
        return asked == 0 && used < limit_ms ? used : limit_ms;
    return (int64_t)((double)limit_ms * ((double)used / (double)asked));
}

/* Without data, at quantile u: uniform over the rest of the limit. Without a limit P(T > t | T >
 * elapsed) = elapsed / t, as for processes (Harchol-Balter and Downey, "Exploiting Process Lifetime
 * Distributions for Dynamic Load Balancing", 1997), up to RUNTIMES_MAX_MS. */
static int64_t draw_without_history(int64_t limit_ms, int64_t elapsed_ms, double u)
{
    int64_t from = elapsed_ms > FIRST_MS ? elapsed_ms : FIRST_MS;
    if (limit_ms > elapsed_ms)
        return elapsed_ms + 1 + (int64_t)(u * (double)(limit_ms - elapsed_ms - 1));
    if (limit_ms > 0)
        return elapsed_ms + OVERDUE_MS;
    int64_t ms = u < 0.99 ? (int64_t)((double)from / (1 - u)) : 100 * from;
    if (ms > RUNTIMES_MAX_MS)
        ms = RUNTIMES_MAX_MS;
    return ms > elapsed_ms ? ms : elapsed_ms + FIRST_MS;
}

static bool is_longer(const struct runtimes *r, int32_t k, int64_t limit_ms, int64_t elapsed_ms)
{
    int64_t used = r->of[k].used_ms, asked = r->of[k].asked_ms;
    if (limit_ms == 0 || asked == 0)
        return scaled_runtime_ms(r, k, limit_ms) > elapsed_ms;
    return limit_ms > elapsed_ms &&
           (used >= asked || (double)used * (double)limit_ms > (double)elapsed_ms * (double)asked);
}

int64_t runtimes_draw(
    const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms, uint64_t random)
{
    int32_t longer[RUNTIMES_KEPT], n = 0;
    uint64_t from = random;
    /* usually sufficient: as likely as drawing one from all that ran longer */
    for (int k = 0; r && r->n > 0 && k < TRIES; k++, from >>= 8) {
        int32_t one = (int32_t)((from & 0xff) % (uint64_t)r->n);
        if (is_longer(r, one, limit_ms, elapsed_ms))
            return scaled_runtime_ms(r, one, limit_ms) > elapsed_ms
                       ? scaled_runtime_ms(r, one, limit_ms)
                       : elapsed_ms + 1;
    }
    for (int32_t k = 0; r && k < r->n; k++)
        if (is_longer(r, k, limit_ms, elapsed_ms))
            longer[n++] = k;
    if (n > 0) {
        int64_t ms = scaled_runtime_ms(r, longer[(from & 0xff) % (uint64_t)n], limit_ms);
        return ms > elapsed_ms ? ms : elapsed_ms + 1;
    }
    return draw_without_history(limit_ms, elapsed_ms, (double)(random >> 11) * 0x1p-53);
}

int64_t runtimes_mean(const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms)
{
    double sum = 0;
    int n = 0;
    for (int32_t k = 0; r && k < r->n; k++)
        if (is_longer(r, k, limit_ms, elapsed_ms)) {
            sum += (double)scaled_runtime_ms(r, k, limit_ms);
            n++;
        }
    int64_t ms = n > 0 ? (int64_t)(sum / n) : draw_without_history(limit_ms, elapsed_ms, 0.5);
    return ms > elapsed_ms ? ms : elapsed_ms + 1;
}

void runtimes_range(
    const struct runtimes *r, int64_t limit_ms, int64_t *ret_least_ms, int64_t *ret_most_ms)
{
    int64_t least = INT64_MAX, most = limit_ms;
    for (int32_t k = 0; r && k < r->n; k++) {
        int64_t ms = scaled_runtime_ms(r, k, limit_ms);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    *ret_least_ms = least == INT64_MAX ? 0 : least;
    *ret_most_ms = most;
}

int64_t runtimes_median(const struct runtimes *r)
{
    int64_t used[RUNTIMES_KEPT];
    int32_t n = 0;
    for (; r && n < r->n; n++) {
        int32_t k = n;
        for (; k > 0 && used[k - 1] > r->of[n].used_ms; k--)
            used[k] = used[k - 1];
        used[k] = r->of[n].used_ms;
    }
    return n > 0 ? used[(n - 1) / 2] : 0;
}

/* ---- by user and name ---- */

static void key_format(const char *user, const char *name, char *out)
{
    text_format(out, KEY_MAX, "%s\n%s", user, name);
}

static void key_of(const struct job_row *r, char *out)
{
    key_format(r->user, r->spec.name, out);
}

static struct runtimes *of_name(struct model *m, const struct job_row *r)
{
    char key[KEY_MAX];
    key_of(r, key);
    struct named *n = smap_get(&m->forecast.named, key);
    if (!n) {
        if (smap_size(&m->forecast.named) >= RUNTIMES_NAMES_MAX) {
            struct named *oldest =
                LIST_ENTRY(list_first(&m->forecast.by_use), struct named, by_use);
            smap_remove(&m->forecast.named, oldest->key);
            link_remove(&oldest->by_use);
            free(oldest);
        }
        n = mem_alloc(sizeof *n);
        memcpy(n->key, key, sizeof key);
        smap_put(&m->forecast.named, key, n);
    }
    link_remove(&n->by_use);
    list_push_back(&m->forecast.by_use, &n->by_use);
    return &n->ends;
}

static bool end_shows_runtime(enum end_kind end)
{
    return end == END_SUCCEEDED || end == END_FAILED || end == END_TIMEOUT ||
           end == END_CANCELLED || end == END_CHECKPOINTED;
}

void model_load_runtime(struct model *m, const struct job_row *r, int64_t used_ms)
{
    struct account *a = account_find(m, r->spec.team, r->user);
    if (!end_shows_runtime(r->end) || used_ms < 0)
        return;
    runtimes_add(of_name(m, r), used_ms, r->spec.time_limit_ms);
    if (a)
        runtimes_add(&a->ends, used_ms, r->spec.time_limit_ms);
    runtimes_add(&m->forecast.all, used_ms, r->spec.time_limit_ms);
}

void runtimes_note(struct model *m, const struct job *j, enum end_kind end, int64_t used_ms)
{
    struct job_row r = {.end = end, .spec.time_limit_ms = j->row.spec.time_limit_ms};
    memcpy(r.user, j->row.user, sizeof r.user);
    memcpy(r.spec.team, j->row.spec.team, sizeof r.spec.team);
    memcpy(r.spec.name, j->row.spec.name, sizeof r.spec.name);
    model_load_runtime(m, &r, used_ms);
}

const struct runtimes *runtimes_of_account(const struct model *m, const struct account *a)
{
    if (a && a->ends.n >= USER_ENOUGH)
        return &a->ends;
    return m->forecast.all.n >= ALL_ENOUGH ? &m->forecast.all : NULL;
}

const struct runtimes *runtimes_of(const struct model *m, const struct job *j)
{
    char key[KEY_MAX];
    key_of(&j->row, key);
    const struct named *n = smap_get(&m->forecast.named, key);
    return n && n->ends.n >= NAME_ENOUGH ? &n->ends : runtimes_of_account(m, j->account);
}

const struct runtimes *runtimes_of_name(const struct model *m, const char *user, const char *name)
{
    char key[KEY_MAX];
    key_format(user, name, key);
    const struct named *n = smap_get(&m->forecast.named, key);
    return n ? &n->ends : NULL;
}

void runtimes_destroy_all(struct model *m)
{
    const char *key;
    void *n;
    for (size_t pos = 0; (n = smap_next(&m->forecast.named, &pos, &key)) != NULL;)
        free(n);
    smap_deinit(&m->forecast.named);
}
