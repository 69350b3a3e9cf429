/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for reservations of nodes for maintenance (placement/maintenance.h).
 */
#include "scheduler/api/api_private.h"
#include "scheduler/api/reservations/reservation_request.h"

#include "base/mem.h"
#include "base/names.h"
#include "scheduler/core/placement/maintenance.h"
#include <stdlib.h>

#define IN_THE_WAY_MAX 100 /* jobs that are named */

/* ---- showing ---- */

static json_t *words(const char *list)
{
    json_t *all = json_array();
    char name[CORE_NAME_MAX];
    for (const char *at = list; names_next(&at, name, sizeof(name));)
        json_array_append_new(all, json_text(name));
    return all;
}

/* Nodes that it covers, and jobs that run there. */
static void count_nodes(
    const struct model *m, const struct maintenance_row *r, int64_t *ret_nodes, int64_t *ret_jobs)
{
    *ret_nodes = *ret_jobs = 0;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!core_maintenance_covers(r, &n->row))
            continue;
        ++*ret_nodes;
        *ret_jobs += api_count(&n->attempts);
    }
}

static json_t *reservation_json(const struct model *m, const struct maintenance *r)
{
    const struct maintenance_row *row = &r->row;
    char period[MAINTENANCE_PERIOD_MAX];
    int64_t nodes, jobs, ids[IN_THE_WAY_MAX];
    size_t n = core_maintenance_in_the_way(m, r, ids, IN_THE_WAY_MAX);
    json_t *in_the_way = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(in_the_way, json_string(job_ref(&model_job(m, ids[i])->row).s));
    core_maintenance_period(r, period);
    count_nodes(m, row, &nodes, &jobs);
    return json_pack(
        "{s:I,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:I,s:I,s:o}", "id",
        (json_int_t)row->id, "name", json_text(row->name), "state",
        maintenance_state_names[row->state], "nodes", api_json_opt_text(row->nodes), "pool",
        api_json_opt_text(row->pool), "users", words(row->users), "teams", words(row->teams),
        "reason", api_json_opt_text(row->reason), "by", json_text(row->by), "created_at",
        api_json_time(row->created_at), "from", api_json_time(row->from_at), "until",
        api_json_time(maintenance_until(row)), "for_ms", (json_int_t)row->for_ms, "every",
        row->is_weekly ? json_string("week") : json_null(), "zone", json_text(row->zone), "period",
        json_text(period), "n_nodes", (json_int_t)nodes, "jobs", (json_int_t)jobs, "in_the_way",
        in_the_way);
}

static void reply_reservations(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    json_t *rows = json_array();
    (void)api, (void)viewer, (void)arg;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++)
        if (core_maintenance(m, i))
            json_array_append_new(rows, reservation_json(m, core_maintenance(m, i)));
    api_reply_json(x, 200, json_pack("{s:o}", "reservations", rows));
}

void api_reservations_list(struct request *q)
{
    api_read_model(q, reply_reservations, 0);
}

void api_json_reserve(json_t *node, const struct model *m, const struct node *n)
{
    const struct maintenance *first = NULL;
    char period[MAINTENANCE_PERIOD_MAX], *text = NULL;
    for (uint64_t mask = m && n ? n->maintenance : 0; mask; mask &= mask - 1) {
        const struct maintenance *r = core_maintenance(m, (size_t)__builtin_ctzll(mask));
        if (!first || r->row.from_at.ms < first->row.from_at.ms)
            first = r;
    }
    if (first) {
        core_maintenance_period(first, period);
        text = mem_printf("%s%s%s%s", first->row.state == MAINTENANCE_OPEN ? "now: " : "", period,
            first->row.reason[0] ? ": " : "", first->row.reason);
    }
    json_object_set_new(node, "reservation", first ? json_text(first->row.name) : json_null());
    json_object_set_new(node, "reservation_text", first ? json_text(text) : json_null());
    free(text);
}

/* ---- changing ---- */

struct change {
    struct api *api;
    struct deferred_reply *deferred;
    struct maintenance_row row;
};

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    const struct change *c = ctx;
    struct event ev = {.type = EV_RESERVATION_ADD, .reservation = &c->row};
    return tick_apply(t, &ev, ret_id, e);
}

/* Reads the model, all of which is committed now. */
static void on_added(void *ctx, const struct err *e, int64_t id)
{
    struct change *c = ctx;
    const struct model *m = tick_model(c->api->o.tick);
    struct http_exchange *x = deferred_reply_take(c->deferred);
    const struct maintenance *r = NULL;
    for (size_t i = 0; !e && !r && i < MAINTENANCES_MAX; i++)
        r = core_maintenance(m, i) && core_maintenance(m, i)->row.id == id ? core_maintenance(m, i)
                                                                           : NULL;
    if (x && e)
        http_reply_err(x, e);
    else if (x && !r)
        api_reply_failure(x, ERR_NOT_FOUND, "reservation %lld is over already", (long long)id);
    else if (x)
        api_reply_json(x, 201, reservation_json(m, r));
    free(c);
}

/* The caller may operate all nodes that it covers; of what does not exist, apply says so. */
static bool may_operate(struct request *q, const struct maintenance_row *row)
{
    const struct access_object pool = {.pool = row->pool[0] ? row->pool : NULL};
    if (row->pool[0])
        return api_may(q, RIGHT_OPERATE, &pool, "this pool");
    LIST_FOREACH (model_nodes(tick_model(q->api->o.tick)), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        const struct access_object object = {.pool = n->row.pool};
        if (core_maintenance_covers(row, &n->row) &&
            !api_may(q, RIGHT_OPERATE, &object, "these nodes"))
            return false;
    }
    return true;
}

void api_reservations_add(struct request *q)
{
    struct maintenance_row row = {0};
    struct err e;
    json_t *body = api_body(q, RESERVATION_REQUEST_BYTES_MAX);
    if (!body)
        return;
    int rc =
        reservation_request_parse(body, q->api->o.zones, tick_now(q->api->o.tick).wall, &row, &e);
    json_decref(body);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    STR_COPY(row.by, q->caller.user);
    if (!may_operate(q, &row))
        return;
    struct change *c = mem_alloc(sizeof(*c));
    *c = (struct change){.api = q->api,
        .row = row,
        .deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS)};
    tick_post_work(q->api->o.tick, apply, on_added, c);
}

void api_reservations_remove(struct request *q)
{
    struct event ev = {.type = EV_RESERVATION_REMOVE, .reservation_remove.id = q->id};
    const struct model *m = tick_model(q->api->o.tick);
    STR_COPY(ev.reservation_remove.by, q->caller.user);
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = core_maintenance(m, i);
        if (r && r->row.id == q->id && !may_operate(q, &r->row))
            return;
    }
    tick_post(
        q->api->o.tick, &ev, api_on_done, deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}
