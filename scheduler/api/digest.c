/* SPDX-License-Identifier: Apache-2.0
 *
 * The morning digest on request, and subscriptions to it. Administrators get that of the whole
 * cluster, others their own.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/calendar.h"
#include "job/notify_address.h"
#include "scheduler/core/lifecycle/digest.h"
#include "scheduler/digest/digest.h"
#include <stdlib.h>

#define BODY_MAX 4096

/* ---- the text ---- */

static int read_digest(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct digest *d = of;
    int rc = digest_read(d, r, e);
    if (rc == 0)
        *ret_reply = digest_json(d);
    return rc;
}

/* The moment of the digest on that day. */
static struct wall time_on(const struct digest_options *o, int32_t day)
{
    return core_digest_next(o, (struct wall){calendar_begin(o->zone, day).ms - 1});
}

/* The period of a day's digest, up to now at most. Returns false after an error reply. */
static bool set_period(
    struct request *q, const struct digest_options *o, struct wall now, struct digest *d)
{
    const char *text = http_request_query(q->x, "date");
    int32_t today = calendar_day(o->zone, now);
    struct calendar_days day = {.first = today, .last = today};
    struct err e;
    int rc = text ? calendar_parse(text, &day, &e) : 0;
    if (rc == 0 && (day.first != day.last || day.first > today))
        rc = err_set(&e, ERR_INVALID, "expected one day such as 2026-11-28, today at the latest");
    if (rc != 0) {
        err_wrap(&e, "date");
        http_reply_err(q->x, &e);
        return false;
    }
    d->zone = o->zone;
    d->from = time_on(o, day.first - 1);
    d->to = time_on(o, day.first);
    if (d->to.ms > now.ms)
        d->to = now;
    return true;
}

/* Whose digest it is: "" is the whole cluster. Returns false after an error reply. */
static bool set_user(struct request *q, struct digest *d)
{
    const char *user = http_request_query(q->x, "user");
    STR_COPY(d->user, user ? user : q->caller.admin ? "" : q->caller.user);
    return str_eq(d->user, q->caller.user) || q->caller.admin ||
           api_may(q, RIGHT_ADMIN, NULL, NULL);
}

/* Those of the configuration, or the defaults, with the zone. */
static struct digest_options options_of(const struct request *q)
{
    struct digest_options o = q->api->o.config->digest.options;
    struct err unused;
    if (zones_load(q->api->o.zones, q->api->o.config->digest.tz, &o.zone, &unused) != 0)
        o.zone = &zone_utc;
    return o;
}

void api_digest_show(struct request *q)
{
    const struct digest_options o = options_of(q);
    struct stamp now = tick_now(q->api->o.tick);
    struct digest *d = mem_alloc(sizeof(*d));
    if (!set_period(q, &o, now.wall, d) || !set_user(q, d)) {
        free(d);
        return;
    }
    digest_look(d, tick_model(q->api->o.tick), now);
    read_pool_run(q->api, q->x, &q->caller, READ_POOL_WAIT_MS, read_digest, d, free);
}

/* ---- subscriptions ---- */

_Static_assert(NOTIFY_SEALED_MAX < DIGEST_URL_MAX, "a sealed URL fits");

/* What a user may have: PagerDuty takes no digests. */
static const char *const formats[] = {"json", "slack", "teams", NULL};

/* Of the URL only the host, because it may be a secret. */
static json_t *subscription_json(const struct model *m, const char *user)
{
    const struct digest_row *r = core_digest_of(m, user);
    char host[NOTIFY_HOST_MAX];
    bool has_url = r && notify_sealed_host(r->url, host);
    return json_pack("{s:o,s:o,s:o}", "mail", api_json_opt_text(core_digest_mail(m, user)),
        "url_host", has_url ? json_text(host) : json_null(), "format",
        has_url ? json_string(notify_format_names[r->format]) : json_null());
}

static void reply_subscription(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    (void)api, (void)arg;
    api_reply_json(x, 200, subscription_json(m, viewer->user));
}

void api_digest_subscription(struct request *q)
{
    api_read_model(q, reply_subscription, 0);
}

struct subscribing {
    struct deferred_reply *deferred;
    struct tick *tick;
    struct digest_row to;
    bool mail, url; /* which of the two the request has */
};

static void on_subscribed(void *ctx, const struct err *e, int64_t id)
{
    struct subscribing *s = ctx;
    struct http_exchange *x = deferred_reply_take(s->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, subscription_json(tick_model(s->tick), s->to.user));
    free(s);
}

static int seal_into(struct request *q, const char *url, struct digest_row *to, struct err *e)
{
    char *sealed;
    int rc = notify_seal_url(q->api->o.sealer, q->caller.user, url, &sealed, e);
    if (rc != 0)
        return err_wrap(e, "subscription.url");
    STR_COPY(to->url, sealed);
    free(sealed);
    return 0;
}

static int read_subscription(
    struct request *q, const json_t *body, struct subscribing *s, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, body, "subscription", e);
    const char *mail = json_opt_str(&r, "mail", NOTIFY_ADDRESS_MAX, NULL),
               *url = json_opt_str(&r, "url", NOTIFY_URL_MAX, NULL);
    s->to.format = (enum notify_format)json_opt_enum(&r, "format", formats, NOTIFY_JSON);
    int rc = json_reader_finish(&r);
    s->mail = json_object_get(body, "mail") != NULL;
    s->url = json_object_get(body, "url") != NULL;
    if (rc == 0 && json_object_get(body, "format") && !url)
        rc = err_set(e, ERR_INVALID, "subscription.format: it goes with a url");
    if (rc == 0 && mail && notify_check_address(mail, e) != 0)
        rc = err_wrap(e, "subscription.mail");
    if (rc == 0 && url)
        rc = seal_into(q, url, &s->to, e);
    if (rc == 0 && (mail || url) && !q->api->o.config->digest.is_set)
        rc = err_set(e, ERR_CONFLICT,
            "no morning digest is sent: belayd's configuration has no section digest");
    STR_COPY(s->to.user, q->caller.user);
    STR_COPY(s->to.mail, mail ? mail : "");
    return rc;
}

/* {"mail": ADDRESS, "url": URL, "format": FORMAT}: null ends one of the two, and what is absent
 * stays. */
void api_digest_subscribe(struct request *q)
{
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    struct subscribing *s = mem_alloc(sizeof(*s));
    struct err e;
    *s = (struct subscribing){.tick = q->api->o.tick, .to.told_until = WALL_NONE};
    int rc = read_subscription(q, body, s, &e);
    json_decref(body);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        free(s);
        return;
    }
    const struct event ev = {
        .type = EV_DIGEST_SET, .digest_set = {.to = &s->to, .mail = s->mail, .url = s->url}};
    s->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post(q->api->o.tick, &ev, on_subscribed, s);
}
