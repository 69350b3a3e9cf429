/* SPDX-License-Identifier: Apache-2.0
 *
 * See notice.h. Two lanes of requests, so that neither waits for the other:
 *
 *   round:  instance/preempted --> (TRUE: reported) --> repeated, parked until it changes
 *   watch:  name, zone, type, market, early notice --> identity reported
 *             --> instance/maintenance-event, parked, repeated ...
 *
 * The first read of a value is not parked, because a change before it would be missed. The ETag of
 * each reply goes into the next request, so a change between two requests is answered at once. The
 * metadata service does not give the length of the notice: it is 30 s from "preempted" by Google's
 * documentation, or the value requested at launch, which the driver stores in an attribute.
 */
#include "cloud/gcp/notice.h"
#include "cloud/endpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/gcp/gce.h"
#include "cloud/gcp/metadata.h"
#include "cloud/patience.h"
#include <stdlib.h>
#include <string.h>

#define PARKED_S 10
#define PARKED_TIMEOUT_MS SECONDS_MS(PARKED_S + 5)
#define TIMEOUT_MS SECONDS_MS(3)
#define ROUND_PAUSE_MS 100 /* between parked requests, in case the service does not park them */
#define WATCH_PAUSE_MS SECONDS_MS(1)
#define SPOT_NOTICE_MS SECONDS_MS(30)
#define ON_DEMAND_SHUTDOWN_MS SECONDS_MS(90)
#define EARLY_NOTICE_MAX_S 3600
#define ETAG_MAX 128
#define VALUE_MAX 1024
#define PREEMPTED_PATH "/instance/preempted"
#define MAINTENANCE_PATH "/instance/maintenance-event"

struct gcp_reader;

/* The outcome of a read; exactly one of e and value is NULL. */
typedef void (*read_fn)(struct gcp_reader *r, const struct err *e, const char *value);

/* One request at a time. It outlives its reader until the current request has ended. */
struct lane {
    struct gcp_reader *r; /* NULL if freed */
    struct http_call *call;
    const char *path;
    struct patience patience;
    int64_t clock_ahead_ms;  /* of this machine over the service's, at its last reply */
    char etag[ETAG_MAX + 1]; /* of the last value read; "" if none */
    read_fn done;
};

struct gcp_reader {
    struct notice_reader base;
    struct http_client *http;
    char *base_url;
    struct lane *round, *watch;
    struct timer watch_timer;
    size_t fact; /* index of the next identity fact to read */
    char name[CLOUD_NAME_MAX];
    int64_t early_notice_ms;
    bool preempted, maintained; /* already reported */
};

/* ---- a lane ---- */

static struct lane *create_lane(struct gcp_reader *r)
{
    struct lane *l = mem_alloc(sizeof(*l));
    l->r = r;
    return l;
}

static void destroy_lane(struct lane *l, struct http_client *http)
{
    l->r = NULL;
    if (l->call)
        http_cancel(http, l->call);
    else
        free(l);
}

/* The ETag goes into one of our URLs. */
static void keep_etag(struct lane *l, const char *etag)
{
    l->etag[0] = '\0';
    for (const char *p = etag ? etag : ""; *p; p++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_", *p))
            return;
    if (!STR_COPY(l->etag, etag))
        l->etag[0] = '\0';
}

/* The value of a successful reply: one line of text. */
static int read_value(const char *path, const struct http_reply *reply, char *value, struct err *e)
{
    int rc = gcp_metadata_check(path, reply, e);
    if (rc != 0)
        return rc;
    const char *body = buf_str(&reply->body);
    size_t n = strcspn(body, "\r\n");
    if (n > VALUE_MAX || n + strspn(body + n, "\r\n") != reply->body.len)
        return err_set(e, ERR_INVALID, "metadata %s: expected one line, found %zu bytes", path,
            reply->body.len);
    memcpy(value, body, n);
    value[n] = '\0';
    return 0;
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct lane *l = ctx;
    char value[VALUE_MAX + 1];
    struct err why;
    l->call = NULL;
    if (!l->r) {
        free(l);
        return;
    }
    struct timers *timers = l->r->base.timers;
    patience_end(&l->patience, clock_mono(timers->clock), e);
    if (reply)
        l->clock_ahead_ms =
            clock_wall(timers->clock).ms -
            notice_provider_now(&l->r->base, http_reply_header(reply, "Date"), NULL).ms;
    if (e) {
        why = *e;
        err_wrap(&why, "metadata %s", l->path);
        l->done(l->r, &why, NULL);
    } else if (read_value(l->path, reply, value, &why) != 0) {
        l->done(l->r, &why, NULL);
    } else {
        keep_etag(l, http_reply_header(reply, "ETag"));
        l->done(l->r, NULL, value);
    }
}

/* The request is parked if there is an ETag. */
static void start_read(struct lane *l, const char *path, read_fn done)
{
    struct gcp_reader *r = l->r;
    struct buf url = {0};
    l->path = path;
    l->done = done;
    buf_printf(&url, "%s" GCP_METADATA_ROOT "%s", r->base_url, path);
    if (l->etag[0])
        buf_printf(&url, "?wait_for_change=true&last_etag=%s&timeout_sec=%d", l->etag, PARKED_S);
    struct http_request request = {
        .method = "GET",
        .url = buf_str(&url),
        .headers = {GCP_METADATA_HEADER},
        .timeout_ms = patience_begin(&l->patience, clock_mono(r->base.timers->clock),
            l->etag[0] ? PARKED_TIMEOUT_MS : TIMEOUT_MS),
        .max_reply_bytes = GCP_METADATA_REPLY_MAX,
    };
    l->call = http_start(r->http, &request, on_reply, l);
    buf_deinit(&url);
}

/* ---- preempted ---- */

/* False if the reader was freed. */
static bool note_preempted(struct gcp_reader *r, bool is_preempted)
{
    bool is_new = is_preempted && !r->preempted;
    int64_t left_ms = r->early_notice_ms > 0 ? r->early_notice_ms : SPOT_NOTICE_MS;
    r->preempted = is_preempted;
    if (!is_new)
        return true;
    struct wall now = clock_wall(r->base.timers->clock);
    return notice_reader_report(
        &r->base, &(struct notice){
                      .kind = NOTICE_RECLAIM,
                      .what = "preempted",
                      .deadline = {now.ms + left_ms},
                      .deadline_mono = {clock_mono(r->base.timers->clock).ms + left_ms},
                      .seen = now,
                      .clock_ahead_ms = r->round->clock_ahead_ms,
                  });
}

static void on_preempted(struct gcp_reader *r, const struct err *e, const char *value)
{
    struct err bad;
    bool is_preempted = str_eq(value, "TRUE");
    if (!e && !is_preempted && !str_eq(value, "FALSE")) {
        err_set(&bad, ERR_INVALID, "metadata " PREEMPTED_PATH ": expected TRUE or FALSE");
        e = &bad;
    }
    if (!e && !note_preempted(r, is_preempted))
        return;
    notice_reader_round_ended(&r->base, e);
}

static void start_round(struct notice_reader *base)
{
    struct gcp_reader *r = (struct gcp_reader *)base;
    if (base->poll == POLL_BEGUN) /* the current value is wanted, not a change */
        r->round->etag[0] = '\0';
    start_read(r->round, PREEMPTED_PATH, on_preempted);
}

/* A parked request is ended. */
static void hasten(struct notice_reader *base)
{
    struct gcp_reader *r = (struct gcp_reader *)base;
    http_cancel(r->http, r->round->call);
}

/* A machine of unknown market is treated as spot. */
static int64_t shutdown_ms(const struct notice_reader *base)
{
    return str_eq(base->identity.life_cycle, "on-demand") ? ON_DEMAND_SHUTDOWN_MS : SPOT_NOTICE_MS;
}

/* ---- identity ---- */

static const char *last_segment(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int take_name(struct gcp_reader *r, const char *value)
{
    return STR_COPY(r->name, value) ? 0 : ERR_INVALID;
}

static int take_zone(struct gcp_reader *r, const char *value)
{
    struct notice_identity *id = &r->base.identity;
    char zone[CLOUD_NAME_MAX], name[CLOUD_NAME_MAX];
    char *whole = mem_printf("%s/%s", last_segment(value), r->name);
    int rc = gce_split_id(whole, zone, name, NULL);
    if (rc == 0 && (!STR_COPY(id->instance_id, whole) || !strrchr(zone, '-')))
        rc = ERR_INVALID;
    free(whole);
    if (rc != 0)
        return rc;
    STR_COPY(id->zone, zone);
    STR_COPY(id->region, zone);
    *strrchr(id->region, '-') = '\0';
    return 0;
}

static int take_type(struct gcp_reader *r, const char *value)
{
    return STR_COPY(r->base.identity.type, last_segment(value)) && r->base.identity.type[0]
               ? 0
               : ERR_INVALID;
}

static int take_market(struct gcp_reader *r, const char *value)
{
    STR_COPY(r->base.identity.life_cycle, str_eq(value, "TRUE") ? "spot" : "on-demand");
    return str_eq(value, "TRUE") || str_eq(value, "FALSE") ? 0 : ERR_INVALID;
}

static int take_early_notice(struct gcp_reader *r, const char *value)
{
    int64_t seconds;
    int rc = str_to_i64(value, 0, EARLY_NOTICE_MAX_S, "seconds", &seconds, NULL);
    if (rc == 0)
        r->early_notice_ms = SECONDS_MS(seconds);
    return rc;
}

static const struct {
    const char *path;
    int (*take)(struct gcp_reader *r, const char *value); /* ERR_INVALID if it is malformed */
    bool may_be_missing;
} facts[] = {
    {"/instance/attributes/" GCE_ATTRIBUTE_NOTICE, take_early_notice, true},
    {"/instance/name", take_name, false},
    {"/instance/zone", take_zone, false},
    {"/instance/machine-type", take_type, false},
    {"/instance/scheduling/preemptible", take_market, false},
};
#define FACTS (sizeof(facts) / sizeof(facts[0]))

static void watch_later(struct gcp_reader *r, int64_t delay_ms)
{
    timer_start(r->base.timers, &r->watch_timer, delay_ms);
}

static void on_fact(struct gcp_reader *r, const struct err *e, const char *value)
{
    struct err bad;
    bool is_missing = e && e->kind == ERR_NOT_FOUND && facts[r->fact].may_be_missing;
    r->watch->etag[0] = '\0'; /* it belongs to another value */
    if (!e && facts[r->fact].take(r, value) != 0) {
        err_set(&bad, ERR_INVALID, "metadata %s: malformed value", facts[r->fact].path);
        e = &bad;
    }
    if (e && !is_missing) {
        if (notice_reader_identity_failed(&r->base, e))
            watch_later(r, WATCH_PAUSE_MS);
        return;
    }
    if (++r->fact == FACTS) {
        STR_COPY(r->base.identity.provider, "gcp");
        if (!r->base.identity_reported && !notice_reader_report_identity(&r->base))
            return;
    }
    watch_later(r, 0);
}

/* ---- maintenance ---- */

/* The host is to be emptied and this machine cannot migrate: it will be stopped within an hour. */
static void on_maintenance(struct gcp_reader *r, const struct err *e, const char *value)
{
    (void)e; /* value is NULL then */
    bool is_none = str_eq(value, "NONE") || str_eq(value, "MIGRATE_ON_HOST_MAINTENANCE");
    bool is_known = is_none || str_eq(value, "TERMINATE_ON_HOST_MAINTENANCE");
    bool is_new = value && value[0] && !is_none && !r->maintained;
    if (is_new || str_eq(value, "NONE"))
        r->maintained = is_new;
    if (is_new && !is_known)
        log_warn("Google announces an unknown kind of maintenance: state is saved before it",
            log_s("event", value));
    if (is_new && !notice_reader_report(&r->base, &(struct notice){
                                                      .kind = NOTICE_MAINTENANCE,
                                                      .deadline = WALL_NONE,
                                                      .deadline_mono = MONO_NONE,
                                                      .seen = clock_wall(r->base.timers->clock),
                                                  }))
        return;
    watch_later(r, WATCH_PAUSE_MS);
}

static void on_watch_timer(struct timer *t, void *ctx)
{
    struct gcp_reader *r = ctx;
    (void)t;
    if (r->fact < FACTS)
        start_read(r->watch, facts[r->fact].path, on_fact);
    else
        start_read(r->watch, MAINTENANCE_PATH, on_maintenance);
}

/* ---- the reader ---- */

static void destroy(struct notice_reader *base)
{
    struct gcp_reader *r = (struct gcp_reader *)base;
    timer_stop(r->base.timers, &r->watch_timer);
    destroy_lane(r->round, r->http);
    destroy_lane(r->watch, r->http);
    free(r->base_url);
    free(r);
}

static int create(
    const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e)
{
    char *base_url;
    int rc = cloud_metadata(GCP_METADATA_URL, o->base_url, &base_url, e);
    if (rc != 0)
        return rc;
    struct gcp_reader *r = mem_alloc(sizeof(*r));
    r->base_url = base_url;
    r->http = o->http;
    r->round = create_lane(r);
    r->watch = create_lane(r);
    timer_init(&r->watch_timer, on_watch_timer, r);
    timer_start(o->timers, &r->watch_timer, 0);
    *ret_reader = &r->base;
    return 0;
}

const struct notice_provider gcp_notice_provider = {.name = "gcp",
    .poll_ms = ROUND_PAUSE_MS,
    .create = create,
    .round = start_round,
    .hasten = hasten,
    .shutdown_ms = shutdown_ms,
    .destroy = destroy};
