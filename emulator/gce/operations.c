/* SPDX-License-Identifier: Apache-2.0
 *
 * Zone operations. Those of calls are stored; whether they are done is derived from their instance.
 * Those of preemptions ("systemevent-...") are derived from the instances that had a notice, so
 * they exist for as long as the emulator runs: after an instance is deleted at its preemption, only
 * they remain.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "emulator/gce/gce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_MS SECONDS_MS(120)
#define PREEMPTED "compute.instances.preempted"
#define EVENT_PREFIX "systemevent-"

/* ---- State ---- */

struct outcome {
    bool is_done;
    struct wall ended_at;
    const char *error, *text;
};

/* An insert's instance that never ran. */
static void explain_failed_boot(const struct instance *i, struct outcome *o)
{
    if (i->is_reclaimed) {
        o->error = "UNSUPPORTED_OPERATION";
        o->text = "Instance was preempted while it was being created.";
    } else if (str_starts(i->reason_code, "Client.")) {
        o->error = "OPERATION_CANCELED_BY_USER";
        o->text = "Operation was canceled by user.";
    } else {
        o->error = "INTERNAL_ERROR";
        o->text = "Internal error.";
    }
}

static struct outcome outcome_of(const struct gce_operation *op, struct wall now)
{
    struct outcome o = {.ended_at = WALL_NONE};
    const struct instance *i = op->instance;
    if (!i) {
        o.is_done = op->ends_at.ms <= now.ms;
        o.ended_at = op->ends_at;
        o.error = op->error;
        o.text = op->error_text;
    } else if (str_eq(op->type, "insert")) {
        o.is_done = i->state != INSTANCE_PENDING;
        o.ended_at = wall_is_set(i->running_at) ? i->running_at : i->ended_at;
        if (o.is_done && !wall_is_set(i->running_at))
            explain_failed_boot(i, &o);
    } else {
        o.is_done = i->state == INSTANCE_TERMINATED;
        o.ended_at = wall_is_set(i->gone_at) && i->gone_at.ms > op->inserted_at.ms
                         ? i->gone_at
                         : op->inserted_at;
    }
    return o;
}

/* ---- As JSON ---- */

static const struct {
    const char *code;
    int status;
    const char *message;
} statuses[] = {{"QUOTA_EXCEEDED", 403, "FORBIDDEN"}, {"UNSUPPORTED_OPERATION", 400, "BAD REQUEST"},
    {"INTERNAL_ERROR", 500, "INTERNAL SERVER ERROR"}, {"RESOURCE_NOT_FOUND", 404, "NOT FOUND"},
    {"OPERATION_CANCELED_BY_USER", 400, "BAD REQUEST"}};

static void add_error(json_t *o, const struct outcome *outcome)
{
    int status = 503;
    const char *message = "SERVICE UNAVAILABLE";
    for (size_t k = 0; k < sizeof(statuses) / sizeof(statuses[0]); k++)
        if (str_eq(statuses[k].code, outcome->error)) {
            status = statuses[k].status;
            message = statuses[k].message;
        }
    json_t *one = json_object(), *list = json_array(), *error = json_object();
    json_object_set_new(one, "code", json_text(outcome->error));
    json_object_set_new(one, "message", json_text(outcome->text));
    json_array_append_new(list, one);
    json_object_set_new(error, "errors", list);
    json_object_set_new(o, "error", error);
    json_object_set_new(o, "httpErrorStatusCode", json_integer(status));
    json_object_set_new(o, "httpErrorMessage", json_string(message));
}

static void add_links(
    json_t *o, const struct region *r, const char *zone, const char *name, const char *target)
{
    json_object_set_new(o, "name", json_string(name));
    json_object_set_new(o, "zone", gce_zone_url(r, zone));
    json_object_set_new(o, "targetLink", gce_instance_url(r, zone, target));
    json_object_set_new(o, "selfLink",
        json_sprintf(GCE_URL "/projects/%s/zones/%s/operations/%s", r->o->account, zone, name));
}

static void operation_name(const struct gce_operation *op, char out[GCE_NAME_MAX])
{
    snprintf(out, GCE_NAME_MAX, "operation-%lld-%06llx", (long long)op->inserted_at.ms,
        (unsigned long long)op->number);
}

static json_t *operation_json(
    const struct region *r, const struct gce_operation *op, struct wall now)
{
    json_t *o = json_object();
    const struct outcome outcome = outcome_of(op, now);
    char name[GCE_NAME_MAX];
    operation_name(op, name);
    json_object_set_new(o, "kind", json_string("compute#operation"));
    json_object_set_new(
        o, "id", json_sprintf("%lld", 8000000000000000000LL + (long long)op->number));
    add_links(o, r, op->zone, name, op->target);
    if (op->instance)
        json_object_set_new(o, "targetId", json_string(op->instance->id));
    json_object_set_new(o, "operationType", json_string(op->type));
    json_object_set_new(o, "status",
        json_string(outcome.is_done               ? "DONE"
                    : now.ms > op->inserted_at.ms ? "RUNNING"
                                                  : "PENDING"));
    json_object_set_new(o, "progress", json_integer(outcome.is_done ? 100 : 0));
    json_object_set_new(o, "user", json_string(op->user));
    if (op->request_id[0])
        json_object_set_new(o, "clientOperationId", json_string(op->request_id));
    gce_time(o, "insertTime", op->inserted_at);
    if (now.ms > op->inserted_at.ms || outcome.is_done)
        gce_time(o, "startTime", op->inserted_at);
    if (outcome.is_done)
        gce_time(o, "endTime", outcome.ended_at);
    if (outcome.is_done && outcome.error)
        add_error(o, &outcome);
    return o;
}

/* WALL_NONE if it was not preempted. */
static struct wall preempted_at(const struct instance *i)
{
    return !i->is_reclaimed ? WALL_NONE : wall_is_set(i->noticed_at) ? i->noticed_at : i->ended_at;
}

static void event_name(const struct instance *i, char out[GCE_NAME_MAX])
{
    snprintf(out, GCE_NAME_MAX, EVENT_PREFIX "%lld-%06llx", (long long)preempted_at(i).ms,
        (unsigned long long)i->number);
}

static json_t *event_json(const struct region *r, const struct instance *i)
{
    json_t *o = json_object();
    bool is_done = !instance_is_alive(i);
    char name[GCE_NAME_MAX];
    event_name(i, name);
    json_object_set_new(o, "kind", json_string("compute#operation"));
    json_object_set_new(
        o, "id", json_sprintf("%lld", 7000000000000000000LL + (long long)i->number));
    add_links(o, r, i->pool->zone, name, i->reservation->spec.name);
    json_object_set_new(o, "targetId", json_string(i->id));
    json_object_set_new(o, "operationType", json_string(PREEMPTED));
    json_object_set_new(o, "status", json_string(is_done ? "DONE" : "RUNNING"));
    json_object_set_new(o, "statusMessage", json_string("Instance was preempted."));
    json_object_set_new(o, "progress", json_integer(is_done ? 100 : 0));
    json_object_set_new(o, "user", json_string("system"));
    gce_time(o, "insertTime", preempted_at(i));
    gce_time(o, "startTime", preempted_at(i));
    if (is_done)
        gce_time(o, "endTime", i->ended_at);
    return o;
}

/* ---- Start and lookup ---- */

static void forget_half(struct gce *gce)
{
    size_t drop = gce->n_operations / 2;
    gce->n_operations -= drop;
    memmove(gce->operations, gce->operations + drop, gce->n_operations * sizeof(*gce->operations));
}

struct gce_operation *gce_operation_begin(struct gce_call *c, const char *type, const char *name)
{
    struct gce *gce = c->gce;
    if (gce->n_operations == GCE_OPERATIONS_MAX)
        forget_half(gce);
    gce->operations = mem_resize(gce->operations, gce->n_operations + 1, sizeof(*gce->operations));
    struct gce_operation *op = &gce->operations[gce->n_operations++];
    *op = (struct gce_operation){.number = ++gce->last_operation,
        .type = type,
        .inserted_at = c->site->now,
        .ends_at = {c->site->now.ms + c->region->o->boot_delay_ms}};
    STR_COPY(op->zone, c->zone);
    STR_COPY(op->target, name);
    STR_COPY(op->user, c->caller->email);
    return op;
}

struct gce_operation *gce_operation_find_request(struct gce_call *c, const char *request_id)
{
    for (size_t k = c->gce->n_operations; request_id[0] && k-- > 0;)
        if (strcasecmp(c->gce->operations[k].request_id, request_id) == 0)
            return &c->gce->operations[k];
    return NULL;
}

int gce_reply_operation(struct gce_call *c, const struct gce_operation *op)
{
    gce_reply_json(c, operation_json(c->region, op, c->site->now));
    char name[GCE_NAME_MAX];
    operation_name(op, name);
    STR_COPY(c->reply->request_id, name);
    return 0;
}

static const struct gce_operation *find(const struct gce_call *c)
{
    char name[GCE_NAME_MAX];
    for (size_t k = c->gce->n_operations; k-- > 0;) {
        const struct gce_operation *op = &c->gce->operations[k];
        operation_name(op, name);
        if (str_eq(name, c->name) && str_eq(op->zone, c->zone))
            return op;
    }
    return NULL;
}

static const struct instance *find_event(const struct gce_call *c)
{
    char name[GCE_NAME_MAX];
    for (size_t k = c->region->n_instances; str_starts(c->name, EVENT_PREFIX) && k-- > 0;) {
        const struct instance *i = c->region->instances[k];
        event_name(i, name);
        if (wall_is_set(preempted_at(i)) && str_eq(name, c->name) && str_eq(i->pool->zone, c->zone))
            return i;
    }
    return NULL;
}

/* ---- The methods ---- */

static int not_found(struct gce_call *c)
{
    return gce_fail(c, 404, "notFound",
        "The resource 'projects/%s/zones/%s/operations/%.80s' was not found", c->region->o->account,
        c->zone, c->name);
}

/* max_ms: how long the reply may wait until the operation is done. */
static int get(struct gce_call *c, int64_t max_ms)
{
    if (gce_check_zone(c) < 0 || gce_query_end(c) < 0)
        return -1;
    const struct gce_operation *op = find(c);
    const struct instance *event = op ? NULL : find_event(c);
    if (!op && !event)
        return not_found(c);
    struct wall now = c->site->now;
    bool is_done = op ? outcome_of(op, now).is_done : !instance_is_alive(event);
    if (!is_done && max_ms > 0 && !c->request->is_last) {
        int64_t left_ms = op && !op->instance ? op->ends_at.ms - now.ms : max_ms;
        c->reply->wait_ms = left_ms < max_ms ? left_ms : max_ms;
        return 0;
    }
    if (op)
        gce_reply_json(c, operation_json(c->region, op, now));
    else
        gce_reply_json(c, event_json(c->region, event));
    return 0;
}

int gce_operations_get(struct gce_call *c)
{
    return get(c, 0);
}

int gce_operations_wait(struct gce_call *c)
{
    return get(c, WAIT_MAX_MS);
}

static void collect(struct gce_call *c, const char *zone, struct gce_items *items)
{
    char name[GCE_NAME_MAX];
    for (size_t k = 0; k < c->gce->n_operations; k++) {
        const struct gce_operation *op = &c->gce->operations[k];
        if (zone && !str_eq(op->zone, zone))
            continue;
        operation_name(op, name);
        gce_items_add(items, op->zone, name, operation_json(c->region, op, c->site->now));
    }
    for (size_t k = 0; k < c->region->n_instances; k++) {
        const struct instance *i = c->region->instances[k];
        if (!wall_is_set(preempted_at(i)) || (zone && !str_eq(i->pool->zone, zone)))
            continue;
        event_name(i, name);
        gce_items_add(items, i->pool->zone, name, event_json(c->region, i));
    }
}

int gce_operations_list(struct gce_call *c)
{
    struct gce_items items = {0};
    if (gce_check_zone(c) < 0)
        return -1;
    collect(c, c->zone, &items);
    return gce_reply_list(c, &items, "compute#operationList");
}

int gce_operations_aggregated(struct gce_call *c)
{
    struct gce_items items = {0};
    collect(c, NULL, &items);
    return gce_reply_aggregated(c, &items, "compute#operationAggregatedList", "operations");
}
