/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of browsers (see session.h).
 */
#include "scheduler/api/login/session.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/api/login/loopback.h"
#include "scheduler/api/login/sign_in.h"
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 4096
#define TOKEN_MAX 256
#define TOKEN_BYTES 24

struct session {
    struct deferred_reply *deferred;
    struct session_grant grant;
    int64_t replaces; /* the browser's session until now; 0: none */
    struct token_row row;
    char token[2 * TOKEN_BYTES + 8];
};

void api_token_hash(const struct api *a, const char *token, char hash[65])
{
    char *named = NULL;
    if (str_starts(token, LOOPBACK_PREFIX))
        named = mem_printf("%s:%s", loopback_key(a->loopback), token);
    ca_sha256_hex(named ? named : token, hash);
    if (named)
        explicit_bzero(named, strlen(named));
    free(named);
}

/* ---- the parent ---- */

static bool is_valid(const struct token_row *t, struct wall now)
{
    return !t->revoked && !(wall_is_set(t->expires_at) && t->expires_at.ms <= now.ms);
}

int session_read_parent(
    const struct api *a, const struct tick *t, int64_t id, struct token_row *ret, struct err *e)
{
    size_t n = 0;
    const struct token_row *put = t ? tick_tokens(t, &n) : NULL;
    struct token_row row;
    int rc = db_read_token(a->o.reader, id, &row, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (put[i].id == id)
            row = put[i];
    if (rc == 0 && (row.join || row.session || !is_valid(&row, clock_wall(a->o.timers->clock))))
        rc = err_set(e, ERR_NOT_FOUND, "token %lld is no longer valid", (long long)id);
    if (rc == 0)
        *ret = row;
    return rc;
}

/* ---- storing ---- */

/* A browser has one session: without this the list would grow by each link. */
static int end_session(const struct api *a, struct tick *t, int64_t id, struct err *e)
{
    struct token_row row;
    int rc = db_read_token(a->o.reader, id, &row, e);
    if (rc != 0)
        return rc;
    row.revoked = true;
    tick_put_token(t, &row);
    return 0;
}

static int store(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct session *s = ctx;
    const struct api *a = s->deferred->api;
    struct wall now = clock_wall(a->o.timers->clock);
    struct token_row row = {0}, parent;
    int rc = s->grant.parent ? session_read_parent(a, t, s->grant.parent, &parent, e) : 0;
    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_DENIED,
            "the token that this sign-in came from was revoked meanwhile: sign in with another");
    if (rc != 0)
        return rc;
    STR_COPY(row.user, s->grant.user);
    row.admin = s->grant.admin;
    row.expires_at = (struct wall){now.ms + SESSION_MS};
    if (s->grant.parent) {
        STR_COPY(row.user, parent.user);
        STR_COPY(row.role, parent.role);
        STR_COPY(row.scope, parent.scope);
        STR_COPY(row.teams, parent.teams);
        row.admin = parent.admin;
        row.login = parent.login;
        if (wall_is_set(parent.expires_at) && parent.expires_at.ms < row.expires_at.ms)
            row.expires_at = parent.expires_at;
    }
    row.session = true;
    row.parent = s->grant.parent;
    row.created_at = now;
    row.used_at = WALL_NONE;
    api_token_hash(a, s->token, row.hash);
    tick_put_token(t, &row);
    s->row = row;
    *ret_id = 0;
    return s->replaces ? end_session(a, t, s->replaces, e) : 0;
}

static void reply(
    const struct api *a, struct http_exchange *x, const struct token_row *row, const char *token)
{
    char csrf[SEAL_MAC_HEX + 1];
    api_csrf(a, token, csrf);
    http_reply_add_header(x, "Cache-Control", "no-store");
    api_reply_json(x, 201,
        json_pack("{s:s,s:o,s:s}", "user", row->user, "expires_at", api_json_time(row->expires_at),
            "csrf", csrf));
}

static void reply_new(const struct session *s, const struct api *a, struct http_exchange *x)
{
    char cookie[256];
    int64_t left_ms = s->row.expires_at.ms - clock_wall(a->o.timers->clock).ms;
    snprintf(cookie, sizeof(cookie), "%s=%s; Max-Age=%lld" LOGIN_COOKIE_FLAGS, LOGIN_COOKIE,
        s->token, (long long)(left_ms / 1000));
    http_reply_add_header(x, "Set-Cookie", cookie);
    explicit_bzero(cookie, sizeof(cookie));
    reply(a, x, &s->row, s->token);
}

static void on_stored(void *ctx, const struct err *e, int64_t id)
{
    struct session *s = ctx;
    const struct api *a = s->deferred->api;
    struct http_exchange *x = deferred_reply_take(s->deferred);
    (void)id;
    if (!e)
        log_info("a browser signed in", log_s("user", s->row.user), log_i("parent", s->row.parent));
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        reply_new(s, a, x);
    explicit_bzero(s, sizeof(*s));
    free(s);
}

/* Whether the browser's session is what it would get, with half of its time left. Then it stays: a
 * new one would end those of the browser's other pages, whose csrf is of the session. */
static bool may_stay(
    const struct token_row *now, const struct session_grant *g, const struct api *a)
{
    int64_t left_ms = now->expires_at.ms - clock_wall(a->o.timers->clock).ms;
    return now->parent == g->parent && now->admin == g->admin && str_eq(now->user, g->user) &&
           2 * left_ms >= now->expires_at.ms - now->created_at.ms;
}

void session_begin(struct request *q, const struct session_grant *g)
{
    char hex[2 * TOKEN_BYTES + 1], token[TOKEN_MAX];
    struct token_row now;
    bool has_session = api_cookie_token(q, &now) && now.session &&
                       api_cookie(q->x, LOGIN_COOKIE, token, sizeof(token));
    if (q->call)
        STR_COPY(q->call->row.user, g->user);
    if (has_session && may_stay(&now, g, q->api)) {
        reply(q->api, q->x, &now, token);
        explicit_bzero(token, sizeof(token));
        return;
    }
    struct session *s = mem_alloc(sizeof(*s));
    s->grant = *g;
    s->replaces = has_session ? now.id : 0;
    random_hex(TOKEN_BYTES, hex);
    snprintf(
        s->token, sizeof(s->token), "%s%s", q->is_loopback ? LOOPBACK_PREFIX : SESSION_PREFIX, hex);
    explicit_bzero(hex, sizeof(hex));
    s->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, store, on_stored, s);
}

/* ---- who may begin one ---- */

bool session_may_begin(struct request *q, const char *user)
{
    struct token_row signed_in;
    if (!api_is_own_origin(q)) {
        api_reply_failure(q->x, ERR_DENIED,
            "a sign-in was sent by a page of another site: Origin must be this server's");
        return false;
    }
    if (!user || !api_cookie_token(q, &signed_in) || str_eq(user, signed_in.user))
        return true;
    api_reply_failure(q->x, ERR_CONFLICT,
        "this browser is signed in as %s, and this is a sign-in of %s: sign out first",
        signed_in.user, user);
    return false;
}

/* Only tokens of the API: a session begins no other. Refuses after a guess too many. */
static bool find_parent(struct request *q, const char *token, struct token_row *ret)
{
    char hash[65];
    struct err e;
    ca_sha256_hex(token, hash);
    int rc = db_read_token_by_hash(q->api->o.reader, hash, ret, &e);
    if (rc == 0 && !ret->join && !ret->session &&
        is_valid(ret, clock_wall(q->api->o.timers->clock)))
        return true;
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        http_reply_err(q->x, &e);
        return false;
    }
    err_set(&e, ERR_DENIED,
        "the token is not known, has expired or was revoked: make another one (belay token "
        "create), or ask an administrator for one");
    api_reply_status(q->x, 401, &e);
    return false;
}

int session_read_secret(const json_t *body, const char *key, char *out, size_t size, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, body, "", e);
    json_req_strcpy(&r, key, out, size);
    int rc = json_reader_finish(&r);
    if (rc != 0)
        explicit_bzero(out, size);
    return rc;
}

void api_login_session(struct request *q)
{
    struct err e;
    struct token_row parent;
    char token[TOKEN_MAX];
    if (!sign_in_pace(q) || !session_may_begin(q, NULL))
        return;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    int rc = session_read_secret(body, "token", token, sizeof(token), &e);
    json_wipe(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    else if (find_parent(q, token, &parent) && session_may_begin(q, parent.user)) {
        struct session_grant g = {.parent = parent.id, .admin = parent.admin};
        STR_COPY(g.user, parent.user);
        token_uses_note(q->api->token_uses, &parent);
        session_begin(q, &g);
    }
    explicit_bzero(token, sizeof(token));
}
