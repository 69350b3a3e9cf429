/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for the usage of users and teams against their shares, and against their limits.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define CPU_HOUR_US 3.6e9

/* Of one team, or of all teams with jobs. used: in CPU microseconds. */
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
    return json_pack("{s:o,s:o,s:I,s:I,s:f,s:f,s:o,s:o,s:f,s:I,s:I,s:I}", "team",
        json_text(a->row.team), "user", json_text(a->row.user), "team_shares",
        (json_int_t)s->team.shares, "shares", (json_int_t)a->shares, "cpu_hours",
        s->used / CPU_HOUR_US, "team_cpu_hours", s->team.used / CPU_HOUR_US, "part",
        counts && all->used > 0 ? json_real(s->team.used / all->used) : json_null(), "share",
        counts ? json_real((double)s->team.shares / (double)all->shares) : json_null(), "cpus",
        (double)a->mcpu / 1000, "pending", (json_int_t)a->n_pending, "running",
        (json_int_t)(a->n_jobs - a->n_pending), "fair_ms", (json_int_t)a->fair_ms);
}

static void reply_shares(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    (void)viewer;
    struct wall now = tick_now(api->o.tick).wall;
    struct share *list = NULL;
    struct sum all = {0};
    size_t n = 0, n_max = 0;
    (void)arg;
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
    api_read_model(q, reply_shares, 0);
}

/* ---- limits ---- */

#define UUSD_A_USD 1e6
#define MCPU_A_CPU 1e3

static json_t *limit_json(int64_t n, enum limit_kind kind)
{
    if (n == LIMIT_NONE)
        return json_null();
    if (kind == LIMIT_UUSD_H)
        return json_real((double)n / UUSD_A_USD);
    return kind == LIMIT_MCPU ? json_real((double)n / MCPU_A_CPU) : json_integer(n);
}

/* user is NULL for the whole team. */
static json_t *quota_json(const struct team *t, const char *user, const struct allowance *w)
{
    bool has_quota = !user && t->quota_mcpu > 0;
    json_t *row = json_pack("{s:o,s:o,s:o}", "team", json_text(t->name), "user",
        user ? json_text(user) : json_null(), "quota_cpus",
        has_quota ? json_real((double)t->quota_mcpu / MCPU_A_CPU) : json_null());
    for (int k = 0; k < LIMIT_KINDS; k++) {
        enum limit_kind kind = (enum limit_kind)k;
        json_object_set_new(row, limit_names[k] + strlen("max_"), limit_json(w->used[k], kind));
        json_object_set_new(row, limit_names[k], limit_json(w->max[k], kind));
    }
    return row;
}

static int by_team(const void *a, const void *b)
{
    return strcmp((*(const struct team *const *)a)->name, (*(const struct team *const *)b)->name);
}

static int by_user(const void *a, const void *b)
{
    return strcmp((*(const struct account *const *)a)->row.user,
        (*(const struct account *const *)b)->row.user);
}

static void add_team(json_t *rows, const struct team *t)
{
    const struct account **users = NULL;
    size_t n = 0, n_max = 0;
    json_array_append_new(rows, quota_json(t, NULL, &t->allowance));
    LIST_FOREACH (&t->accounts, l) {
        if (n == n_max)
            users = mem_resize(users, n_max = n_max ? 2 * n_max : 16, sizeof(*users));
        users[n++] = LIST_ENTRY(l, struct account, in_team);
    }
    if (n > 1)
        qsort(users, n, sizeof(*users), by_user);
    for (size_t k = 0; k < n; k++)
        json_array_append_new(rows, quota_json(t, users[k]->row.user, &users[k]->allowance));
    free(users);
}

static void reply_quotas(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    (void)viewer;
    const struct team **teams = NULL;
    size_t n = 0, n_max = 0;
    (void)api, (void)arg;
    LIST_FOREACH (model_teams(m), l) {
        if (n == n_max)
            teams = mem_resize(teams, n_max = n_max ? 2 * n_max : 16, sizeof(*teams));
        teams[n++] = LIST_ENTRY(l, struct team, in_all);
    }
    if (n > 1)
        qsort(teams, n, sizeof(*teams), by_team);
    json_t *rows = json_array();
    for (size_t k = 0; k < n; k++)
        add_team(rows, teams[k]);
    free(teams);
    api_reply_json(x, 200, json_pack("{s:o}", "quotas", rows));
}

void api_quotas_list(struct request *q)
{
    api_read_model(q, reply_quotas, 0);
}
