/* SPDX-License-Identifier: Apache-2.0
 *
 * From a verified identity to a stored token (see sign_in.h).
 */
#include "scheduler/api/login/sign_in.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/prng.h"
#include <stdlib.h>
#include <string.h>

#define TOKEN_BYTES 24
#define REFRESH_WHAT "login-refresh"
#define LOGIN_WAIT_MS 60000

/* ---- life ---- */

struct sign_in *sign_in_begin(struct request *q, sign_in_fn answer)
{
    struct sign_in *s = mem_alloc(sizeof(*s));
    s->api = q->api;
    s->answer = answer;
    s->call = q->call;
    if (s->call)
        s->call->refs++;
    s->deferred = deferred_reply_create(q->api, q->x, LOGIN_WAIT_MS);
    return s;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* Answers, and frees s. */
static void finish(struct sign_in *s, const struct err *e)
{
    struct http_exchange *x = deferred_reply_take(s->deferred);
    if (x)
        s->answer(s, x, e);
    if (s->call)
        tick_call_release(s->call);
    wipe(s->refresh);
    free(s->next);
    free(s->user);
    free(s->subject);
    explicit_bzero(s, sizeof(*s));
    free(s);
}

void sign_in_fail(struct sign_in *s, const struct err *e)
{
    finish(s, e);
}

/* ---- the refresh token ---- */

static char *seal_refresh(const struct sign_in *s, int64_t id, const char *refresh)
{
    struct buf plain = {0};
    json_add_secret(&plain, json_pack("{s:I,s:s,s:s,s:s}", "id", (json_int_t)id, "user", s->id.user,
                                "subject", s->id.subject, "refresh", refresh));
    char *sealed = seal(s->api->o.sealer, REFRESH_WHAT, plain.data, plain.len);
    buf_wipe(&plain);
    return sealed;
}

int sign_in_open_refresh(struct sign_in *s, const char *sealed, char **ret_refresh, struct err *e)
{
    struct buf plain = {0};
    json_t *v = NULL;
    const char *user = NULL, *subject = NULL, *refresh = NULL;
    json_int_t id = 0;
    struct err why;
    int rc = seal_open(s->api->o.sealer, REFRESH_WHAT, sealed, &plain, &why);
    if (rc == 0)
        rc = json_parse(buf_str(&plain), plain.len, SEAL_PLAIN_MAX, &v, &why);
    if (rc == 0)
        rc = json_unpack(v, "{s:I,s:s,s:s,s:s}", "id", &id, "user", &user, "subject", &subject,
            "refresh", &refresh);
    if (rc == 0) {
        s->renews = id;
        s->user = mem_strdup(user);
        s->subject = mem_strdup(subject);
        *ret_refresh = mem_strdup(refresh);
    } else {
        err_set(e, ERR_DENIED,
            "refresh: it is not one of this cluster's, or its key is gone: sign in again (belay "
            "login)");
    }
    json_wipe(v);
    buf_wipe(&plain);
    return rc == 0 ? 0 : ERR_DENIED;
}

/* ---- storing ---- */

struct row_search {
    int64_t id;
    struct token_row found;
};

static int find_row(void *ctx, const struct token_row *t)
{
    struct row_search *f = ctx;
    if (t->id != f->id)
        return 0;
    f->found = *t;
    return 1;
}

/* The row that is renewed, as it is now: it may have been revoked meanwhile. */
static int read_renewed(
    const struct sign_in *s, struct tick *t, struct token_row *ret, struct err *e)
{
    struct row_search f = {.id = s->renews};
    size_t n;
    const struct token_row *put = tick_tokens(t, &n);
    int rc = db_read_tokens(s->api->o.reader, find_row, &f, e);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (put[i].id == s->renews)
            f.found = put[i];
    if (!f.found.login || f.found.revoked || !str_eq(f.found.user, s->id.user))
        return err_set(e, ERR_DENIED,
            "this sign-in was ended (belay logout, or belay token revoke): sign in again (belay "
            "login)");
    *ret = f.found;
    return 0;
}

static int store(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct sign_in *s = ctx;
    struct wall now = clock_wall(s->api->o.timers->clock);
    struct token_row row = {.login = true, .created_at = now, .used_at = WALL_NONE};
    STR_COPY(row.user, s->id.user);
    int rc = s->renews ? read_renewed(s, t, &row, e) : 0;
    if (rc != 0)
        return rc;
    ca_sha256_hex(s->token, row.hash);
    row.expires_at = (struct wall){now.ms + oidc_config(s->api->o.oidc)->token_ms};
    STR_COPY(row.role, s->id.has_role ? role_names[s->id.role] : "");
    STR_COPY(row.teams, s->id.teams);
    tick_put_token(t, &row);
    policy_join(&s->api->o.config->policy, row.user, row.teams);
    s->row = row;
    *ret_id = row.id;
    return 0;
}

static void on_stored(void *ctx, const struct err *e, int64_t id)
{
    struct sign_in *s = ctx;
    struct token_row stored;
    struct err why;
    (void)id;
    if (!e && db_read_token_by_hash(s->api->o.reader, s->row.hash, &stored, &why) != 0)
        e = &why;
    if (!e) {
        s->row.id = stored.id;
        if (s->refresh) {
            char *sealed = seal_refresh(s, stored.id, s->refresh);
            wipe(s->refresh);
            s->refresh = sealed;
        }
        log_info(s->renews ? "a sign-in was renewed" : "a user signed in",
            log_s("user", s->row.user), log_i("token", stored.id), log_s("teams", s->row.teams),
            log_s("role", s->row.role));
    }
    finish(s, e);
}

void sign_in_on_user(void *ctx, const struct err *e, enum oidc_state state,
    const struct oidc_identity *id, const char *refresh)
{
    struct sign_in *s = ctx;
    struct tick *tick = s->api->o.tick;
    struct err why;
    char hex[2 * TOKEN_BYTES + 1];
    s->state = state;
    if (e || state != OIDC_SIGNED_IN) {
        finish(s, e);
        return;
    }
    if (s->user && !(str_eq(s->user, id->user) && str_eq(s->subject, id->subject))) {
        err_set(&why, ERR_DENIED,
            "the identity provider renewed the sign-in of %s for another user: sign in again",
            s->user);
        finish(s, &why);
        return;
    }
    s->id = *id;
    /* a provider that does not rotate it gives none at a renewal */
    if (refresh) {
        wipe(s->refresh);
        s->refresh = mem_strdup(refresh);
    }
    random_hex(TOKEN_BYTES, hex);
    snprintf(s->token, sizeof(s->token), "b.%s", hex);
    explicit_bzero(hex, sizeof(hex));
    if (s->call)
        STR_COPY(s->call->row.user, id->user);
    tick_begin_call(tick, s->call);
    tick_post_work(tick, store, on_stored, s);
    tick_end_call(tick);
}

json_t *sign_in_json(const struct sign_in *s)
{
    struct caller c;
    access_init(&c, s->api->o.config, s->row.user, false);
    if (s->id.has_role)
        access_raise(&c, s->id.role);
    json_t *o = json_pack("{s:I,s:s,s:s,s:s,s:o}", "id", (json_int_t)s->row.id, "token", s->token,
        "user", s->row.user, "role", role_names[c.role], "expires_at",
        api_json_time(s->row.expires_at));
    json_object_set_new(o, "lifetime_ms", json_integer(oidc_config(s->api->o.oidc)->token_ms));
    json_object_set_new(o, "refresh", s->refresh ? json_string(s->refresh) : json_null());
    json_object_set_new(o, "teams", api_json_teams(s->api, s->row.user));
    return o;
}

/* ---- at the start ---- */

static int add_newest(void *ctx, const struct token_row *t)
{
    struct smap *newest = ctx;
    const struct token_row *other = t->login ? smap_get(newest, t->user) : NULL;
    if (!t->login || (other && other->expires_at.ms >= t->expires_at.ms))
        return 0;
    struct token_row *copy = mem_alloc(sizeof(*copy));
    *copy = *t;
    free(smap_remove(newest, t->user));
    smap_put(newest, t->user, copy);
    return 0;
}

void sign_in_load_teams(const struct api *a)
{
    struct smap newest = {0};
    struct err e;
    size_t pos = 0;
    const char *user;
    if (!a->o.config->policy.joined)
        return;
    if (db_read_tokens(a->o.reader, add_newest, &newest, &e) != 0)
        log_warn("the teams of users who signed in cannot be read: they have them again after "
                 "their next sign-in",
            log_err(&e));
    for (struct token_row *t; (t = smap_next(&newest, &pos, &user));) {
        policy_join(&a->o.config->policy, user, t->teams);
        free(t);
    }
    smap_deinit(&newest);
}

/* ---- callers without a user ---- */

bool sign_in_pace(struct request *q)
{
    char address[sizeof(q->r->peer_address)];
    STR_COPY(address, q->r->is_unix ? "unix" : q->r->peer_address);
    char *port = strrchr(address, ':');
    if (port)
        *port = '\0';
    if (rates_take(&q->api->login_rates, address, clock_mono(q->api->o.timers->clock)) == 0)
        return true;
    q->api->n_logins_paced++;
    http_reply_add_header(q->x, "Retry-After", "5");
    api_reply_failure(q->x, ERR_THROTTLED,
        "too many sign-ins from this address: nothing was done; try again in 5 s");
    return false;
}

bool sign_in_is_configured(struct request *q)
{
    if (q->api->o.oidc)
        return true;
    api_reply_failure(q->x, ERR_UNSUPPORTED,
        "nobody signs in here: belayd's configuration has no section oidc:; ask an administrator "
        "for a token (belay token create)");
    return false;
}
