/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's route for what users and teams have used of their shares.
 */
#include "scheduler/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define CPU_HOUR_US 3.6e9

/* A team, or all that have jobs. */
struct sum {
    double used;
    int64_t shares, jobs;
};

struct share {
    const struct account *account;
    struct sum team;
    double used;
};

static struct sum sum_of(const struct model *m, const struct team *t, struct wall now)
{
    struct sum s = {.shares = t->shares};
    LIST_FOREACH (&t->accounts, l) {
        const struct account *a = LIST_ENTRY(l, struct account, in_team);
        s.used += (double)account_used(m, a, now);
        s.jobs += a->n_jobs;
    }
    return s;
}

static int by_name(const void *a, const void *b)
{
    const struct account_row *x = &((const struct share *)a)->account->row;
    const struct account_row *y = &((const struct share *)b)->account->row;
    int c = strcmp(x->team, y->team);
    return c ? c : strcmp(x->user, y->user);
}

static json_t *share_json(const struct share *s, const struct sum *all)
{
    const struct account *a = s->account;
    bool counts = s->team.jobs > 0;
    return json_pack("{s:o,s:o,s:I,s:I,s:f,s:f,s:o,s:o,s:f,s:I,s:I,s:I}", "team", json_text(a->row.team), "user",
        json_text(a->row.user), "team_shares", (json_int_t)s->team.shares, "shares", (json_int_t)a->shares, "cpu_hours",
        s->used / CPU_HOUR_US, "team_cpu_hours", s->team.used / CPU_HOUR_US, "part",
        counts && all->used > 0 ? json_real(s->team.used / all->used) : json_null(), "share",
        counts ? json_real((double)s->team.shares / (double)all->shares) : json_null(), "cpus", (double)a->mcpu / 1000,
        "pending", (json_int_t)a->n_pending, "running", (json_int_t)(a->n_jobs - a->n_pending), "fair_ms",
        (json_int_t)a->fair_ms);
}

static void tell_shares(const struct api *api, struct http_exchange *x, const struct model *m, int64_t arg)
{
    struct wall now = tick_now(api->o.tick).wall;
    struct share *list = NULL;
    struct sum all = {0};
    struct err e;
    size_t n = 0, n_max = 0;
    (void)arg;
    if (!m) {
        err_set(&e, ERR_NO_SPACE, "the disk that holds belayd's state is full");
        http_reply_err(x, &e);
        return;
    }
    LIST_FOREACH (model_teams(m), lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        const struct sum s = sum_of(m, t, now);
        all.used += s.jobs > 0 ? s.used : 0;
        all.shares += s.jobs > 0 ? s.shares : 0;
        LIST_FOREACH (&t->accounts, la) {
            const struct account *a = LIST_ENTRY(la, struct account, in_team);
            if (n == n_max)
                list = mem_resize(list, n_max = n_max ? 2 * n_max : 16, sizeof(*list));
            list[n++] = (struct share){a, s, (double)account_used(m, a, now)};
        }
    }
    if (n > 1)
        qsort(list, n, sizeof(*list), by_name);
    json_t *rows = json_array();
    for (size_t k = 0; k < n; k++)
        json_array_append_new(rows, share_json(&list[k], &all));
    free(list);
    api_reply_json(x, 200, json_pack("{s:o}", "shares", rows));
}

void api_shares_list(struct request *q)
{
    api_look(q, tell_shares, 0);
}
