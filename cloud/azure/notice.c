/* SPDX-License-Identifier: Apache-2.0
 *
 * See notice.h. One round:
 *
 *   instance (until it is known) --> due acknowledgements --> scheduled events --> wait poll_ms
 *
 * Invariants
 *   1. Deadlines count from the first sight of an event, and the time left is measured by the
 *      service's clock (the Date of its replies), so that a wrong clock of this machine makes no
 *      notice longer or shorter. An event that begins keeps its deadline. An event missing from the
 *      previous reading has 30 s if it has begun, or if its time is past by the Date; without a
 *      Date it has at least Azure's minimum for its type. An event that the first reading finds
 *      begun has no time left.
 *   2. Events of other machines are ignored. Only while this machine's name cannot be read is every
 *      event treated as its own: one save too many is cheaper than one too few.
 *   3. A malformed event hides no other one of the reply, and ends none that is pending.
 *   4. Only a reclaim that was reported and then acknowledged is started, once.
 *   5. Of more than PENDING_MAX events the most urgent are kept: reclaims before maintenance, then
 *      by deadline. So the reclaim with the earliest deadline is reported, wherever in the reply it
 *      is.
 */
#include "cloud/azure/notice.h"
#include "cloud/endpoint.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/azure/imds.h"
#include "cloud/patience.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_PATH "/metadata/scheduledevents?api-version=2020-07-01"
#define INSTANCE_PATH "/metadata/instance?api-version=2021-02-01"
#define FIRST_TIMEOUT_MS SECONDS_MS(150)
#define TIMEOUT_MS SECONDS_MS(5)
#define LEAST_NOTICE_MS SECONDS_MS(30)
#define ACKNOWLEDGE_TRIES 5
#define ITEMS_MAX AZURE_IMDS_REPLY_MAX /* only the size of a reply limits what is in it */
#define PENDING_MAX 16

struct pending {
    struct azure_event event;
    struct wall deadline;
    struct mono deadline_mono;
    struct wall seen;
    struct mono seen_mono;
    int64_t clock_ahead_ms;
    bool is_reported; /* with notice_reader_report */
    bool asked;       /* to be acknowledged */
    int tries;        /* failed acknowledgements */
};

struct azure_reader {
    struct notice_reader base;
    char *url;
    struct http_client *http;
    struct http_call *call;
    bool destroyed; /* freed when the current request has ended */
    bool is_on;     /* the service has answered once: an event not seen then is new */
    struct patience patience;
    char machine[64];   /* "" if not known yet */
    struct err unknown; /* why this round could not read it */
    struct pending pending[PENDING_MAX];
    size_t n_pending;
    struct wall reported_deadline; /* of the last reported reclaim; WALL_NONE if none */
};

/* ---- parsing ---- */

/* Azure's figures: the shortest notice of a type, and the longest that is counted on. */
static const struct event_type {
    const char *name;
    enum notice_kind kind;
    int64_t least_ms;
    int64_t notice_ms;
} event_types[] = {
    {"Preempt", NOTICE_RECLAIM, LEAST_NOTICE_MS, SECONDS_MS(30)},
    {"Terminate", NOTICE_RECLAIM, SECONDS_MS(5 * 60), SECONDS_MS(15 * 60)},
    {"Reboot", NOTICE_RECLAIM, SECONDS_MS(15 * 60), SECONDS_MS(15 * 60)},
    {"Redeploy", NOTICE_RECLAIM, SECONDS_MS(10 * 60), SECONDS_MS(15 * 60)},
    {"Freeze", NOTICE_MAINTENANCE, SECONDS_MS(15 * 60), SECONDS_MS(15 * 60)},
};

static const struct event_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof(event_types) / sizeof(event_types[0]); i++)
        if (strcasecmp(event_types[i].name, name) == 0)
            return &event_types[i];
    return NULL;
}

static bool concerns(const json_t *resources, const char *machine)
{
    const json_t *item;
    size_t k;
    json_array_foreach((json_t *)resources, k, item)
    {
        if (!machine || (json_is_string(item) && strcasecmp(json_string_value(item), machine) == 0))
            return true;
    }
    return false;
}

/* "" or missing once it has begun. */
static struct wall read_not_before(struct json_reader *r)
{
    struct wall at = WALL_NONE;
    const char *text = json_opt_str(r, "NotBefore", 64, "");
    struct err why;
    if (*text && notice_parse_time(text, &at, &why) != 0)
        json_reader_fail(r, "NotBefore", "%s", why.text);
    return at;
}

static void add_event(struct azure_events *events, const struct azure_event *event)
{
    if (events->n == events->cap) {
        events->cap = events->cap ? 2 * events->cap : PENDING_MAX;
        events->list = mem_resize(events->list, events->cap, sizeof(*events->list));
    }
    events->list[events->n++] = *event;
}

void azure_events_deinit(struct azure_events *events)
{
    free(events->list);
    *events = (struct azure_events){0};
}

static int read_event(
    const json_t *item, const char *machine, struct azure_events *events, struct err *e)
{
    struct json_reader r;
    struct azure_event event = {.is_unknown = false};
    json_reader_init(&r, item, "Events", e);
    json_req_strcpy(&r, "EventId", event.id, sizeof(event.id));
    const char *type = json_req_str(&r, "EventType", 64);
    const char *status = json_opt_str(&r, "EventStatus", 64, "Scheduled");
    const json_t *resources = json_req_array(&r, "Resources", ITEMS_MAX);
    event.not_before = read_not_before(&r);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0 || !concerns(resources, machine))
        return rc;
    static const struct event_type unknown = {
        "", NOTICE_RECLAIM, LEAST_NOTICE_MS, SECONDS_MS(15 * 60)};
    const struct event_type *known = find_type(type);
    snprintf(event.type, sizeof(event.type), "%s", type);
    event.is_unknown = !known;
    if (!known)
        known = &unknown;
    if (strcasecmp(status, "Started") == 0)
        event.not_before = WALL_NONE;
    event.kind = known->kind;
    /* a failure begins at once */
    event.least_ms = wall_is_set(event.not_before) ? known->least_ms : LEAST_NOTICE_MS;
    event.notice_ms = known->notice_ms;
    add_event(events, &event);
    return 0;
}

int azure_notice_parse_events(
    const char *body, size_t n, const char *machine, struct azure_events *ret_events, struct err *e)
{
    struct azure_events events = {.n = 0};
    struct json_reader r;
    json_t *root = NULL, *item;
    size_t k;
    int rc = json_parse(body, n, AZURE_IMDS_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "", e);
        const json_t *items = json_req_array(&r, "Events", ITEMS_MAX);
        rc = json_reader_finish_lenient(&r);
        json_array_foreach((json_t *)items, k, item)
        {
            struct err why;
            if (read_event(item, machine, &events, &why) != 0 && rc == 0) {
                rc = why.kind;
                if (e)
                    *e = why;
            }
        }
    }
    json_decref(root);
    if (rc == 0 || events.n > 0)
        *ret_events = events;
    else
        azure_events_deinit(&events);
    return rc == 0 ? 0 : err_wrap(e, EVENTS_PATH);
}

static int parse_instance(const char *body, size_t n, struct azure_reader *r, struct err *e)
{
    struct notice_identity id = {.provider = "azure"};
    struct json_reader top, compute;
    char priority[32] = "";
    json_t *root = NULL;
    int rc = json_parse(body, n, AZURE_IMDS_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&top, root, "", e);
        const json_t *object = json_req_object(&top, "compute");
        rc = json_reader_finish_lenient(&top);
        json_reader_init(&compute, object, "compute", rc == 0 ? e : NULL);
        json_req_strcpy(&compute, "name", id.instance_id, sizeof(id.instance_id));
        json_req_strcpy(&compute, "vmSize", id.type, sizeof(id.type));
        json_req_strcpy(&compute, "location", id.region, sizeof(id.region));
        json_opt_strcpy(&compute, "zone", id.zone, sizeof(id.zone), "");
        json_opt_strcpy(&compute, "priority", priority, sizeof(priority), "");
        if (rc == 0)
            rc = json_reader_finish_lenient(&compute);
        if (rc == 0 && !id.instance_id[0])
            rc = err_set(e, ERR_INVALID, "compute.name is empty");
    }
    json_decref(root);
    if (rc != 0)
        return err_wrap(e, INSTANCE_PATH);
    if (!id.zone[0]) /* a machine without a zone has its region instead, as in a pool's file */
        STR_COPY(id.zone, id.region);
    STR_COPY(id.life_cycle, strcasecmp(priority, "Spot") == 0 ? "spot" : "on-demand");
    STR_COPY(r->machine, id.instance_id);
    r->base.identity = id;
    return 0;
}

/* ---- requests ---- */

static void free_reader(struct azure_reader *r)
{
    free(r->url);
    free(r);
}

/* Call first when a request has ended; false if the reader was stopped meanwhile. */
static bool is_wanted(struct azure_reader *r, const struct err *failed)
{
    r->call = NULL;
    patience_end(&r->patience, clock_mono(r->base.timers->clock), failed);
    if (!r->destroyed)
        return true;
    free_reader(r);
    return false;
}

static void ask(struct azure_reader *r, const char *path, const char *body, int64_t timeout_ms,
    http_done_fn done)
{
    char *url = mem_printf("%s%s", r->url, path);
    struct http_request q = {
        .method = body ? "POST" : "GET",
        .url = url,
        .headers = {AZURE_IMDS_HEADER, body ? "Content-Type: application/json" : NULL},
        .body = body,
        .body_len = body ? strlen(body) : 0,
        .timeout_ms = patience_begin(&r->patience, clock_mono(r->base.timers->clock), timeout_ms),
        .max_reply_bytes = AZURE_IMDS_REPLY_MAX,
    };
    r->call = http_start(r->http, &q, done, r);
    free(url);
}

static int check(
    const struct err *failed, const struct http_reply *reply, const char *path, struct err *e)
{
    if (failed) {
        *e = *failed;
        return err_wrap(e, "metadata %s", path);
    }
    if (reply->status == 200)
        return 0;
    return err_set(e, reply->status == 400 ? ERR_INVALID : ERR_UNAVAILABLE, "metadata %s: HTTP %d",
        path, reply->status);
}

/* ---- events ---- */

static const struct pending *find_pending(const struct pending *list, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i].event.id, id))
            return &list[i];
    return NULL;
}

static void set_deadline(
    const struct azure_reader *r, struct pending *p, const char *date, bool is_new)
{
    bool is_dated;
    struct wall own = clock_wall(r->base.timers->clock);
    struct wall now = notice_provider_now(&r->base, date, &is_dated);
    struct mono mono = clock_mono(r->base.timers->clock);
    int64_t most_ms = p->seen_mono.ms + p->event.notice_ms - mono.ms;
    /* The moment has passed by the reply's own Date. Azure has not kept to it, so only the minimum
     * for any event applies. */
    int64_t least_ms = is_dated ? LEAST_NOTICE_MS : p->event.least_ms;
    int64_t left_ms = notice_left_ms(p->event.not_before, now, is_dated, is_new, least_ms, most_ms);
    p->deadline.ms = own.ms + left_ms;
    p->deadline_mono.ms = mono.ms + left_ms;
    p->clock_ahead_ms = own.ms - now.ms;
}

static void log_if_unknown(const struct azure_event *event)
{
    if (event->is_unknown)
        log_warn("Azure announces an event of unknown type: treated as a reclaim",
            log_s("type", event->type), log_s("event", event->id));
}

/* For a reply with malformed events: a pending event may be one of them, so it stays pending. */
static void add_pending(const struct azure_reader *r, struct azure_events *events)
{
    for (size_t i = 0; i < r->n_pending; i++) {
        size_t k = 0;
        while (k < events->n && !str_eq(events->list[k].id, r->pending[i].event.id))
            k++;
        if (k == events->n)
            add_event(events, &r->pending[i].event);
    }
}

/* Merges what is known of an event with its state in a reply of this date, which may be NULL. */
static struct pending review(
    const struct azure_reader *r, const struct azure_event *event, const char *date)
{
    const struct pending *known = find_pending(r->pending, r->n_pending, event->id);
    struct pending p = {
        .seen = clock_wall(r->base.timers->clock), .seen_mono = clock_mono(r->base.timers->clock)};
    if (known)
        p = *known;
    bool moved = !known || (wall_is_set(event->not_before) &&
                               (!wall_is_set(known->event.not_before) ||
                                   event->not_before.ms != known->event.not_before.ms));
    p.event = *event;
    if (moved)
        set_deadline(r, &p, date, !known && r->is_on);
    else if (!wall_is_set(event->not_before))
        p.event.not_before = known->event.not_before;
    return p;
}

static bool is_more_urgent(const struct pending *a, const struct pending *b)
{
    bool is_reclaim = a->event.kind == NOTICE_RECLAIM;
    if (is_reclaim != (b->event.kind == NOTICE_RECLAIM))
        return is_reclaim;
    return a->deadline_mono.ms < b->deadline_mono.ms;
}

/* Adds p to the n of the list, in place of the least urgent one if it is full. Returns the new n.
 */
static size_t keep_urgent(struct pending list[PENDING_MAX], size_t n, const struct pending *p)
{
    struct pending *least = &list[0];
    if (n < PENDING_MAX) {
        list[n] = *p;
        return n + 1;
    }
    for (size_t i = 1; i < n; i++)
        if (is_more_urgent(least, &list[i]))
            least = &list[i];
    if (is_more_urgent(p, least))
        *least = *p;
    return n;
}

/* Replaces the pending events by the current ones, keeping what is known of them; others were
 * withdrawn or are over. date: of the reply; may be NULL. */
static void keep(struct azure_reader *r, const struct azure_events *events, const char *date)
{
    struct pending now[PENDING_MAX];
    size_t n = 0;
    for (size_t i = 0; i < events->n; i++) {
        const struct pending p = review(r, &events->list[i], date);
        n = keep_urgent(now, n, &p);
    }
    for (size_t i = 0; i < n; i++)
        if (!find_pending(r->pending, r->n_pending, now[i].event.id))
            log_if_unknown(&now[i].event);
    memcpy(r->pending, now, n * sizeof(now[0]));
    r->n_pending = n;
}

static bool report_pending(struct azure_reader *r, const struct pending *p)
{
    struct notice n = {
        .kind = p->event.kind,
        .deadline = p->deadline,
        .deadline_mono = p->deadline_mono,
        .seen = p->seen,
        .clock_ahead_ms = p->clock_ahead_ms,
    };
    STR_COPY(n.what, p->event.type);
    return notice_reader_report(&r->base, &n);
}

/* Reports the earliest reclaim, if it differs from the last one reported; then maintenance not yet
 * reported. False if the reader was freed. */
static bool report_events(struct azure_reader *r)
{
    struct pending *first = NULL;
    for (size_t i = 0; i < r->n_pending; i++) {
        struct pending *p = &r->pending[i];
        if (p->event.kind == NOTICE_RECLAIM && (!first || p->deadline.ms < first->deadline.ms))
            first = p;
    }
    if (!first) {
        r->reported_deadline = WALL_NONE;
    } else if (!wall_is_set(r->reported_deadline) ||
               r->reported_deadline.ms != first->deadline.ms) {
        r->reported_deadline = first->deadline;
        for (size_t i = 0; i < r->n_pending; i++)
            r->pending[i].is_reported |= r->pending[i].event.kind == NOTICE_RECLAIM;
        if (!report_pending(r, first))
            return false;
    }
    for (size_t i = 0; i < r->n_pending; i++) {
        struct pending *p = &r->pending[i];
        if (p->event.kind != NOTICE_MAINTENANCE || p->is_reported)
            continue;
        p->is_reported = true;
        if (!report_pending(r, p))
            return false;
    }
    return true;
}

static void on_events(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct azure_reader *r = ctx;
    struct azure_events events = {.n = 0};
    struct err e;
    if (!is_wanted(r, failed))
        return;
    int rc = check(failed, reply, EVENTS_PATH, &e);
    if (rc == 0)
        rc = azure_notice_parse_events(
            buf_str(&reply->body), reply->body.len, r->machine[0] ? r->machine : NULL, &events, &e);
    if (rc != 0 && events.n > 0)
        add_pending(r, &events);
    bool is_read = rc == 0 || events.n > 0;
    if (is_read)
        keep(r, &events, http_reply_header(reply, "Date"));
    azure_events_deinit(&events);
    r->is_on = r->is_on || is_read;
    if (is_read && !report_events(r))
        return;
    if (rc != 0) {
        notice_reader_round_ended(&r->base, &e);
        return;
    }
    /* the round has read the notices, but not the identity */
    if (r->machine[0] || notice_reader_identity_failed(&r->base, &r->unknown))
        notice_reader_round_ended(&r->base, NULL);
}

static void request_events(struct azure_reader *r)
{
    ask(r, EVENTS_PATH, NULL, r->is_on ? TIMEOUT_MS : FIRST_TIMEOUT_MS, on_events);
}

/* ---- acknowledging ---- */

static bool is_due(const struct pending *p)
{
    return p->asked && p->tries < ACKNOWLEDGE_TRIES;
}

/* NULL if nothing is due. The caller frees it. */
static char *start_requests(struct azure_reader *r)
{
    json_t *list = json_array(), *body = json_object();
    for (size_t i = 0; i < r->n_pending; i++)
        if (is_due(&r->pending[i]))
            json_array_append_new(list, json_pack("{s:s}", "EventId", r->pending[i].event.id));
    bool due = json_array_size(list) > 0;
    json_object_set_new(body, "StartRequests", list);
    char *text = due ? json_dump_text(body) : NULL;
    json_decref(body);
    return text;
}

/* Permanently refused, or accepted: not repeated. */
static void on_acknowledged(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct azure_reader *r = ctx;
    struct err e;
    if (!is_wanted(r, failed))
        return;
    int rc = check(failed, reply, "StartRequests", &e);
    for (size_t i = 0; i < r->n_pending; i++) {
        struct pending *p = &r->pending[i];
        if (is_due(p))
            p->tries = rc == 0 || rc == ERR_INVALID ? ACKNOWLEDGE_TRIES : p->tries + 1;
    }
    if (rc != 0)
        log_warn("an event could not be acknowledged: Azure proceeds at its deadline", log_err(&e));
    request_events(r);
}

static void acknowledge(struct notice_reader *base)
{
    struct azure_reader *r = (struct azure_reader *)base;
    for (size_t i = 0; i < r->n_pending; i++)
        r->pending[i].asked |= r->pending[i].event.kind == NOTICE_RECLAIM &&
                               r->pending[i].is_reported &&
                               !r->pending[i].event.is_unknown; /* its effect is unknown */
}

/* ---- rounds ---- */

static void continue_round(struct azure_reader *r)
{
    char *requests = start_requests(r);
    if (requests)
        ask(r, EVENTS_PATH, requests, TIMEOUT_MS, on_acknowledged);
    else
        request_events(r);
    free(requests);
}

static void on_instance(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct azure_reader *r = ctx;
    if (!is_wanted(r, failed))
        return;
    int rc = check(failed, reply, INSTANCE_PATH, &r->unknown);
    if (rc == 0)
        rc = parse_instance(buf_str(&reply->body), reply->body.len, r, &r->unknown);
    if (rc != 0 || r->base.identity_reported || notice_reader_report_identity(&r->base))
        continue_round(r);
}

static void start_round(struct notice_reader *base)
{
    struct azure_reader *r = (struct azure_reader *)base;
    if (r->machine[0])
        continue_round(r);
    else
        ask(r, INSTANCE_PATH, NULL, TIMEOUT_MS, on_instance);
}

static void destroy(struct notice_reader *base)
{
    struct azure_reader *r = (struct azure_reader *)base;
    r->destroyed = true;
    if (r->call)
        http_cancel(r->http, r->call);
    else
        free_reader(r);
}

static int create(
    const struct notice_reader_options *o, struct notice_reader **ret_reader, struct err *e)
{
    char *url = NULL;
    int rc = cloud_metadata(AZURE_IMDS_URL, o->base_url, &url, e);
    if (rc != 0)
        return rc;
    struct azure_reader *r = mem_alloc(sizeof(*r));
    r->url = url;
    r->http = o->http;
    r->reported_deadline = WALL_NONE;
    *ret_reader = &r->base;
    return 0;
}

const struct notice_provider azure_notice_provider = {.name = "azure",
    .create = create,
    .round = start_round,
    .acknowledge = acknowledge,
    .destroy = destroy};
