/* SPDX-License-Identifier: Apache-2.0
 *
 * Signing in from a command line, and who one is. The device flow needs no memory in belayd: the
 * client keeps the provider's device code, sealed.
 *
 *     POST /login/device            --> {"device": SEALED, "user_code", "verification_uri", ...}
 *     POST /login/token {"device"}  --> 202 {"state": "pending" | "slow-down"}, 201 with a token
 *     POST /login/refresh {"refresh"}
 */
#include "scheduler/api/login/sign_in.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

#define BODY_MAX (24u << 10)
#define SEALED_MAX (20u << 10)
#define TOKEN_MAX 256
#define DEVICE_WHAT "login-device"

/* Reads {"KEY": "text"}. NULL after an error reply; free with wipe. */
static char *read_text(struct request *q, const char *key)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return NULL;
    json_reader_init(&r, body, "", &e);
    char *text = mem_strdup(json_req_str(&r, key, SEALED_MAX));
    if (json_reader_finish(&r) != 0) {
        http_reply_err(q->x, &e);
        free(text);
        text = NULL;
    }
    json_wipe(body);
    return text;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* ---- the device flow ---- */

static void on_device(void *ctx, const struct err *e, const struct oidc_device *d)
{
    struct deferred_reply *deferred = ctx;
    struct api *a = deferred->api;
    struct http_exchange *x = deferred_reply_take(deferred);
    if (!x)
        return;
    if (e) {
        http_reply_err(x, e);
        return;
    }
    char *sealed = seal(a->o.sealer, DEVICE_WHAT, d->device_code, strlen(d->device_code));
    json_t *v = json_pack("{s:s,s:s,s:s,s:I,s:I}", "device", sealed, "user_code", d->user_code,
        "verification_uri", d->uri, "expires_ms", (json_int_t)d->expires_ms, "interval_ms",
        (json_int_t)d->interval_ms);
    json_object_set_new(
        v, "verification_uri_complete", d->full_uri ? json_string(d->full_uri) : json_null());
    api_reply_json(x, 200, v);
    wipe(sealed);
}

void api_login_device(struct request *q)
{
    struct err e;
    if (!sign_in_is_configured(q) || !sign_in_pace(q))
        return;
    struct deferred_reply *d = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    if (oidc_begin_device(q->api->o.oidc, on_device, d, &e) != 0)
        on_device(d, &e, NULL);
}

static void answer_json(const struct sign_in *s, struct http_exchange *x, const struct err *e)
{
    http_reply_add_header(x, "Cache-Control", "no-store");
    if (e)
        http_reply_err(x, e);
    else if (s->state != OIDC_SIGNED_IN)
        api_reply_json(x, 202,
            json_pack("{s:s}", "state", s->state == OIDC_PENDING ? "pending" : "slow-down"));
    else
        api_reply_json(x, 201, sign_in_json(s));
}

void api_login_token(struct request *q)
{
    struct buf code = {0};
    struct err e;
    if (!sign_in_is_configured(q) || !sign_in_pace(q))
        return;
    char *sealed = read_text(q, "device");
    if (!sealed)
        return;
    int rc = seal_open(q->api->o.sealer, DEVICE_WHAT, sealed, &code, &e);
    wipe(sealed);
    if (rc != 0) {
        buf_wipe(&code);
        api_reply_failure(q->x, ERR_INVALID, "device: it is not one that POST /login/device gave");
        return;
    }
    struct sign_in *s = sign_in_begin(q, answer_json);
    if (oidc_redeem_device(q->api->o.oidc, buf_str(&code), sign_in_on_user, s, &e) != 0)
        sign_in_fail(s, &e);
    buf_wipe(&code);
}

void api_login_refresh(struct request *q)
{
    struct err e;
    char *refresh = NULL;
    if (!sign_in_is_configured(q) || !sign_in_pace(q))
        return;
    char *sealed = read_text(q, "refresh");
    if (!sealed)
        return;
    struct sign_in *s = sign_in_begin(q, answer_json);
    int rc = sign_in_open_refresh(s, sealed, &refresh, &e);
    wipe(sealed);
    if (rc == 0) {
        s->refresh = refresh; /* kept unless the provider gives another one */
        rc = oidc_renew(q->api->o.oidc, refresh, sign_in_on_user, s, &e);
    }
    if (rc != 0)
        sign_in_fail(s, &e);
}

/* ---- who one is ---- */

json_t *api_json_teams(const struct api *a, const char *user)
{
    const struct queue_policy *p = &a->o.config->policy;
    json_t *teams = json_array();
    for (size_t i = 0; i < p->n_teams; i++)
        if (policy_is_member(p, p->teams[i].name, user))
            json_array_append_new(teams, json_string(p->teams[i].name));
    return teams;
}

static const char *const scope_kinds[SCOPES] = {
    [SCOPE_NONE] = "",
    [SCOPE_READ_ONLY] = "read-only",
    [SCOPE_METRICS] = "metrics",
    [SCOPE_CI] = "ci",
    [SCOPE_POOL] = "pool",
    [SCOPE_CRON] = "cron",
    [SCOPE_JOB] = "job",
};

void api_whoami(struct request *q)
{
    const struct caller *c = &q->caller;
    char token[TOKEN_MAX], csrf[SEAL_MAC_HEX + 1] = "";
    json_t *o = json_pack("{s:s,s:s,s:b,s:s}", "user", c->user, "role", role_names[c->role],
        "admin", (int)c->admin, "by",
        c->is_session ? "session"
        : c->is_login ? "login"
        : c->token    ? "token"
        : c->job      ? "job"
                      : "socket");
    json_object_set_new(o, "scope", api_json_opt_text(scope_kinds[c->scope.kind]));
    json_object_set_new(o, "teams", api_json_teams(q->api, c->user));
    json_object_set_new(o, "token", c->token ? json_integer(c->token) : json_null());
    json_object_set_new(o, "expires_at", api_json_time(c->expires_at));
    if (q->by_cookie && api_cookie(q->x, LOGIN_COOKIE, token, sizeof(token)))
        api_csrf(q->api, token, csrf);
    json_object_set_new(o, "csrf", api_json_opt_text(csrf));
    api_reply_json(q->x, 200, o);
}

void api_login_methods(struct request *q)
{
    /* the provider sends a browser to belayd's own URL, and not to the listener of one machine */
    api_reply_json(q->x, 200, json_pack("{s:b}", "oidc", q->api->o.oidc && !q->is_loopback));
}

/* Ends the token that was sent; a browser also forgets its cookie. */
void api_logout(struct request *q)
{
    if (!q->caller.token) {
        api_reply_failure(q->x, ERR_INVALID,
            "there is nothing to end: this connection has no token; the UNIX socket says who you "
            "are");
        return;
    }
    http_reply_add_header(q->x, "Set-Cookie", LOGIN_COOKIE_END);
    api_revoke_token(q, q->caller.token);
}
