/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges with the identity provider (see oidc.h):
 *
 *     begun --> endpoints known --> (URL: done) | request --> reply --> (device: done)
 *                                                               |
 *                                        unknown key: reload once --> ID token verified --> done
 */
#include "scheduler/oidc/oidc.h"

#include "base/b64.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/oidc/jwt.h"
#include "scheduler/oidc/provider.h"
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MAX 4096
#define URI_MAX 2048
#define USER_CODE_MAX 64
#define EXPIRES_MAX_S 3600
#define INTERVAL_MAX_S 60
#define INTERVAL_USUAL_S 5 /* RFC 8628, 3.2 */

enum kind { BEGIN_DEVICE, REDEEM, AUTHORIZE };

struct oidc {
    struct oidc_options o;
    struct provider *provider;
    struct list exchanges;
    int n_exchanges;
};

struct exchange {
    struct oidc *o;
    struct link in_oidc;
    enum kind kind;
    struct timer start;
    struct provider_wait wait;
    bool was_reloaded, is_over; /* is_over: done has run, and a request is still in progress */
    struct buf form;            /* the request's body, or the query of the URL */
    char *nonce;                /* NULL: none was sent */
    char *id_token, *refresh;   /* of the reply */
    oidc_device_fn device_done;
    oidc_user_fn user_done;
    oidc_url_fn url_done;
    void *ctx;
};

/* ---- life ---- */

int oidc_create(const struct oidc_options *o, struct oidc **ret, struct err *e)
{
    struct oidc *c = mem_alloc(sizeof(*c));
    c->o = *o;
    int rc = provider_create(
        &(struct provider_options){.http = o->http, .clock = o->timers->clock, .config = o->config},
        &c->provider, e);
    if (rc != 0)
        free(c);
    else
        *ret = c;
    return rc;
}

const struct config_oidc *oidc_config(const struct oidc *o)
{
    return o->o.config;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void exchange_free(struct exchange *x)
{
    timer_stop(x->o->o.timers, &x->start);
    link_remove(&x->in_oidc);
    x->o->n_exchanges--;
    buf_wipe(&x->form);
    wipe(x->nonce);
    wipe(x->id_token);
    wipe(x->refresh);
    free(x);
}

static void report_failure(struct exchange *x, const struct err *e)
{
    if (x->is_over)
        return;
    x->is_over = true;
    if (x->kind == BEGIN_DEVICE)
        x->device_done(x->ctx, e, NULL);
    else if (x->kind == AUTHORIZE)
        x->url_done(x->ctx, e, NULL);
    else
        x->user_done(x->ctx, e, OIDC_PENDING, NULL, NULL);
}

void oidc_close(struct oidc *o, const char *why)
{
    struct err e;
    if (!o)
        return;
    err_set(&e, ERR_UNAVAILABLE, "%s", why);
    LIST_FOREACH (&o->exchanges, n) {
        struct exchange *x = LIST_ENTRY(n, struct exchange, in_oidc);
        report_failure(x, &e);
        timer_stop(o->o.timers, &x->start);
    }
}

void oidc_destroy(struct oidc *o)
{
    if (!o)
        return;
    for (struct link *n; (n = list_first(&o->exchanges));)
        exchange_free(LIST_ENTRY(n, struct exchange, in_oidc));
    provider_destroy(o->provider);
    free(o);
}

static void fail(struct exchange *x, const struct err *e)
{
    report_failure(x, e);
    exchange_free(x);
}

/* ---- the ID token ---- */

static void verify(struct exchange *x)
{
    struct oidc_identity id;
    json_t *claims = NULL;
    struct err e;
    int rc =
        jwt_verify(provider_keys(x->o->provider), x->id_token, strlen(x->id_token), &claims, &e);
    if (rc == ERR_NOT_FOUND && !x->was_reloaded) {
        x->was_reloaded = true;
        if (provider_reload(x->o->provider, &x->wait))
            return;
    }
    if (rc == 0)
        rc = oidc_identify(
            x->o->o.config, claims, x->nonce, clock_wall(x->o->o.timers->clock), &id, &e);
    json_wipe(claims);
    if (rc != 0) {
        err_set(&e, ERR_DENIED, "the provider's ID token is refused: %s", e.text);
        fail(x, &e);
        return;
    }
    if (!x->is_over) {
        x->is_over = true;
        x->user_done(x->ctx, NULL, OIDC_SIGNED_IN, &id, x->refresh);
    }
    exchange_free(x);
}

/* ---- replies ---- */

/* RFC 6749, 5.2, and RFC 8628, 3.5. Returns true, without an error, if the user is awaited. */
static bool read_refusal(
    const struct http_reply *r, const json_t *v, enum oidc_state *ret_state, struct err *e)
{
    const char *code = json_string_value(json_object_get(v, "error"));
    const char *text = json_string_value(json_object_get(v, "error_description"));
    char shown[STR_SHOW_MAX];
    *ret_state = str_eq(code, "slow_down") ? OIDC_SLOW_DOWN : OIDC_PENDING;
    if (str_eq(code, "authorization_pending") || str_eq(code, "slow_down"))
        return true;
    if (str_eq(code, "access_denied"))
        err_set(e, ERR_DENIED, "the sign-in was refused at the identity provider");
    else if (str_eq(code, "expired_token"))
        err_set(e, ERR_DENIED, "the code has expired: begin again");
    else if (str_eq(code, "invalid_grant"))
        err_set(e, ERR_DENIED,
            "the identity provider does not accept it: it was used before, has expired or was "
            "withdrawn: sign in again");
    else if (str_eq(code, "invalid_client") || str_eq(code, "unauthorized_client"))
        err_set(e, ERR_CONFIG,
            "the identity provider does not accept belayd (%s): check client_id and "
            "client_secret_file of oidc:, and which flows the client may use there",
            code);
    else if (code)
        err_set(e, ERR_IO, "the identity provider answered %s: %.200s", str_show(code, shown),
            text ? text : "(no description)");
    else
        err_set(e, ERR_IO, "the identity provider answered with HTTP status %d", r->status);
    return false;
}

static int read_device(const json_t *v, struct oidc_device *d, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, v, "the identity provider's reply", e);
    d->device_code = json_req_str(&r, "device_code", OIDC_DEVICE_CODE_MAX);
    d->user_code = json_req_str(&r, "user_code", USER_CODE_MAX);
    d->uri = json_req_str(&r, "verification_uri", URI_MAX);
    d->full_uri = json_opt_str(&r, "verification_uri_complete", URI_MAX, NULL);
    d->expires_ms = SECONDS_MS(json_req_i64(&r, "expires_in", 1, 86400));
    d->interval_ms = SECONDS_MS(json_opt_i64(&r, "interval", 1, 3600, INTERVAL_USUAL_S));
    if (d->expires_ms > SECONDS_MS(EXPIRES_MAX_S))
        d->expires_ms = SECONDS_MS(EXPIRES_MAX_S);
    if (d->interval_ms > SECONDS_MS(INTERVAL_MAX_S))
        d->interval_ms = SECONDS_MS(INTERVAL_MAX_S);
    if (r.rc == 0 && (str_has_control(d->user_code) || str_has_control(d->uri) ||
                         (d->full_uri && str_has_control(d->full_uri))))
        json_reader_fail(&r, NULL, "a text has control characters");
    return json_reader_finish_lenient(&r);
}

static int read_tokens(struct exchange *x, const json_t *v, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, v, "the identity provider's reply", e);
    const char *id_token = json_opt_str(&r, "id_token", JWT_BYTES_MAX, NULL);
    const char *refresh = json_opt_str(&r, "refresh_token", OIDC_REFRESH_MAX, NULL);
    if (r.rc == 0 && !id_token)
        json_reader_fail(
            &r, "id_token", "there is none: the client must have the scope openid at the provider");
    int rc = json_reader_finish_lenient(&r);
    if (rc == 0) {
        x->id_token = mem_strdup(id_token);
        x->refresh = mem_strdup(refresh);
    }
    return rc;
}

static void on_reply(void *ctx, const struct err *failure, const struct http_reply *r)
{
    struct exchange *x = ctx;
    struct oidc_device device = {0};
    enum oidc_state state = OIDC_PENDING;
    json_t *v = NULL;
    struct err e = {0};
    if (x->is_over) { /* closed meanwhile */
        exchange_free(x);
        return;
    }
    if (failure) {
        e = *failure;
        err_wrap(&e, "the identity provider was asked");
        fail(x, &e);
        return;
    }
    int rc = json_parse(buf_str(&r->body), r->body.len, PROVIDER_REPLY_MAX, &v, &e);
    if (r->status != 200) {
        bool awaits = read_refusal(r, v, &state, &e);
        rc = awaits ? 0 : (int)e.kind;
        if (awaits && x->kind == REDEEM) {
            x->is_over = true;
            x->user_done(x->ctx, NULL, state, NULL, NULL);
            exchange_free(x);
            json_wipe(v);
            return;
        }
        if (awaits)
            rc = err_set(
                &e, ERR_IO, "the identity provider answered with HTTP status %d", r->status);
    } else if (rc == 0) {
        rc = x->kind == BEGIN_DEVICE ? read_device(v, &device, &e) : read_tokens(x, v, &e);
    }
    if (rc != 0) {
        fail(x, &e);
    } else if (x->kind == BEGIN_DEVICE) {
        x->is_over = true;
        x->device_done(x->ctx, NULL, &device);
        exchange_free(x);
    } else {
        verify(x);
    }
    json_wipe(v);
}

/* ---- requests ---- */

static void add(struct buf *form, const char *name, const char *value)
{
    buf_printf(form, "%s%s=", form->len ? "&" : "", name);
    str_url_encode(form, value, strlen(value));
}

/* The header with the client's secret, or the secret in the form, as the provider wants it. NULL: a
 * public client, or it is in the form. The secret is read each time, so that it can be replaced. */
static int add_secret(struct exchange *x, char **ret_header, struct err *e)
{
    const struct config_oidc *c = x->o->o.config;
    struct buf secret = {0}, pair = {0}, coded = {0};
    *ret_header = NULL;
    if (!c->client_secret_file) {
        add(&x->form, "client_id", c->client_id);
        return 0;
    }
    int rc = fs_read_secret(c->client_secret_file, SECRET_MAX, &secret, e);
    while (secret.len > 0 && strchr("\r\n", secret.data[secret.len - 1]))
        buf_truncate(&secret, secret.len - 1);
    if (rc != 0) {
        err_wrap(e, "oidc: client_secret_file");
    } else if (provider_metadata(x->o->provider)->secret_is_in_body) {
        add(&x->form, "client_id", c->client_id);
        add(&x->form, "client_secret", buf_str(&secret));
    } else {
        str_url_encode(&pair, c->client_id, strlen(c->client_id));
        buf_addc(&pair, ':');
        str_url_encode(&pair, buf_str(&secret), secret.len);
        b64_encode(&coded, pair.data, pair.len);
        *ret_header = mem_printf("Authorization: Basic %s", buf_str(&coded));
    }
    buf_wipe(&secret);
    buf_wipe(&pair);
    buf_wipe(&coded);
    return rc;
}

static void send(struct exchange *x)
{
    const struct provider_metadata *m = provider_metadata(x->o->provider);
    const char *url = x->kind == BEGIN_DEVICE ? m->device_endpoint : m->token_endpoint;
    char *header;
    struct err e;
    int rc = 0;
    if (!url)
        rc = err_set(&e, ERR_CONFIG,
            "the identity provider has no device flow (device_authorization_endpoint): sign in "
            "with a browser, or ask an administrator for a token");
    if (rc == 0)
        rc = add_secret(x, &header, &e);
    if (rc != 0) {
        fail(x, &e);
        return;
    }
    http_start(x->o->o.http,
        &(struct http_request){.method = "POST",
            .url = url,
            .headers = {"Content-Type: application/x-www-form-urlencoded",
                "Accept: application/json", header},
            .body = x->form.data,
            .body_len = x->form.len,
            .timeout_ms = PROVIDER_CALL_MS,
            .max_reply_bytes = PROVIDER_REPLY_MAX,
            .tls = {.ca_pem = provider_ca(x->o->provider)}},
        on_reply, x);
    wipe(header);
}

static void give_url(struct exchange *x)
{
    const char *base = provider_metadata(x->o->provider)->authorization_endpoint;
    char *url = mem_printf("%s%c%s", base, strchr(base, '?') ? '&' : '?', buf_str(&x->form));
    x->is_over = true;
    x->url_done(x->ctx, NULL, url);
    free(url);
    exchange_free(x);
}

static void proceed(struct exchange *x)
{
    if (x->is_over)
        exchange_free(x);
    else if (x->id_token)
        verify(x);
    else if (x->kind == AUTHORIZE)
        give_url(x);
    else
        send(x);
}

static void on_loaded(struct provider_wait *w, const struct err *e)
{
    struct exchange *x = LIST_ENTRY(w, struct exchange, wait);
    if (e)
        fail(x, e);
    else
        proceed(x);
}

static void on_start(struct timer *t, void *ctx)
{
    struct exchange *x = ctx;
    (void)t;
    if (provider_ready(x->o->provider, &x->wait))
        proceed(x);
}

static struct exchange *begin(struct oidc *o, enum kind kind, void *ctx, struct err *e)
{
    if (o->n_exchanges >= OIDC_EXCHANGES_MAX) {
        err_set(e, ERR_THROTTLED, "%d sign-ins are in progress: try again in a few seconds",
            OIDC_EXCHANGES_MAX);
        return NULL;
    }
    struct exchange *x = mem_alloc(sizeof(*x));
    x->o = o;
    x->kind = kind;
    x->ctx = ctx;
    x->wait.fn = on_loaded;
    o->n_exchanges++;
    list_push_back(&o->exchanges, &x->in_oidc);
    timer_init(&x->start, on_start, x);
    timer_start(o->o.timers, &x->start, 0);
    return x;
}

/* ---- the calls ---- */

int oidc_begin_device(struct oidc *o, oidc_device_fn done, void *ctx, struct err *e)
{
    struct exchange *x = begin(o, BEGIN_DEVICE, ctx, e);
    if (!x)
        return e->kind;
    x->device_done = done;
    add(&x->form, "scope", o->o.config->scopes);
    return 0;
}

static struct exchange *redeem(
    struct oidc *o, const char *grant, oidc_user_fn done, void *ctx, struct err *e)
{
    struct exchange *x = begin(o, REDEEM, ctx, e);
    if (!x)
        return NULL;
    x->user_done = done;
    add(&x->form, "grant_type", grant);
    return x;
}

int oidc_redeem_device(
    struct oidc *o, const char *device_code, oidc_user_fn done, void *ctx, struct err *e)
{
    struct exchange *x = redeem(o, "urn:ietf:params:oauth:grant-type:device_code", done, ctx, e);
    if (!x)
        return e->kind;
    add(&x->form, "device_code", device_code);
    return 0;
}

int oidc_redeem_code(struct oidc *o, const char *code, const char *verifier,
    const char *redirect_uri, const char *nonce, oidc_user_fn done, void *ctx, struct err *e)
{
    struct exchange *x = redeem(o, "authorization_code", done, ctx, e);
    if (!x)
        return e->kind;
    add(&x->form, "code", code);
    add(&x->form, "redirect_uri", redirect_uri);
    add(&x->form, "code_verifier", verifier);
    x->nonce = mem_strdup(nonce);
    return 0;
}

int oidc_renew(struct oidc *o, const char *refresh, oidc_user_fn done, void *ctx, struct err *e)
{
    struct exchange *x = redeem(o, "refresh_token", done, ctx, e);
    if (!x)
        return e->kind;
    add(&x->form, "refresh_token", refresh);
    return 0;
}

/* The scopes without offline_access: a browser signs in again instead. */
static char *browser_scopes(const char *scopes)
{
    struct buf out = {0};
    for (const char *word = scopes; *word;) {
        size_t n = strcspn(word, " ");
        if (n != strlen("offline_access") || strncmp(word, "offline_access", n) != 0)
            buf_printf(&out, "%s%.*s", out.len ? " " : "", (int)n, word);
        word += n + (word[n] == ' ');
    }
    return buf_take(&out);
}

int oidc_authorize(struct oidc *o, const char *redirect_uri, const char *state, const char *nonce,
    const char *verifier, oidc_url_fn done, void *ctx, struct err *e)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct buf challenge = {0};
    struct exchange *x = begin(o, AUTHORIZE, ctx, e);
    if (!x)
        return e->kind;
    x->url_done = done;
    EVP_Digest(verifier, strlen(verifier), hash, &n, EVP_sha256(), NULL);
    b64_url_encode(&challenge, hash, n);
    char *scopes = browser_scopes(o->o.config->scopes);
    add(&x->form, "response_type", "code");
    add(&x->form, "client_id", o->o.config->client_id);
    add(&x->form, "redirect_uri", redirect_uri);
    add(&x->form, "scope", scopes);
    add(&x->form, "state", state);
    add(&x->form, "nonce", nonce);
    add(&x->form, "code_challenge", buf_str(&challenge));
    add(&x->form, "code_challenge_method", "S256");
    free(scopes);
    buf_deinit(&challenge);
    return 0;
}
