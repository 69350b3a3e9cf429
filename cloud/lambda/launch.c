/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching:
 *
 *   GET /instances --- carries the token ------------------------> that one
 *      | not there                \--- may still appear ----------> UNAVAILABLE
 *      v
 *   GET /instance-types --- region has none of the type ---------> NO_CAPACITY
 *      |
 *      v
 *   POST /instance-operations/launch ----------------------------> new
 *
 * Invariant: while a launch under a token is in progress, and for a while after one that ended
 * without a definite answer, no other is sent under it: the first may have taken effect without
 * being listed yet.
 */
#include "cloud/lambda/launch.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static void finish_in_doubt(struct lambda_call *c)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE,
        "an earlier launch under the same token may still take effect: it is looked up again");
    cloud_call_finish(&c->base, &e);
}

static void step_launch(struct cloud_call *base)
{
    static const char *const methods[] = {"GET", "GET", "POST"};
    static const char *const paths[] = {
        "/instances", "/instance-types", "/instance-operations/launch"};
    struct lambda_call *c = (struct lambda_call *)base;
    if (c->stage == STAGE_ACT && lambda_is_in_doubt(c->d, c->token)) {
        finish_in_doubt(c);
    } else if (lambda_call_is_turn(c, c->stage == STAGE_ACT)) {
        if (c->stage == STAGE_FIND)
            c->is_early = lambda_is_in_doubt(c->d, c->token);
        if (c->stage == STAGE_ACT)
            lambda_begin_doubt(c);
        lambda_call_send(
            c, methods[c->stage], paths[c->stage], c->stage == STAGE_ACT ? &c->request : NULL);
    }
}

/* The instance with the call's token: live ones before ended ones, then the lowest id, so that
 * every search finds the same. */
static bool take_listed(struct lambda_call *c)
{
    const struct cloud_instance *best = NULL;
    for (size_t i = 0; i < c->base.instances.n; i++) {
        const struct cloud_instance *x = &c->base.instances.list[i];
        if (!str_eq(x->token, c->token) || !str_eq(x->cluster, c->cluster))
            continue;
        bool is_better = !best || (x->state < CLOUD_STOPPING) > (best->state < CLOUD_STOPPING) ||
                         ((x->state < CLOUD_STOPPING) == (best->state < CLOUD_STOPPING) &&
                             strcmp(x->id, best->id) < 0);
        best = is_better ? x : best;
    }
    if (best)
        c->base.instance = *best;
    return best != NULL;
}

static int find_launched(
    struct lambda_call *c, const struct buf *body, bool *ret_found, struct err *e)
{
    int rc =
        lambda_parse_instances(buf_str(body), body->len, c->base.region, &c->base.instances, e);
    *ret_found = rc == 0 && take_listed(c);
    return rc;
}

/* Skips a launch of a type without capacity in the region, because a refused launch uses up a turn
 * too. */
static int check_type(struct lambda_call *c, const struct buf *body, struct err *e)
{
    struct lambda_types types = {0};
    const struct lambda_type *found = NULL;
    int rc = lambda_parse_types(buf_str(body), body->len, c->base.region, &types, e);
    for (size_t i = 0; rc == 0 && i < types.n; i++)
        if (str_eq(types.list[i].name, c->type))
            found = &types.list[i];
    if (rc == 0 && !found)
        rc = err_set(e, ERR_CONFIG, "Lambda has no instance type %s (for this account)", c->type);
    else if (rc == 0 && !found->has_capacity)
        rc =
            err_set(e, ERR_NO_CAPACITY, "Lambda reports no capacity of %s in this region", c->type);
    free(types.list);
    return rc;
}

static int take_launched(struct lambda_call *c, const struct buf *body, struct err *e)
{
    struct cloud_instance *i = &c->base.instance;
    *i = (struct cloud_instance){.market = CLOUD_ON_DEMAND,
        .state = CLOUD_PENDING,
        .launched_at = WALL_NONE,
        .ended_at = WALL_NONE};
    STR_COPY(i->token, c->token);
    STR_COPY(i->cluster, c->cluster);
    STR_COPY(i->zone, c->base.region);
    STR_COPY(i->type, c->type);
    return lambda_parse_launch(buf_str(body), body->len, i->id, e);
}

/* Only these kinds mean that nothing was launched. */
static bool is_definite(int rc)
{
    return rc != ERR_UNAVAILABLE && rc != ERR_TIMEOUT && rc != ERR_INVALID && rc != ERR_IO;
}

static void on_launch_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct lambda_call *c = (struct lambda_call *)base;
    bool is_over = c->stage == STAGE_ACT;
    struct err e;
    int rc;
    if (reply->status != 200)
        rc = lambda_call_refusal(c, reply, &e);
    else if (c->stage == STAGE_FIND)
        rc = find_launched(c, &reply->body, &is_over, &e);
    else if (c->stage == STAGE_TYPES)
        rc = check_type(c, &reply->body, &e);
    else
        rc = take_launched(c, &reply->body, &e);
    if (c->doubt && is_definite(rc))
        lambda_end_doubt(c);
    if (rc != 0 || is_over) {
        cloud_call_finish(&c->base, rc != 0 ? &e : NULL);
    } else if (c->is_early) {
        finish_in_doubt(c);
    } else {
        c->stage++;
        cloud_call_step(&c->base);
    }
}

void lambda_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "launch", step_launch, on_launch_reply, lambda_call_deinit};
    struct lambda_call *c = lambda_call_new(d, l->region);
    STR_COPY(c->token, l->token);
    STR_COPY(c->cluster, l->cluster);
    STR_COPY(c->type, l->type);
    if (c->base.refused.kind == ERR_NONE)
        lambda_build_launch(l, &c->d->machine, &c->request, &c->base.refused);
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}
