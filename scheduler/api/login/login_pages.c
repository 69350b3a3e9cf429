/* SPDX-License-Identifier: Apache-2.0
 *
 * Signing in with a browser: the authorization code flow with PKCE, state and nonce.
 *
 *     GET /login?next=PATH   303 to the provider, with a sealed cookie that holds what was sent
 *     GET /login/callback    the provider sends the browser here with a code: 303 to PATH, with the
 *                            cookie of the session
 *     GET /login/done        where a browser lands that came from nowhere: 303 to the console. No
 *                            page could greet the user here: the session's cookie is
 *                            SameSite=Strict, so it is not sent as long as the provider's page is
 *                            what the navigation began with
 *
 * belayd keeps nothing of a sign-in that was only begun. The first cookie binds it to the browser,
 * so that nobody can have another one finish their own; the provider takes each code once.
 */
#include "scheduler/api/login/sign_in.h"

#include "base/mem.h"
#include "base/prng.h"
#include <stdlib.h>
#include <string.h>

#define BEGUN_COOKIE "__Host-belay-login"
#define BEGUN_WHAT "login-browser"
#define BEGUN_S 600
/* The provider's page sends the browser back: SameSite=Strict would keep the cookie from it. */
#define BEGUN_FLAGS "; Path=/; Secure; HttpOnly; SameSite=Lax"
#define RANDOM_BYTES 32
#define NEXT_MAX 512
#define COOKIE_MAX 6144

/* ---- pages ---- */

static void add_html(struct buf *out, const char *text)
{
    for (; *text; text++) {
        static const char *const names[] = {
            ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;", ['\''] = "&#39;"};
        unsigned char c = (unsigned char)*text;
        if (c < sizeof(names) / sizeof(names[0]) && names[c])
            buf_adds(out, names[c]);
        else
            buf_addc(out, *text);
    }
}

static void reply_page(struct http_exchange *x, int status, const char *title, const char *text)
{
    struct buf page = {0};
    buf_adds(
        &page, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>belay: ");
    add_html(&page, title);
    buf_adds(&page, "</title></head><body><h1>");
    add_html(&page, title);
    buf_adds(&page, "</h1><p>");
    add_html(&page, text);
    buf_adds(&page, "</p></body></html>\n");
    http_reply_add_header(x, "Cache-Control", "no-store");
    http_reply_add_header(
        x, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    http_reply_add_header(x, "Referrer-Policy", "no-referrer");
    http_reply_add_header(x, "X-Content-Type-Options", "nosniff");
    http_reply_text(x, status, "text/html; charset=utf-8", buf_str(&page));
    buf_deinit(&page);
}

static void reply_failure(struct http_exchange *x, const struct err *e)
{
    reply_page(x, http_status_of(e->kind), "Not signed in", e->text);
}

static void redirect(struct http_exchange *x, const char *url)
{
    http_reply_add_header(x, "Location", url);
    http_reply_add_header(x, "Cache-Control", "no-store");
    http_reply_add_header(x, "Referrer-Policy", "no-referrer");
    http_reply_bytes(x, 303, NULL, NULL, 0);
}

/* ---- the begin ---- */

/* A path of this server, so that nobody is sent elsewhere. */
static bool is_own_path(const char *path)
{
    if (path[0] != '/' || path[1] == '/' || path[1] == '\\' || strlen(path) > NEXT_MAX)
        return false;
    for (; *path; path++)
        if (*path <= ' ' || *path > '~' || *path == '\\')
            return false;
    return true;
}

static char *redirect_uri(const struct api *a)
{
    return mem_printf("%s/login/callback", a->server_url);
}

struct begun {
    struct deferred_reply *deferred;
    char *cookie;
};

static void on_url(void *ctx, const struct err *e, const char *url)
{
    struct begun *b = ctx;
    struct http_exchange *x = deferred_reply_take(b->deferred);
    if (x && e) {
        reply_failure(x, e);
    } else if (x) {
        http_reply_add_header(x, "Set-Cookie", b->cookie);
        redirect(x, url);
    }
    explicit_bzero(b->cookie, strlen(b->cookie));
    free(b->cookie);
    free(b);
}

static char *begun_cookie(const struct api *a, const char *state, const char *nonce,
    const char *verifier, const char *next)
{
    struct buf plain = {0};
    struct wall now = clock_wall(a->o.timers->clock);
    json_add_secret(
        &plain, json_pack("{s:s,s:s,s:s,s:s,s:I}", "state", state, "nonce", nonce, "verifier",
                    verifier, "next", next, "until", (json_int_t)(now.ms + SECONDS_MS(BEGUN_S))));
    char *sealed = seal(a->o.sealer, BEGUN_WHAT, plain.data, plain.len);
    char *cookie = mem_printf("%s=%s; Max-Age=%d" BEGUN_FLAGS, BEGUN_COOKIE, sealed, BEGUN_S);
    explicit_bzero(sealed, strlen(sealed));
    free(sealed);
    buf_wipe(&plain);
    return cookie;
}

void api_login_page(struct request *q)
{
    struct api *a = q->api;
    const char *next = http_request_query(q->x, "next");
    char state[2 * RANDOM_BYTES + 1], nonce[2 * RANDOM_BYTES + 1], verifier[2 * RANDOM_BYTES + 1];
    struct err e;
    if (!sign_in_is_configured(q) || !sign_in_pace(q))
        return;
    if (next && !is_own_path(next)) {
        err_set(&e, ERR_INVALID, "next: expected a path of this server, such as /jobs");
        reply_failure(q->x, &e);
        return;
    }
    random_hex(RANDOM_BYTES, state);
    random_hex(RANDOM_BYTES, nonce);
    random_hex(RANDOM_BYTES, verifier);
    struct begun *b = mem_alloc(sizeof(*b));
    b->cookie = begun_cookie(a, state, nonce, verifier, next ? next : "/login/done");
    b->deferred = deferred_reply_create(a, q->x, API_COMMIT_WAIT_MS);
    char *uri = redirect_uri(a);
    if (oidc_authorize(a->o.oidc, uri, state, nonce, verifier, on_url, b, &e) != 0)
        on_url(b, &e, NULL);
    free(uri);
    explicit_bzero(verifier, sizeof(verifier));
}

/* ---- the callback ---- */

/* What the cookie holds. ERR_DENIED: there is none, or it is not for this state. */
static int read_begun(struct request *q, const char *state, json_t **ret, struct err *e)
{
    char sealed[COOKIE_MAX];
    struct buf plain = {0};
    struct err why;
    json_t *v = NULL;
    struct wall now = clock_wall(q->api->o.timers->clock);
    int rc = api_cookie(q->x, BEGUN_COOKIE, sealed, sizeof(sealed)) ? 0 : ERR_DENIED;
    if (rc == 0)
        rc = seal_open(q->api->o.sealer, BEGUN_WHAT, sealed, &plain, &why);
    if (rc == 0)
        rc = json_parse(buf_str(&plain), plain.len, COOKIE_MAX, &v, &why);
    buf_wipe(&plain);
    if (rc != 0)
        return err_set(e, ERR_DENIED,
            "this browser has not begun a sign-in here, or has finished it: begin at %s/login",
            q->api->server_url);
    const char *sent = json_string_value(json_object_get(v, "state"));
    json_int_t until = json_integer_value(json_object_get(v, "until"));
    if (!state || !sent || !str_secret_eq(sent, state))
        rc = err_set(e, ERR_DENIED,
            "state: it is not the one that this browser was given: begin again at %s/login",
            q->api->server_url);
    else if (until <= now.ms)
        rc = err_set(e, ERR_DENIED, "this took longer than %d minutes: begin again at %s/login",
            BEGUN_S / 60, q->api->server_url);
    if (rc == 0)
        *ret = v;
    else
        json_wipe(v);
    return rc;
}

static void answer_browser(const struct sign_in *s, struct http_exchange *x, const struct err *e)
{
    char cookie[256];
    if (e) {
        reply_failure(x, e);
        return;
    }
    int64_t left_ms = s->row.expires_at.ms - clock_wall(s->api->o.timers->clock).ms;
    snprintf(cookie, sizeof(cookie), "%s=%s; Max-Age=%lld" LOGIN_COOKIE_FLAGS, LOGIN_COOKIE,
        s->token, (long long)(left_ms / 1000));
    http_reply_add_header(x, "Set-Cookie", cookie);
    explicit_bzero(cookie, sizeof(cookie));
    redirect(x, s->next);
}

/* The provider's own refusal, which it gives in the query. */
static int check_query(struct request *q, struct err *e)
{
    const char *error = http_request_query(q->x, "error");
    const char *text = http_request_query(q->x, "error_description");
    const char *issuer = http_request_query(q->x, "iss");
    const char *code = http_request_query(q->x, "code");
    char shown[STR_SHOW_MAX];
    if (issuer && !str_eq(issuer, oidc_config(q->api->o.oidc)->issuer))
        return err_set(
            e, ERR_DENIED, "iss: the answer is from another provider, %s", str_show(issuer, shown));
    if (error)
        return err_set(e, ERR_DENIED, "the identity provider refused: %s: %.200s",
            str_show(error, shown), text ? text : "(no description)");
    if (!code || !code[0] || strlen(code) > OIDC_CODE_MAX)
        return err_set(e, ERR_INVALID, "code: expected the provider's code");
    return 0;
}

void api_login_callback(struct request *q)
{
    struct err e;
    json_t *begun = NULL;
    const char *verifier = NULL, *nonce = NULL, *next = NULL;
    if (!sign_in_is_configured(q) || !sign_in_pace(q))
        return;
    int rc = read_begun(q, http_request_query(q->x, "state"), &begun, &e);
    if (rc == 0)
        rc = check_query(q, &e);
    if (rc == 0 && json_unpack(begun, "{s:s,s:s,s:s}", "verifier", &verifier, "nonce", &nonce,
                       "next", &next) != 0)
        rc = err_set(&e, ERR_DENIED, "the cookie is of another version: begin again");
    /* whatever happens, this begin is over */
    http_reply_add_header(q->x, "Set-Cookie", BEGUN_COOKIE "=; Max-Age=0" BEGUN_FLAGS);
    if (rc != 0) {
        reply_failure(q->x, &e);
        json_wipe(begun);
        return;
    }
    struct sign_in *s = sign_in_begin(q, answer_browser);
    char *uri = redirect_uri(q->api);
    s->next = mem_strdup(next);
    if (oidc_redeem_code(q->api->o.oidc, http_request_query(q->x, "code"), verifier, uri, nonce,
            sign_in_on_user, s, &e) != 0)
        sign_in_fail(s, &e);
    free(uri);
    json_wipe(begun);
}

void api_login_done(struct request *q)
{
    redirect(q->x, "/");
}
