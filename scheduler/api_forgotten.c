/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody has touched for a time, and what it costs a day: GET /api/v1/forgotten. Checkpoints of ended jobs that stay, jobs that are
 * held, nodes without jobs. A store's bytes are priced by the configuration; those that are pinned belayd does not know of.
 */
#include "scheduler/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define ITEMS_MAX 500 /* of each kind */
#define DAYS_A_MONTH 30.4375
#define DAY_MS INT64_C(86400000)

struct asking {
    struct db_reader *r;
    int64_t for_ms, store_uusd_gib_month;
    struct wall before;
    char user[CORE_NAME_MAX]; /* "": all */
    json_t *items;
    int64_t n;        /* of this kind */
    bool more;
    struct err *e;
    int rc;
};

static int64_t bytes_uusd_day(const struct asking *x, int64_t bytes)
{
    double gib = (double)bytes / (double)(INT64_C(1) << 30);
    return (int64_t)(gib * (double)x->store_uusd_gib_month / DAYS_A_MONTH + 0.5);
}

static void add(struct asking *x, const char *code, int64_t job, int64_t node, const char *name, const char *user, struct wall since, int64_t bytes,
    int64_t uusd_day, const char *remedy)
{
    json_array_append_new(x->items, json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:s}", "code", code, "job", api_json_opt(job, CORE_ID_NONE), "node",
                                        api_json_opt(node, CORE_ID_NONE), "name", json_text(name), "user", user ? json_text(user) : json_null(), "since",
                                        api_json_time(since), "bytes", (json_int_t)bytes, "uusd_per_day", (json_int_t)uusd_day, "remedy", remedy));
}

static bool is_full(struct asking *x)
{
    x->more = x->more || x->n == ITEMS_MAX;
    return x->n++ >= ITEMS_MAX;
}

/* ---- checkpoints that stay ---- */

static int add_kept(void *ctx, const struct kept_row *k)
{
    struct asking *x = ctx;
    if (is_full(x))
        return 1;
    add(x, "kept-checkpoints", k->job, CORE_ID_NONE, k->name, k->user, k->ended_at, k->bytes, bytes_uusd_day(x, k->bytes),
        "belay checkpoint delete JOB@ATTEMPT.SEQUENCE removes one; --checkpoints-after auto or delete has it done when a job succeeds");
    return 0;
}

/* ---- jobs that are held ---- */

static int last_of(void *ctx, const struct history_row *row)
{
    struct history_row *last = ctx;
    *last = *row;
    return 0;
}

/* When something happened to it last. */
static int touched_at(struct asking *x, const struct job_row *r, struct wall *ret_at)
{
    struct history_row last = {.at = r->submitted_at};
    int64_t before;
    do {
        before = last.id;
        x->rc = db_read_history(x->r, r->id, last.id, 1000, last_of, &last, x->e);
    } while (x->rc == 0 && last.id != before);
    *ret_at = last.at;
    return x->rc;
}

static int add_held(void *ctx, const struct job_row *r)
{
    struct asking *x = ctx;
    struct wall at;
    int64_t bytes = r->last_good.attempt > 0 ? r->ckpt_bytes : 0;
    if (r->hold == HOLD_NONE || r->submitted_at.ms >= x->before.ms)
        return 0;
    if (touched_at(x, r, &at) != 0)
        return x->rc;
    if (at.ms >= x->before.ms)
        return 0;
    if (is_full(x))
        return 1;
    add(x, "held-job", r->id, CORE_ID_NONE, r->name, r->user, at, bytes, bytes_uusd_day(x, bytes), "belay release JOB lets it go on, belay cancel JOB ends it");
    return 0;
}

static void look_at_jobs(struct asking *x)
{
    struct job_filter f = {.states = 1u << JOB_PENDING, .sort = JOBS_OLDEST, .limit = 1000};
    if (x->user[0])
        f.users = (struct job_words){.words = {x->user}, .n = 1};
    int64_t next = 0;
    x->n = 0;
    x->rc = db_read_jobs(x->r, &f, add_held, x, &next, x->e);
    x->more = x->more || next != 0;
}

/* ---- machines ---- */

static void look_at_node(struct asking *x, const struct node *n, struct stamp now)
{
    int64_t ms = mono_is_set(n->idle_since) ? now.mono.ms - n->idle_since.ms : 0;
    struct wall since = {now.wall.ms - ms};
    if (n->row.state == NODE_GONE || !list_is_empty(&n->attempts) || since.ms >= x->before.ms || is_full(x))
        return;
    add(x, "idle-node", CORE_ID_NONE, n->row.id, n->row.name, NULL, since, 0, 24 * n->row.price_uusd_h,
        n->instance ? "belay nodes delete NODE ends its instance" : "give it back, or let others have it");
}

/* ---- all of it ---- */

static int read_aside(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct asking *x = of;
    x->r = r;
    x->e = e;
    x->n = 0;
    x->rc = db_read_kept(r, x->before, x->user[0] ? x->user : NULL, ITEMS_MAX + 1, add_kept, x, e);
    if (x->rc == 0)
        look_at_jobs(x);
    if (x->rc == 0)
        *ret_reply = json_pack("{s:o,s:I,s:b}", "items", api_most_first(json_incref(x->items), "uusd_per_day"), "for_ms", (json_int_t)x->for_ms, "more",
            (int)x->more);
    return x->rc;
}

static void drop(void *of)
{
    struct asking *x = of;
    json_decref(x->items);
    free(x);
}

void api_forgotten(struct request *q)
{
    struct stamp now = tick_now(q->api->o.tick);
    const char *user = http_request_query(q->x, "user");
    const struct config *c = q->api->o.config;
    int64_t for_ms;
    if (!api_query_i64(q, "for_ms", 0, 36500 * DAY_MS, c->telemetry.forgotten_ms, &for_ms))
        return;
    struct asking *x = mem_alloc(sizeof(*x));
    *x = (struct asking){
        .for_ms = for_ms, .store_uusd_gib_month = c->store_uusd_gib_month, .before = {now.wall.ms - for_ms}, .items = json_array()};
    STR_COPY(x->user, user ? user : "");
    if (!user)
        LIST_FOREACH (model_nodes(tick_model(q->api->o.tick)), l)
            look_at_node(x, LIST_ENTRY(l, struct node, in_all), now);
    api_aside(q->api, q->x, API_ASIDE_WAIT_MS, read_aside, x, drop);
}
