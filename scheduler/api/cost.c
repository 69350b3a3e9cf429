/* SPDX-License-Identifier: Apache-2.0
 *
 * Spending: from the sums by day and month that are kept with the ledger, or from the ledger's rows
 * (by job, and where a period does not begin and end at midnight).
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "db/cost_sums.h"
#include <stdlib.h>
#include <string.h>

#define JOBS_MAX 1000
#define LINES_MAX 100000
#define JOBS_DEFAULT 20

/* The query: its strings outlive the request. */
struct cost_request {
    struct cost_query of;
    struct caller viewer;
    char *by, *user, *team, *pool;
    int64_t limit;
};

struct costs {
    json_t *lines;
    struct err *e;
    int n_keys;
    bool from_sums;
    bool jobs_known;  /* of the lines */
    bool total_known; /* the number of jobs in all */
    struct cost_sum total;
    int64_t done, done_uusd; /* number and cost of lines with a key and a successful job */
};

static json_t *count_or_null(bool is_known, int64_t n)
{
    return is_known ? json_integer(n) : json_null();
}

static json_t *sum_json(const struct costs *c, bool is_known, const struct cost_sum *s)
{
    json_t *o = json_pack("{s:o,s:I,s:I,s:I,s:I,s:I}", "jobs", count_or_null(is_known, s->jobs),
        "uusd", (json_int_t)s->uusd, "on_demand_uusd", (json_int_t)s->on_demand_uusd, "useful_ms",
        (json_int_t)s->useful_ms, "lost_ms", (json_int_t)s->lost_ms, "total_ms",
        (json_int_t)s->total_ms);
    if (!c->from_sums)
        return o;
    json_t *spent = json_object();
    for (int k = 0; k < LEDGER_KINDS; k++)
        json_object_set_new(spent, ledger_kind_names[k], json_integer(s->spent_uusd[k]));
    json_object_set_new(o, "succeeded", count_or_null(is_known, s->succeeded));
    json_object_set_new(o, "spent_uusd", spent);
    return o;
}

static void add_to_total(struct costs *c, const struct cost_sum *s)
{
    struct cost_sum *t = &c->total;
    t->jobs += s->jobs;
    t->succeeded += s->succeeded;
    t->uusd += s->uusd;
    t->on_demand_uusd += s->on_demand_uusd;
    t->useful_ms += s->useful_ms;
    t->lost_ms += s->lost_ms;
    t->total_ms += s->total_ms;
    for (int k = 0; k < LEDGER_KINDS; k++)
        t->spent_uusd[k] += s->spent_uusd[k];
}

/* Of a line that only counts jobs. */
static bool is_without_cost(const struct cost_sum *s)
{
    bool is_zero = s->uusd == 0 && s->on_demand_uusd == 0 && s->total_ms == 0;
    for (int k = 0; k < LEDGER_KINDS; k++)
        is_zero = is_zero && s->spent_uusd[k] == 0;
    return is_zero;
}

static int add_line(struct costs *c, const char *const keys[], const struct cost_sum *s)
{
    add_to_total(c, s);
    if (!c->jobs_known && is_without_cost(s))
        return 0;
    if (json_array_size(c->lines) >= LINES_MAX)
        return err_set(c->e, ERR_INVALID,
            "more than %d lines: choose a shorter period (from, to), one user, or another key",
            LINES_MAX);
    json_t *o = sum_json(c, c->jobs_known, s), *list = json_array();
    struct buf all = {0};
    for (int i = 0; i < c->n_keys; i++) {
        buf_printf(&all, "%s%s", i > 0 ? ", " : "", keys[i]);
        json_array_append_new(list, json_text(keys[i]));
    }
    json_object_set_new(o, "key", json_text(buf_str(&all)));
    json_object_set_new(o, "keys", list);
    json_array_append_new(c->lines, o);
    buf_deinit(&all);
    if (c->n_keys == 1 && keys[0][0] && s->succeeded > 0) {
        c->done++;
        c->done_uusd += s->uusd;
    }
    return 0;
}

static int add_sum(void *ctx, const char *const keys[], const struct cost_sum *s)
{
    return add_line(ctx, keys, s);
}

static int add_stretches(void *ctx, const struct cost_line *l)
{
    const char *const keys[] = {l->key};
    return add_line(ctx, keys,
        &(struct cost_sum){.jobs = l->jobs,
            .uusd = l->uusd,
            .on_demand_uusd = l->on_demand_uusd,
            .useful_ms = l->useful_ms,
            .lost_ms = l->lost_ms,
            .total_ms = l->total_ms});
}

static bool is_midnight(struct wall w)
{
    return !wall_is_set(w) || w.ms % DAY_MS == 0;
}

/* True for a query that the ledger's rows can answer and the sums by day cannot. */
static bool is_by_stretches(const struct cost_query *c)
{
    bool exact = !is_midnight(c->from) || !is_midnight(c->to), some = c->team || c->pool;
    return str_eq(c->by, "job") || (!some && exact &&
                                       (str_eq(c->by, "user") || str_eq(c->by, "pool") ||
                                           str_eq(c->by, "kind") || str_eq(c->by, "day")));
}

static int read_costs(
    struct db_reader *r, const struct cost_query *q, struct costs *c, struct err *e)
{
    if (!is_by_stretches(q)) {
        c->from_sums = true;
        c->n_keys = db_cost_keys(q->by, &c->jobs_known, e);
        c->jobs_known = c->jobs_known && !q->pool;
        c->total_known = !q->pool;
        return c->n_keys < 0 ? c->n_keys : db_read_cost_sums(r, q, add_sum, c, e);
    }
    if (q->team || q->pool)
        return err_set(e, ERR_INVALID,
            "by=job: of all teams and pools; a team's or a pool's are by user, day or others");
    c->n_keys = 1;
    c->jobs_known = !str_eq(q->by, "pool") && !str_eq(q->by, "kind");
    c->total_known = true;
    int rc = db_read_cost(r, q->by, q->user, q->from, q->to, add_stretches, c, e);
    return rc ? rc : db_count_ended_jobs(r, q->user, q->from, q->to, &c->total.jobs, e);
}

static json_t *total_json(const struct costs *c)
{
    json_t *t = sum_json(c, c->total_known, &c->total);
    if (c->from_sums && c->jobs_known && c->n_keys == 1)
        json_object_set_new(t, "done",
            json_pack("{s:I,s:I}", "keys", (json_int_t)c->done, "uusd", (json_int_t)c->done_uusd));
    return t;
}

/* NULL after an error reply. */
static struct cost_request *parse_request(struct request *q, const char *fallback_by)
{
    struct cost_request a = {.viewer = q->caller};
    if (!api_query_time(q, "from", &a.of.from) || !api_query_time(q, "to", &a.of.to) ||
        !api_query_i64(q, "limit", 1, JOBS_MAX, JOBS_DEFAULT, &a.limit))
        return NULL;
    const char *by = http_request_query(q->x, "by");
    a.of.by = a.by = mem_strdup(by ? by : fallback_by);
    a.of.user = a.user = mem_strdup(http_request_query(q->x, "user"));
    a.of.team = a.team = mem_strdup(http_request_query(q->x, "team"));
    a.of.pool = a.pool = mem_strdup(http_request_query(q->x, "pool"));
    return mem_dup(&a, sizeof(a));
}

static void cost_request_free(void *of)
{
    struct cost_request *a = of;
    free(a->by);
    free(a->user);
    free(a->team);
    free(a->pool);
    free(a);
}

static int cost_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    const struct cost_request *a = of;
    struct costs c = {.lines = json_array(), .e = e};
    int rc = read_costs(r, &a->of, &c, e);
    if (rc == 0)
        *ret_reply = json_pack("{s:O,s:o}", "lines", c.lines, "total", total_json(&c));
    json_decref(c.lines);
    return rc;
}

/* Whether a key of the lines is a label. */
static bool has_label_key(const char *by)
{
    char *words = mem_strdup(by), *rest = words;
    bool found = false;
    for (const char *word; (word = strsep(&rest, ",")) != NULL;)
        found = found || str_eq(word, "project") || str_starts(word, "label:");
    free(words);
    return found;
}

/* The values of labels tell what jobs do, so only who may read the jobs gets lines by them. Returns
 * false after an error reply. */
static bool may_read_labels(struct request *q, const struct cost_query *of)
{
    const struct access_object object = {.user = of->user, .team = of->team};
    if (!has_label_key(of->by) || access_may(&q->caller, RIGHT_READ_JOB, &object))
        return true;
    api_reply_failure(q->x, ERR_DENIED,
        "by=%.100s: the labels of other users' jobs are not shown to %s: ask for your own jobs "
        "(user=%s), or for those of a team that shows you its jobs (team=NAME)",
        of->by, q->caller.user, q->caller.user);
    return false;
}

void api_cost(struct request *q)
{
    struct cost_request *a = parse_request(q, "job");
    if (a && !may_read_labels(q, &a->of))
        cost_request_free(a);
    else if (a)
        read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, cost_read, a, cost_request_free);
}

/* ---- jobs ---- */

struct costly_jobs {
    const struct caller *viewer;
    json_t *list;
};

static int add_job(void *ctx, const struct costly_job *j)
{
    const struct costly_jobs *c = ctx;
    const struct access_object object = {.user = j->user, .team = j->team, .job = j->id};
    bool is_hidden = !access_may(c->viewer, RIGHT_READ_JOB, &object);
    json_array_append_new(
        c->list, json_pack("{s:I,s:s,s:o,s:o,s:o,s:s,s:I,s:I,s:I,s:I,s:o}", "id", (json_int_t)j->id,
                     "ref", j->ref.s, "name", json_text(is_hidden ? API_HIDDEN : j->name), "user",
                     json_text(j->user), "team", json_text(j->team), "end", j->end, "cost_uusd",
                     (json_int_t)j->uusd, "on_demand_uusd", (json_int_t)j->on_demand_uusd,
                     "lost_ms", (json_int_t)j->lost_ms, "reclaims", (json_int_t)j->reclaims,
                     "ended_at", api_json_time(j->ended_at)));
    return 0;
}

static int jobs_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    const struct cost_request *a = of;
    json_t *jobs = json_array();
    int rc = db_read_costliest_jobs(
        r, &a->of, (int32_t)a->limit, add_job, &(struct costly_jobs){&a->viewer, jobs}, e);
    if (rc == 0)
        *ret_reply = json_pack("{s:O}", "jobs", jobs);
    json_decref(jobs);
    return rc;
}

void api_cost_jobs(struct request *q)
{
    struct cost_request *a = parse_request(q, NULL);
    if (a)
        read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, jobs_read, a, cost_request_free);
}
