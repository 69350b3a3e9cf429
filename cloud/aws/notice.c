/* SPDX-License-Identifier: Apache-2.0
 *
 * See notice.h. The reader goes round in
 *
 *   spot/instance-action -> rebalance recommendation -> (identity, while it is not known) -> wait poll_ms ->
 * ...
 *
 * and cuts a round short at the first read that fails. What 404 says: nothing pending; an event seen after it
 * is a new one. The deadline counts from when the event was first seen, on both clocks, so that a wrong wall
 * clock cannot make a notice look longer than EC2's two minutes.
 */
#include "cloud/aws/notice.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/imds.h"
#include <stdlib.h>

#define SPOT_NOTICE_MS SECONDS_MS(120)
#define NOTICE_BYTES_MAX 4096

#define ACTION_PATH "/latest/meta-data/spot/instance-action"
#define REBALANCE_PATH "/latest/meta-data/events/recommendations/rebalance"
#define DOCUMENT_PATH "/latest/dynamic/instance-identity/document"
#define LIFE_CYCLE_PATH "/latest/meta-data/instance-life-cycle"

struct aws_reader {
    struct notice_reader base;
    struct imds *imds;
    /* The reclaim pending: WALL_NONE when there is none. */
    struct wall reclaim_seen;
    struct mono reclaim_seen_mono;
    struct wall reclaim_deadline;
    struct wall rebalance_time; /* of the recommendation reported last; WALL_NONE */
};

/* ---- parsing ---- */

/* The object in body, to be json_decref'ed. */
static int parse_object(const char *body, size_t n, struct json_reader *r, json_t **ret_object, struct err *e)
{
    int rc = json_parse(body, n, NOTICE_BYTES_MAX, ret_object, e);
    if (rc == 0)
        json_reader_init(r, *ret_object, "", e);
    return rc;
}

static struct wall read_time(struct json_reader *r, const char *key)
{
    struct wall at = WALL_NONE;
    const char *text = json_req_str(r, key, TIME_ISO_MAX);
    if (text && time_parse_iso(text, &at, NULL) != 0)
        json_reader_fail(r, key, "expected a time like 2026-08-22T12:02:00Z, found \"%s\"", text);
    return at;
}

int aws_notice_parse_action(
    const char *body, size_t n, struct wall now, struct notice *ret_notice, struct err *e)
{
    static const char *const actions[] = {"terminate", "stop", "hibernate", NULL};
    enum { HIBERNATE = 2 };
    json_t *object = NULL;
    struct json_reader r;
    int rc = parse_object(body, n, &r, &object, e);
    if (rc == 0) {
        int action = json_req_enum(&r, "action", actions);
        struct wall deadline = read_time(&r, "time");
        rc = json_reader_finish_lenient(&r);
        if (deadline.ms > now.ms + SPOT_NOTICE_MS)
            deadline.ms = now.ms + SPOT_NOTICE_MS;
        if (action == HIBERNATE && deadline.ms > now.ms) /* which starts with the notice */
            deadline = now;
        if (rc == 0)
            *ret_notice = (struct notice){
                .kind = NOTICE_RECLAIM, .deadline = deadline, .deadline_mono = MONO_NONE, .seen = now};
    }
    json_decref(object);
    return rc == 0 ? 0 : err_wrap(e, ACTION_PATH);
}

static int parse_rebalance(const char *body, size_t n, struct wall *ret_at, struct err *e)
{
    json_t *object = NULL;
    struct json_reader r;
    int rc = parse_object(body, n, &r, &object, e);
    if (rc == 0) {
        struct wall at = read_time(&r, "noticeTime");
        rc = json_reader_finish_lenient(&r);
        if (rc == 0)
            *ret_at = at;
    }
    json_decref(object);
    return rc == 0 ? 0 : err_wrap(e, REBALANCE_PATH);
}

static int parse_identity(const char *body, size_t n, struct notice_identity *id, struct err *e)
{
    json_t *object = NULL;
    struct json_reader r;
    int rc = json_parse(body, n, IMDS_REPLY_MAX, &object, e);
    if (rc == 0) {
        json_reader_init(&r, object, "", e);
        STR_COPY(id->provider, "aws");
        json_req_strcpy(&r, "instanceId", id->instance_id, sizeof(id->instance_id));
        json_req_strcpy(&r, "instanceType", id->type, sizeof(id->type));
        json_req_strcpy(&r, "availabilityZone", id->zone, sizeof(id->zone));
        json_req_strcpy(&r, "region", id->region, sizeof(id->region));
        rc = json_reader_finish_lenient(&r);
    }
    json_decref(object);
    return rc == 0 ? 0 : err_wrap(e, DOCUMENT_PATH);
}

/* ---- the reader ---- */

/* The notices were read; only who this machine is was not. */
static void end_round_without_identity(struct aws_reader *r, const struct err *e)
{
    if (notice_reader_identity_failed(&r->base, e))
        notice_reader_round_ended(&r->base, NULL);
}

static void on_life_cycle(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_reader *r = ctx;
    (void)n;
    if (e && e->kind != ERR_NOT_FOUND) {
        end_round_without_identity(r, e);
        return;
    }
    if (!e && (str_eq(body, "spot") || str_eq(body, "on-demand")))
        STR_COPY(r->base.identity.life_cycle, body);
    if (notice_reader_tell_identity(&r->base))
        notice_reader_round_ended(&r->base, NULL);
}

static void on_document(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_reader *r = ctx;
    struct err bad;
    if (e)
        end_round_without_identity(r, e);
    else if (parse_identity(body, n, &r->base.identity, &bad) != 0)
        end_round_without_identity(r, &bad);
    else
        imds_get(r->imds, LIFE_CYCLE_PATH, on_life_cycle, r);
}

/* False when the reader is gone. */
static bool see_rebalance(struct aws_reader *r, struct wall at)
{
    if (wall_is_set(r->rebalance_time) && r->rebalance_time.ms == at.ms)
        return true;
    r->rebalance_time = at;
    return notice_reader_tell(&r->base, &(struct notice){
                                            .kind = NOTICE_REBALANCE,
                                            .deadline = WALL_NONE,
                                            .deadline_mono = MONO_NONE,
                                            .seen = clock_wall(r->base.timers->clock),
                                        });
}

static void on_rebalance(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_reader *r = ctx;
    struct err bad;
    struct wall at = WALL_NONE;
    if (e && e->kind == ERR_NOT_FOUND) {
        r->rebalance_time = WALL_NONE;
    } else if (e) {
        notice_reader_round_ended(&r->base, e);
        return;
    } else if (parse_rebalance(body, n, &at, &bad) != 0) {
        notice_reader_round_ended(&r->base, &bad);
        return;
    } else if (!see_rebalance(r, at)) {
        return;
    }
    if (r->base.identity_told)
        notice_reader_round_ended(&r->base, NULL);
    else
        imds_get(r->imds, DOCUMENT_PATH, on_document, r);
}

/* False when the reader is gone. Told once, and again only if the deadline moves. */
static bool see_reclaim(struct aws_reader *r, struct notice *n)
{
    if (wall_is_set(r->reclaim_deadline) && r->reclaim_deadline.ms == n->deadline.ms)
        return true;
    r->reclaim_deadline = n->deadline;
    int64_t left_ms = n->deadline.ms - n->seen.ms;
    n->deadline_mono.ms = r->reclaim_seen_mono.ms + (left_ms > 0 ? left_ms : 0);
    return notice_reader_tell(&r->base, n);
}

static void on_action(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_reader *r = ctx;
    struct notice notice;
    struct err bad;
    if (e && e->kind == ERR_NOT_FOUND) {
        r->reclaim_seen = r->reclaim_deadline = WALL_NONE;
    } else if (e) {
        notice_reader_round_ended(&r->base, e);
        return;
    } else {
        struct wall now = clock_wall(r->base.timers->clock);
        struct wall seen = wall_is_set(r->reclaim_seen) ? r->reclaim_seen : now;
        if (aws_notice_parse_action(body, n, seen, &notice, &bad) != 0) {
            notice_reader_round_ended(&r->base, &bad);
            return;
        }
        if (!wall_is_set(r->reclaim_seen))
            r->reclaim_seen_mono = clock_mono(r->base.timers->clock);
        r->reclaim_seen = seen;
        if (!see_reclaim(r, &notice))
            return;
    }
    imds_get(r->imds, REBALANCE_PATH, on_rebalance, r);
}

static void start_round(struct notice_reader *base)
{
    struct aws_reader *r = (struct aws_reader *)base;
    imds_get(r->imds, ACTION_PATH, on_action, r);
}

static void destroy(struct notice_reader *base)
{
    struct aws_reader *r = (struct aws_reader *)base;
    imds_destroy(r->imds);
    free(r);
}

static int create(const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e)
{
    struct imds *imds = NULL;
    int rc = imds_create(o->base_url ? o->base_url : IMDS_URL, o->http, o->timers->clock, &imds, e);
    if (rc != 0)
        return rc;
    struct aws_reader *r = mem_alloc(sizeof(*r));
    r->imds = imds;
    r->reclaim_seen = r->reclaim_deadline = r->rebalance_time = WALL_NONE;
    *ret_reader = &r->base;
    return 0;
}

const struct notice_provider aws_notice_provider = {
    .name = "aws", .create = create, .round = start_round, .destroy = destroy};
