/* SPDX-License-Identifier: Apache-2.0
 *
 * See notice.h. The reader repeats
 *
 *   spot/instance-action -> rebalance recommendation -> (identity, until it is known)
 *     -> wait poll_ms -> ...
 *
 * and ends a round early at the first read that fails. 404 means nothing pending; an event seen
 * after it is new. The time left is measured by the service's clock (the Date of its replies),
 * counts from the first sight of the event, and is at most EC2's two minutes. A new event has the
 * full two minutes unless a Date says less, and is never over (notice_left_ms).
 */
#include "cloud/aws/notice.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/imds.h"
#include <stdio.h>
#include <stdlib.h>

#define SPOT_NOTICE_MS SECONDS_MS(120)
#define NOTICE_BYTES_MAX 4096
#define ACTION_BYTES_MAX 256
#define TIME_BYTES_MAX 64
#define HIBERNATE "hibernate"

#define ACTION_PATH "/latest/meta-data/spot/instance-action"
#define REBALANCE_PATH "/latest/meta-data/events/recommendations/rebalance"
#define DOCUMENT_PATH "/latest/dynamic/instance-identity/document"
#define LIFE_CYCLE_PATH "/latest/meta-data/instance-life-cycle"

struct aws_reader {
    struct notice_reader base;
    struct imds *imds;
    /* The pending reclaim, by the service's clock: WALL_NONE if there is none. */
    struct wall reclaim_seen;
    struct wall reclaim_deadline;
    bool has_read;              /* after the first successful read: an event not seen then is new */
    struct wall rebalance_time; /* of the last reported recommendation; WALL_NONE if none */
};

/* ---- parsing ---- */

/* Parses the object in body; the caller calls json_decref. */
static int parse_object(
    const char *body, size_t n, struct json_reader *r, json_t **ret_object, struct err *e)
{
    int rc = json_parse(body, n, NOTICE_BYTES_MAX, ret_object, e);
    if (rc == 0)
        json_reader_init(r, *ret_object, "", e);
    return rc;
}

static struct wall read_time(struct json_reader *r, const char *key)
{
    struct wall at = WALL_NONE;
    const char *text = json_req_str(r, key, TIME_BYTES_MAX);
    struct err why;
    if (text && notice_parse_time(text, &at, &why) != 0)
        json_reader_fail(r, key, "%s", why.text);
    return at;
}

int aws_notice_parse_action(
    const char *body, size_t n, struct wall now, struct notice *ret_notice, struct err *e)
{
    json_t *object = NULL;
    struct json_reader r;
    int rc = parse_object(body, n, &r, &object, e);
    if (rc == 0) {
        struct notice found = {.kind = NOTICE_RECLAIM, .deadline_mono = MONO_NONE, .seen = now};
        const char *action = json_req_str(&r, "action", ACTION_BYTES_MAX);
        struct wall deadline = read_time(&r, "time");
        rc = json_reader_finish_lenient(&r);
        if (rc == 0 && !action[0])
            rc = err_set(e, ERR_INVALID, "action is empty");
        if (rc == 0)
            snprintf(found.what, sizeof(found.what), "%s", action);
        if (deadline.ms > now.ms + SPOT_NOTICE_MS)
            deadline.ms = now.ms + SPOT_NOTICE_MS;
        /* hibernation begins with the notice */
        if (str_eq(found.what, HIBERNATE) && deadline.ms > now.ms)
            deadline = now;
        found.deadline = deadline;
        if (rc == 0)
            *ret_notice = found;
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

/* For a round that has read the notices, but not the identity. */
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
    if (notice_reader_report_identity(&r->base))
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

/* False if the reader was freed. */
static bool note_rebalance(struct aws_reader *r, struct wall at)
{
    if (wall_is_set(r->rebalance_time) && r->rebalance_time.ms == at.ms)
        return true;
    r->rebalance_time = at;
    return notice_reader_report(&r->base, &(struct notice){
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
    } else if (!note_rebalance(r, at)) {
        return;
    }
    if (r->base.identity_reported)
        notice_reader_round_ended(&r->base, NULL);
    else
        imds_get(r->imds, DOCUMENT_PATH, on_document, r);
}

/* Whatever the action is, the instance cannot be relied on. */
static void log_if_unknown(const char *action)
{
    if (!str_eq(action, "terminate") && !str_eq(action, "stop") && !str_eq(action, HIBERNATE))
        log_warn("EC2 announces an unknown action: treated as a reclaim", log_s("action", action));
}

/* n uses the service's clock. False if the reader was freed. Reports once, and again only if the
 * deadline moves. */
static bool note_reclaim(struct aws_reader *r, struct notice *n, bool is_new)
{
    bool is_dated;
    struct wall at = n->deadline, own = clock_wall(r->base.timers->clock);
    struct wall provider_now = notice_provider_now(&r->base, imds_date(r->imds), &is_dated);
    if (wall_is_set(r->reclaim_deadline) && r->reclaim_deadline.ms == at.ms)
        return true;
    bool hibernates = str_eq(n->what, HIBERNATE);
    int64_t left_ms = notice_left_ms(at, provider_now, is_dated || hibernates,
        is_new && !hibernates, SPOT_NOTICE_MS, SPOT_NOTICE_MS);
    if (!wall_is_set(r->reclaim_deadline))
        log_if_unknown(n->what);
    r->reclaim_deadline = at;
    n->deadline.ms = own.ms + left_ms;
    n->deadline_mono.ms = clock_mono(r->base.timers->clock).ms + left_ms;
    n->seen = own;
    n->clock_ahead_ms = own.ms - provider_now.ms;
    return notice_reader_report(&r->base, n);
}

static void on_action(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_reader *r = ctx;
    struct notice notice;
    struct err bad;
    if (e && e->kind == ERR_NOT_FOUND) {
        r->reclaim_seen = r->reclaim_deadline = WALL_NONE;
        r->has_read = true;
    } else if (e) {
        notice_reader_round_ended(&r->base, e);
        return;
    } else {
        bool is_new = r->has_read && !wall_is_set(r->reclaim_seen);
        struct wall now = notice_provider_now(&r->base, imds_date(r->imds), NULL);
        struct wall seen = wall_is_set(r->reclaim_seen) ? r->reclaim_seen : now;
        if (aws_notice_parse_action(body, n, seen, &notice, &bad) != 0) {
            notice_reader_round_ended(&r->base, &bad);
            return;
        }
        r->reclaim_seen = seen;
        r->has_read = true;
        if (!note_reclaim(r, &notice, is_new))
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

static int create(
    const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e)
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
