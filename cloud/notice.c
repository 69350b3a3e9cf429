/* SPDX-License-Identifier: Apache-2.0
 *
 * See notice.h. The aws reader goes round in
 *
 *   spot/instance-action -> rebalance recommendation -> (identity, while it is not known) -> wait poll_ms ->
 * ...
 *
 * and cuts a round short at the first read that fails. What 404 says: nothing pending; an event seen after it
 * is a new one. The deadline counts from when the event was first seen, on both clocks, so that a wrong wall
 * clock cannot make a notice look longer than EC2's two minutes.
 */
#include "cloud/notice.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/imds.h"
#include <stdlib.h>

#define POLL_DEFAULT_MS 1000
#define POLL_BACKOFF_CAP_MS 5000 /* never longer: EC2 asks for a look every 5 s */
#define SPOT_NOTICE_MS SECONDS_MS(120)
#define IDENTITY_TRIES 10
#define FAILURES_TO_LOG 5
#define NOTICE_BYTES_MAX 4096

#define ACTION_PATH "/latest/meta-data/spot/instance-action"
#define REBALANCE_PATH "/latest/meta-data/events/recommendations/rebalance"
#define DOCUMENT_PATH "/latest/dynamic/instance-identity/document"
#define LIFE_CYCLE_PATH "/latest/meta-data/instance-life-cycle"

struct notice_reader {
    struct imds *imds;
    struct timers *timers;
    int64_t poll_ms;
    notice_fn on_notice;
    notice_identity_fn on_identity;
    void *ctx;
    struct timer timer;
    int failures; /* rounds in a row that failed */
    /* The reclaim pending: WALL_NONE when there is none. */
    struct wall reclaim_seen;
    struct mono reclaim_seen_mono;
    struct wall reclaim_deadline;
    struct wall rebalance_time; /* of the recommendation reported last; WALL_NONE */
    struct notice_identity identity;
    bool identity_told;
    int identity_tries;
    bool calling, stopped; /* stopped inside a callback: freed after it */
};

const char *notice_kind_name(enum notice_kind k)
{
    static const char *const names[] = {"none", "reclaim", "rebalance", "maintenance"};
    return (size_t)k < sizeof(names) / sizeof(names[0]) ? names[k] : "none";
}

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

int notice_parse_aws_action(
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

static void free_reader(struct notice_reader *r)
{
    timer_stop(r->timers, &r->timer);
    imds_destroy(r->imds);
    free(r);
}

/* After a callback: false when it stopped the reader, which is gone then. */
static bool end_call(struct notice_reader *r)
{
    bool goes_on = !r->stopped;
    r->calling = false;
    if (!goes_on)
        free_reader(r);
    return goes_on;
}

static bool tell_notice(struct notice_reader *r, const struct notice *n)
{
    r->calling = true;
    r->on_notice(r->ctx, n);
    return end_call(r);
}

static bool tell_identity(struct notice_reader *r, const struct err *e)
{
    r->identity_told = true;
    r->calling = true;
    r->on_identity(r->ctx, e, e ? NULL : &r->identity);
    return end_call(r);
}

static void end_round(struct notice_reader *r)
{
    int64_t delay = r->poll_ms;
    for (int i = 0; i < r->failures && delay < POLL_BACKOFF_CAP_MS; i++)
        delay = 2 * delay > POLL_BACKOFF_CAP_MS ? POLL_BACKOFF_CAP_MS : 2 * delay;
    timer_start(r->timers, &r->timer, delay);
}

static void end_good_round(struct notice_reader *r)
{
    if (r->failures >= FAILURES_TO_LOG)
        log_info("metadata service answers again", log_i("failures", r->failures));
    r->failures = 0;
    end_round(r);
}

/* One more try at the identity came to nothing; false when the reader is gone. */
static bool count_identity_try(struct notice_reader *r, const struct err *e)
{
    return r->identity_told || ++r->identity_tries < IDENTITY_TRIES || tell_identity(r, e);
}

/* Neither a notice nor the all clear. */
static void end_bad_round(struct notice_reader *r, const struct err *e)
{
    r->failures++;
    if (r->failures == FAILURES_TO_LOG)
        log_warn(
            "metadata service fails: a notice would not be seen", log_i("failures", r->failures), log_err(e));
    if (count_identity_try(r, e))
        end_round(r);
}

/* The notices were read; only who this machine is was not. */
static void end_round_without_identity(struct notice_reader *r, const struct err *e)
{
    if (count_identity_try(r, e))
        end_good_round(r);
}

static void on_life_cycle(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct notice_reader *r = ctx;
    (void)n;
    if (e && e->kind != ERR_NOT_FOUND) {
        end_round_without_identity(r, e);
        return;
    }
    if (!e && (str_eq(body, "spot") || str_eq(body, "on-demand")))
        STR_COPY(r->identity.life_cycle, body);
    if (tell_identity(r, NULL))
        end_good_round(r);
}

static void on_document(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct notice_reader *r = ctx;
    struct err bad;
    if (e)
        end_round_without_identity(r, e);
    else if (parse_identity(body, n, &r->identity, &bad) != 0)
        end_round_without_identity(r, &bad);
    else
        imds_get(r->imds, LIFE_CYCLE_PATH, on_life_cycle, r);
}

/* False when the reader is gone. */
static bool see_rebalance(struct notice_reader *r, struct wall at)
{
    if (wall_is_set(r->rebalance_time) && r->rebalance_time.ms == at.ms)
        return true;
    r->rebalance_time = at;
    return tell_notice(r, &(struct notice){
                              .kind = NOTICE_REBALANCE,
                              .deadline = WALL_NONE,
                              .deadline_mono = MONO_NONE,
                              .seen = clock_wall(r->timers->clock),
                          });
}

static void on_rebalance(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct notice_reader *r = ctx;
    struct err bad;
    struct wall at = WALL_NONE;
    if (e && e->kind == ERR_NOT_FOUND) {
        r->rebalance_time = WALL_NONE;
    } else if (e) {
        end_bad_round(r, e);
        return;
    } else if (parse_rebalance(body, n, &at, &bad) != 0) {
        end_bad_round(r, &bad);
        return;
    } else if (!see_rebalance(r, at)) {
        return;
    }
    if (r->identity_told)
        end_good_round(r);
    else
        imds_get(r->imds, DOCUMENT_PATH, on_document, r);
}

/* False when the reader is gone. Told once, and again only if the deadline moves. */
static bool see_reclaim(struct notice_reader *r, struct notice *n)
{
    if (wall_is_set(r->reclaim_deadline) && r->reclaim_deadline.ms == n->deadline.ms)
        return true;
    r->reclaim_deadline = n->deadline;
    int64_t left_ms = n->deadline.ms - n->seen.ms;
    n->deadline_mono.ms = r->reclaim_seen_mono.ms + (left_ms > 0 ? left_ms : 0);
    return tell_notice(r, n);
}

static void on_action(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct notice_reader *r = ctx;
    struct notice notice;
    struct err bad;
    if (e && e->kind == ERR_NOT_FOUND) {
        r->reclaim_seen = r->reclaim_deadline = WALL_NONE;
    } else if (e) {
        end_bad_round(r, e);
        return;
    } else {
        struct wall now = clock_wall(r->timers->clock);
        struct wall seen = wall_is_set(r->reclaim_seen) ? r->reclaim_seen : now;
        if (notice_parse_aws_action(body, n, seen, &notice, &bad) != 0) {
            end_bad_round(r, &bad);
            return;
        }
        if (!wall_is_set(r->reclaim_seen))
            r->reclaim_seen_mono = clock_mono(r->timers->clock);
        r->reclaim_seen = seen;
        if (!see_reclaim(r, &notice))
            return;
    }
    imds_get(r->imds, REBALANCE_PATH, on_rebalance, r);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct notice_reader *r = ctx;
    (void)t;
    imds_get(r->imds, ACTION_PATH, on_action, r);
}

struct notice_reader *notice_reader_start(const char *provider, const struct notice_reader_options *o)
{
    struct imds *imds = NULL;
    struct err e;
    if (str_eq(provider, "none"))
        return NULL;
    if (!str_eq(provider, "aws")) {
        log_error(
            "no notice reader for this provider: reclaims come unannounced", log_s("provider", provider));
        return NULL;
    }
    if (imds_create(o->base_url ? o->base_url : IMDS_URL, o->http, o->timers->clock, &imds, &e) != 0) {
        log_error("notice reader not started: reclaims come unannounced", log_err(&e));
        return NULL;
    }
    struct notice_reader *r = mem_alloc(sizeof(*r));
    *r = (struct notice_reader){
        .imds = imds,
        .timers = o->timers,
        .poll_ms = o->poll_ms > 0 ? o->poll_ms : POLL_DEFAULT_MS,
        .on_notice = o->on_notice,
        .on_identity = o->on_identity,
        .ctx = o->ctx,
        .reclaim_seen = WALL_NONE,
        .reclaim_deadline = WALL_NONE,
        .rebalance_time = WALL_NONE,
    };
    timer_init(&r->timer, on_timer, r);
    timer_start(r->timers, &r->timer, 0);
    return r;
}

void notice_reader_stop(struct notice_reader *r)
{
    if (!r)
        return;
    if (r->calling)
        r->stopped = true;
    else
        free_reader(r);
}
