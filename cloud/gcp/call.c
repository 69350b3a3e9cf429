/* SPDX-License-Identifier: Apache-2.0
 *
 * See call.h. Invariant: a token goes to the configured endpoint only, or to Google's own hosts,
 * over https or to a loopback address.
 */
#include "cloud/gcp/call.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)

/* ---- the life of a call ---- */

struct gcp_call *gcp_call_new(struct cloud_driver *d, const char *region, const struct stage *first)
{
    struct gcp_call *c = mem_alloc(sizeof(*c));
    c->d = (struct gcp_driver *)d;
    c->stage = first;
    if (!region || !*region || strlen(region) >= CLOUD_NAME_MAX ||
        strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region))
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is not a region of Google (expected one like us-central1)",
            region ? region : "");
    return c;
}

void gcp_call_deinit(struct cloud_call *base)
{
    struct gcp_call *c = (struct gcp_call *)base;
    oauth_cancel(&c->wait);
    cloud_quota_values_deinit(&c->region_quotas);
    cloud_quota_values_deinit(&c->project_quotas);
    buf_wipe(&c->body); /* the start-up script contains a one-use secret */
}

void gcp_call_finish(struct gcp_call *c, const struct err *e)
{
    cloud_call_finish(&c->base, e);
}

void gcp_call_continue(struct gcp_call *c, const struct stage *next)
{
    c->stage = next;
    cloud_call_step(&c->base);
}

void gcp_call_fail_unknown(struct gcp_call *c, const struct err *e)
{
    struct err unsure = *e;
    if (c->is_taken) {
        err_wrap(&unsure, "the launch was accepted, but its outcome is unknown");
        unsure.kind = ERR_UNAVAILABLE;
    }
    gcp_call_finish(c, &unsure);
}

/* ---- a request ---- */

/* The early notice is a preview: only the beta API supports it. */
static const char *version_for(const struct gcp_call *c)
{
    bool is_insert = str_eq(c->stage->method, "POST");
    return is_insert && strstr(buf_str(&c->body), "\"preemptionNoticeDuration\"") ? "beta" : "v1";
}

static void on_token(void *ctx, const struct err *e, const char *authorization)
{
    struct gcp_call *c = ctx;
    struct buf url = {0};
    if (e && c->is_taken)
        gcp_call_fail_unknown(c, e);
    else if (e)
        cloud_call_no_credentials(&c->base, e);
    if (e)
        return;
    bool has_body = str_eq(c->stage->method, "POST");
    if (c->stage->of_cloud_quotas)
        buf_printf(&url, "%s/v1/projects/%s", c->d->quotas_url, c->d->machine.project);
    else
        buf_printf(&url, "%s/compute/%s/projects/%s", c->d->endpoint_url, version_for(c),
            c->d->machine.project);
    c->stage->path(c, &url);
    struct http_request r = {
        .method = c->stage->method,
        .url = buf_str(&url),
        .headers = {authorization, has_body ? "Content-Type: application/json" : NULL},
        .body = has_body ? buf_str(&c->body) : NULL,
        .body_len = has_body ? c->body.len : 0,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = GCE_REPLY_MAX,
    };
    cloud_call_send(&c->base, &r);
    buf_deinit(&url);
}

void gcp_call_step(struct cloud_call *base)
{
    struct gcp_call *c = (struct gcp_call *)base;
    oauth_get(gcp_credential_oauth(c->d->credentials), &c->wait, on_token, c);
}

void gcp_call_on_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct gcp_call *c = (struct gcp_call *)base;
    struct err e;
    if (reply->status == 200) {
        c->stage->on_good(c, buf_str(&reply->body), reply->body.len);
    } else if (reply->status == 401 && !c->token_renewed) {
        c->token_renewed = true;
        oauth_refused(gcp_credential_oauth(c->d->credentials), &c->wait);
        cloud_call_step(base);
    } else {
        gce_parse_error(reply->status, buf_str(&reply->body), reply->body.len, &e);
        c->stage->on_refused(c, &e);
    }
}

void gcp_call_on_refused(struct gcp_call *c, const struct err *e)
{
    gcp_call_finish(c, e);
}

/* ---- waiting for an operation ---- */

void gcp_path_operation(struct gcp_call *c, struct buf *out)
{
    gce_path_operation(c->zone, c->operation.name, out);
}

void gcp_call_start_polling(struct gcp_call *c, int64_t first_ms, int64_t cap_ms, int64_t total_ms)
{
    c->poll_ms = first_ms;
    c->poll_cap_ms = cap_ms;
    c->poll_end.ms = clock_mono(c->d->calls.timers->clock).ms + total_ms;
}

void gcp_call_wait(struct gcp_call *c, const struct stage *poll)
{
    struct err e;
    if (clock_mono(c->d->calls.timers->clock).ms + c->poll_ms >= c->poll_end.ms) {
        err_set(&e, ERR_TIMEOUT, "operation %s is not over yet", c->operation.name);
        gcp_call_finish(c, &e);
        return;
    }
    c->stage = poll;
    cloud_call_pause(&c->base, c->poll_ms);
    c->poll_ms = 2 * c->poll_ms < c->poll_cap_ms ? 2 * c->poll_ms : c->poll_cap_ms;
}

/* ---- zones ---- */

void gcp_remember_zone(struct gcp_driver *d, const char *zone)
{
    for (size_t i = 0; i < d->n_zones; i++)
        if (str_eq(d->zones[i], zone))
            return;
    if (d->n_zones < GCE_ZONES_MAX)
        STR_COPY(d->zones[d->n_zones++], zone);
}
