/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching:
 *
 *   insert --- operation --> poll it --- DONE, good ---> read the instance --> finish
 *      |            ^           |  \--- DONE, refused, replay of a known failure --> insert
 *      |            +-- pause --+  \--- DONE, refused ------------------------> finish
 *      +--- the name exists already ------------------> read the instance, is it ours? --> finish
 *
 * Invariants:
 *   1. Request ids are derived from the idempotency token, and the name is the token: no repeat
 *      makes a second machine.
 *   2. Once a launch has been accepted, only its operation can report that it failed: an error in
 *      polling is not a refusal.
 */
#include "cloud/gcp/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define LAUNCH_POLL_FIRST_MS 500
#define LAUNCH_POLL_CAP_MS 4000
/* then the caller repeats the launch, and finds the operation again */
#define LAUNCH_POLL_TOTAL_MS SECONDS_MS(45)
#define REPLAYS_MAX 4

static const struct stage insert, poll_operation, read_instance, read_known;

static void path_insert(struct gcp_call *c, struct buf *out)
{
    gce_path_insert(c->zone, c->request_id, out);
}

static void path_launched(struct gcp_call *c, struct buf *out)
{
    gce_path_instance(c->zone, c->token, out);
}

static bool is_passing(enum err_kind k)
{
    return k == ERR_UNAVAILABLE || k == ERR_THROTTLED || k == ERR_TIMEOUT;
}

/* For a while, the same request id returns the same operation, even one that failed for a temporary
 * reason. Then the next id in the chain is used. It is derived from the operation, so that every
 * repeat takes the same path. */
static void on_failed(struct gcp_call *c)
{
    /* a resource that the instance needs is missing, not the instance */
    if (c->operation.failed.kind == ERR_NOT_FOUND)
        c->operation.failed.kind = ERR_CONFIG;
    if (c->operation.failed.kind == ERR_CONFLICT) {
        gcp_call_continue(c, &read_known);
    } else if (c->is_replay && is_passing(c->operation.failed.kind) && c->replays++ < REPLAYS_MAX) {
        char *name = mem_printf("%s/%s", c->token, c->operation.name);
        gce_request_id(name, c->request_id);
        free(name);
        gcp_call_continue(c, &insert);
    } else {
        gcp_call_finish(c, &c->operation.failed);
    }
}

static void read_operation(struct gcp_call *c, const char *body, size_t n, bool is_first)
{
    struct err e;
    if (gce_parse_operation(body, n, &c->operation, &e) != 0) {
        gcp_call_finish(c, &e);
        return;
    }
    c->is_taken = true;
    c->is_replay = is_first && c->operation.done;
    if (!c->operation.done)
        gcp_call_wait(c, &poll_operation);
    else if (c->operation.failed.kind != ERR_NONE)
        on_failed(c);
    else
        gcp_call_continue(c, &read_instance);
}

static void on_inserted(struct gcp_call *c, const char *body, size_t n)
{
    read_operation(c, body, n, true);
}

static void on_operation(struct gcp_call *c, const char *body, size_t n)
{
    read_operation(c, body, n, false);
}

static void on_insert_refused(struct gcp_call *c, const struct err *e)
{
    struct err wrong = *e;
    if (e->kind == ERR_CONFLICT) {
        c->is_taken = true; /* by an earlier call */
        gcp_call_continue(c, &read_known);
        return;
    }
    /* a resource that the instance needs is missing, not the instance */
    if (e->kind == ERR_NOT_FOUND)
        wrong.kind = ERR_CONFIG;
    gcp_call_finish(c, &wrong);
}

/* The operation created it: if it is missing now, it has been preempted or deleted since. */
static void on_instance_missing(struct gcp_call *c, const struct err *e)
{
    struct cloud_instance *i = &c->base.instance;
    if (e->kind != ERR_NOT_FOUND) {
        gcp_call_fail_unknown(c, e);
        return;
    }
    *i = (struct cloud_instance){
        .state = CLOUD_GONE, .launched_at = WALL_NONE, .ended_at = WALL_NONE, .market = c->market};
    /* fits: checked by gce_build_insert */
    char *id = mem_printf("%s/%s", c->zone, c->token);
    STR_COPY(i->id, id);
    free(id);
    STR_COPY(i->token, c->token);
    STR_COPY(i->cluster, c->cluster);
    STR_COPY(i->zone, c->zone);
    STR_COPY(i->type, c->type);
    STR_COPY(i->reason, "it was gone when its launch ended");
    gcp_call_finish(c, NULL);
}

static void on_instance(struct gcp_call *c, const char *body, size_t n)
{
    struct cloud_instance *i = &c->base.instance;
    struct err e;
    if (gce_parse_instance(body, n, i, &e) != 0) {
        gcp_call_finish(c, &e);
    } else if (!str_eq(i->token, c->token) || !str_eq(i->cluster, c->cluster) ||
               !str_eq(i->type, c->type) || i->market != c->market) {
        err_set(&e, ERR_CONFLICT, "an instance %s with other properties exists already", i->id);
        gcp_call_finish(c, &e);
    } else {
        gcp_call_finish(c, NULL);
    }
}

static const struct stage insert = {"POST", path_insert, on_inserted, on_insert_refused};
static const struct stage poll_operation = {
    "GET", gcp_path_operation, on_operation, gcp_call_fail_unknown};
static const struct stage read_instance = {"GET", path_launched, on_instance, on_instance_missing};
/* An instance of this name exists. If it vanishes meanwhile, the next try creates it again. */
static const struct stage read_known = {"GET", path_launched, on_instance, gcp_call_fail_unknown};

void gcp_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "instances.insert", gcp_call_step, gcp_call_on_reply, gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, l->region, &insert);
    if (c->base.refused.kind == ERR_NONE &&
        gce_build_insert(l, &c->d->machine, &c->body, &c->base.refused) == 0) {
        STR_COPY(c->token, l->token);
        STR_COPY(c->zone, l->zone);
        STR_COPY(c->type, l->type);
        STR_COPY(c->cluster, l->cluster);
        c->market = l->market;
        gcp_call_start_polling(c, LAUNCH_POLL_FIRST_MS, LAUNCH_POLL_CAP_MS, LAUNCH_POLL_TOTAL_MS);
        gce_request_id(l->token, c->request_id);
        gcp_remember_zone(c->d, c->zone);
    }
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}
