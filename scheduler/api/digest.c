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

static void reply_subscription(const struct api *api, struct http_exchange *x,
    const struct caller *viewer, const struct model *m, int64_t arg)
{
    (void)api, (void)arg;
    const char *mail = core_digest_mail(m, viewer->user);
    api_reply_json(x, 200, json_pack("{s:o}", "mail", api_json_opt_text(mail)));
}

void api_digest_subscription(struct request *q)
{
    api_read_model(q, reply_subscription, 0);
}

struct subscribing {
    struct deferred_reply *deferred;
    char mail[NOTIFY_ADDRESS_MAX + 1];
};

static void on_subscribed(void *ctx, const struct err *e, int64_t id)
{
    struct subscribing *s = ctx;
    struct http_exchange *x = deferred_reply_take(s->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, json_pack("{s:o}", "mail", api_json_opt_text(s->mail)));
    free(s);
}

static void post_subscription(struct request *q, const struct event *ev)
{
    struct subscribing *s = mem_alloc(sizeof(*s));
    s->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    STR_COPY(s->mail, ev->digest_set.mail);
    tick_post(q->api->o.tick, ev, on_subscribed, s);
}

/* {"mail": ADDRESS}, or null, which ends the subscription. */
void api_digest_subscribe(struct request *q)
{
    struct event ev = {.type = EV_DIGEST_SET};
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    json_reader_init(&r, body, "subscription", &e);
    const char *mail = json_opt_str(&r, "mail", NOTIFY_ADDRESS_MAX, NULL);
    int rc = json_reader_finish(&r);
    if (rc == 0 && mail && notify_check_address(mail, &e) != 0)
        rc = err_wrap(&e, "subscription.mail");
    if (rc == 0 && mail && !q->api->o.config->digest.is_set)
        rc = err_set(&e, ERR_CONFLICT,
            "no morning digest is sent: belayd's configuration has no section digest");
    STR_COPY(ev.digest_set.user, q->caller.user);
    STR_COPY(ev.digest_set.mail, mail ? mail : "");
    json_decref(body);
    if (rc == 0)
        post_subscription(q, &ev);
    else
        http_reply_err(q->x, &e);
}
