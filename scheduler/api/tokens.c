/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for tokens. A token gives its user's rights, or fewer: a role at most, a scope.
 * Only an administrator can create one that gives more than its user has in the configuration
 * (admin), one for another user, or one for a machine to join.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define TOKEN_BODY_MAX 4096
#define TOKEN_BYTES 24
#define TTL_MAX_MS (10LL * 366 * 86400 * 1000)
#define JOIN_TTL_DEFAULT_MS (3600 * 1000)

/* ---- creating ---- */

struct new_token {
    struct deferred_reply *deferred;
    struct token_row row;
    char token[2 * TOKEN_BYTES + 8];
};

static int put_token(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct new_token *n = ctx;
    (void)ret_id, (void)e;
    tick_put_token(t, &n->row);
    return 0;
}

static void on_token_stored(void *ctx, const struct err *e, int64_t id)
{
    struct new_token *n = ctx;
    struct api *a = n->deferred->api;
    struct http_exchange *x = deferred_reply_take(n->deferred);
    struct token_row stored;
    struct err not_there;
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x && db_read_token_by_hash(a->o.reader, n->row.hash, &stored, &not_there) != 0)
        http_reply_err(x, &not_there);
    else if (x)
        api_reply_json(x, 201,
            json_pack("{s:I,s:s,s:s,s:s,s:o}", "id", (json_int_t)stored.id, "token", n->token,
                "ca_pem", ca_pem(a->o.ca), "server", a->server_url, "expires_at",
                api_json_time(stored.expires_at)));
    explicit_bzero(n->token, sizeof(n->token));
    free(n);
}

/* Selects the pool that a machine joins: the requested one, or the only reserved one. */
static void choose_pool(struct json_reader *r, const struct pools *pools, char pool[CORE_NAME_MAX])
{
    const struct config *c = pools_in_force(pools);
    char names[256] = "";
    const struct config_pool *asked = pool[0] ? pools_find(pools, pool) : NULL, *found = NULL;
    size_t n = 0, used = 0;
    for (size_t i = 0; i < c->n_pools; i++) {
        if (c->pools[i].row.elastic)
            continue;
        found = &c->pools[i];
        snprintf(names + used, sizeof(names) - used, "%s%s", n++ ? ", " : "", found->row.name);
        used = strlen(names);
    }
    if (pool[0] && (!asked || asked->row.elastic))
        json_reader_fail(
            r, "pool", "there is no reserved pool \"%s\" (belay pools lists them)", pool);
    else if (!pool[0] && n == 0)
        json_reader_fail(
            r, "pool", "there is no reserved pool to join (belay pools lists all pools)");
    else if (!pool[0] && n > 1)
        json_reader_fail(r, "pool", "say which reserved pool it joins with --pool: %s", names);
    else if (!pool[0])
        str_copy(pool, CORE_NAME_MAX, found->row.name);
}

/* Reads the members of an API token that limit it. */
static void read_limits(struct json_reader *r, const struct request *q, struct token_row *row)
{
    static const char *const roles[] = {"", "viewer", "member", "lead", "operator", "admin", NULL};
    struct cron_row cron;
    struct scope scope;
    struct err e;
    int role = json_opt_enum(r, "role", roles, 0);
    row->admin = json_opt_bool(r, "admin", false) || str_eq(roles[role], "admin");
    json_opt_strcpy(r, "scope", row->scope, sizeof(row->scope), "");
    /* what a limited token creates is limited as well */
    STR_COPY(row->role, role == 0 && q->caller.most < ROLE_ADMIN && !row->admin
                            ? role_names[q->caller.role]
                            : roles[row->admin ? 0 : role]);
    if (r->rc == 0 && scope_parse(row->scope, &scope, &e) != 0)
        json_reader_fail(r, "scope", "%s", e.text);
    else if (r->rc == 0 && scope.kind == SCOPE_POOL && !pools_find(q->api->o.pools, scope.pool))
        json_reader_fail(
            r, "scope", "there is no pool \"%s\" (belay pools lists them)", scope.pool);
    else if (r->rc == 0 && scope.kind == SCOPE_CRON &&
             db_read_cron(q->api->o.reader, scope.id, &cron, &e) != 0)
        json_reader_fail(r, "scope", "%s", e.text);
}

static int read_token_request(
    struct request *q, const json_t *body, struct token_row *row, struct err *e)
{
    static const char *const kinds[] = {"api", "join", NULL};
    struct json_reader r;
    json_reader_init(&r, body, "", e);
    row->join = json_req_enum(&r, "kind", kinds) == 1;
    if (!row->join && json_object_get(body, "pool"))
        json_reader_fail(&r, "pool",
            "only a join token has a pool: ask for kind join (belay token create --join), or for "
            "the scope pool=NAME");
    if (row->join && (json_object_get(body, "user") || json_object_get(body, "admin") ||
                         json_object_get(body, "role") || json_object_get(body, "scope")))
        json_reader_fail(
            &r, "kind", "a join token is a machine's: it has no user, admin, role or scope");
    int64_t usual_ms = row->join ? JOIN_TTL_DEFAULT_MS : q->api->o.config->api_token_ms;
    int64_t ttl_ms = json_opt_i64(&r, "ttl_ms", 0, TTL_MAX_MS, usual_ms);
    json_opt_strcpy(&r, "user", row->user, sizeof(row->user), row->join ? "" : q->caller.user);
    json_opt_strcpy(&r, "pool", row->pool, sizeof(row->pool), "");
    read_limits(&r, q, row);
    if (r.rc == 0 && !row->join && !str_is_name(row->user, CORE_NAME_MAX - 1))
        json_reader_fail(&r, "user", "expected a user's name of letters, digits, '.', '_', '-'");
    if (r.rc == 0 && row->join && q->caller.admin)
        choose_pool(&r, q->api->o.pools, row->pool);
    struct wall now = clock_wall(q->api->o.timers->clock);
    row->created_at = now;
    row->expires_at = ttl_ms ? (struct wall){now.ms + ttl_ms} : WALL_NONE;
    row->used_at = WALL_NONE;
    return json_reader_finish(&r);
}

/* Checks that the token gives no more than the caller has, for no longer than the caller's own
 * token. Returns false after an error reply. */
static bool may_create(struct request *q, struct token_row *row)
{
    const struct access_object of_user = {.user = row->user};
    const struct caller *c = &q->caller;
    struct caller user;
    int most = ROLE_ADMIN;
    if (row->join || row->admin)
        return api_may(q, RIGHT_ADMIN, NULL, NULL);
    if (!api_may(q, RIGHT_TOKENS, &of_user, "this token"))
        return false;
    access_init(&user, q->api->o.config, row->user, false);
    while (row->role[0] && !str_eq(role_names[most], row->role))
        most--;
    if (row->role[0] && (user.role < (enum role)most || c->role < (enum role)most)) {
        const struct caller *less = user.role < (enum role)most ? &user : c;
        api_reply_failure(q->x, ERR_DENIED,
            "role: %s is %s here, and a token gives no more than that: leave the role out, or have "
            "users: in belayd's configuration changed",
            less->user, role_names[less->role]);
        return false;
    }
    /* a sign-in is short, but who signed in is known as well as at the UNIX socket */
    if (!c->admin && !c->is_login && wall_is_set(c->expires_at) &&
        (!wall_is_set(row->expires_at) || row->expires_at.ms > c->expires_at.ms))
        row->expires_at = c->expires_at;
    return true;
}

void api_tokens_create(struct request *q)
{
    struct err e;
    json_t *body = api_body(q, TOKEN_BODY_MAX);
    if (!body)
        return;
    struct new_token *n = mem_alloc(sizeof(*n));
    int rc = read_token_request(q, body, &n->row, &e);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    if (rc != 0 || !may_create(q, &n->row)) {
        free(n);
        return;
    }
    char hex[2 * TOKEN_BYTES + 1];
    random_hex(TOKEN_BYTES, hex);
    snprintf(n->token, sizeof(n->token), "%s%s", n->row.join ? "j." : "b.", hex);
    ca_sha256_hex(n->token, n->row.hash);
    n->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, put_token, on_token_stored, n);
}

/* ---- the list ---- */

struct token_list {
    const struct request *q;
    json_t *list;
};

static int add_token(void *ctx, const struct token_row *t)
{
    struct token_list *l = ctx;
    const struct access_object object = {.user = t->join ? NULL : t->user};
    if (access_may(&l->q->caller, RIGHT_TOKENS, &object))
        json_array_append_new(
            l->list, api_json_token(t, token_uses_last(l->q->api->token_uses, t)));
    return 0;
}

void api_tokens_list(struct request *q)
{
    struct err e;
    struct token_list l = {q, json_array()};
    if (db_read_tokens(q->api->o.reader, add_token, &l, &e) == 0) {
        api_reply_json(q->x, 200, json_pack("{s:o}", "tokens", l.list));
    } else {
        json_decref(l.list);
        http_reply_err(q->x, &e);
    }
}

/* ---- revoking ---- */

struct revocation {
    struct deferred_reply *deferred;
    struct caller by;
    int64_t id;
    struct token_row found;
};

struct session_revocation {
    struct tick *tick;
    int64_t parent;
};

/* The sessions of a revoked token are invalid without this; it makes the list say so. */
static int revoke_session(void *ctx, const struct token_row *t)
{
    const struct session_revocation *v = ctx;
    struct token_row row = *t;
    if (!t->session || t->parent != v->parent)
        return 0;
    row.revoked = true;
    tick_put_token(v->tick, &row);
    return 0;
}

static int revoke_token(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct revocation *v = ctx;
    char what[32];
    struct session_revocation sessions = {t, v->id};
    int rc = db_read_token(v->deferred->api->o.reader, v->id, &v->found, e);
    if (rc == ERR_NOT_FOUND)
        return err_set(
            e, ERR_NOT_FOUND, "there is no token %lld (belay token list)", (long long)v->id);
    if (rc != 0)
        return rc;
    const struct access_object object = {.user = v->found.join ? NULL : v->found.user};
    /* whoever has a token may end it */
    if (v->id != v->by.token && !access_may(&v->by, RIGHT_TOKENS, &object)) {
        snprintf(what, sizeof(what), "token %lld", (long long)v->id);
        return access_refuse(&v->by, RIGHT_TOKENS, &object, what, e);
    }
    rc = db_read_tokens(v->deferred->api->o.reader, revoke_session, &sessions, e);
    if (rc != 0)
        return rc;
    v->found.revoked = true;
    tick_put_token(t, &v->found);
    *ret_id = v->id;
    return 0;
}

static void on_revoked(void *ctx, const struct err *e, int64_t id)
{
    struct revocation *v = ctx;
    api_on_done(v->deferred, e, id);
    free(v);
}

void api_tokens_revoke(struct request *q)
{
    api_revoke_token(q, q->id);
}

void api_revoke_token(struct request *q, int64_t id)
{
    struct revocation *v = mem_alloc(sizeof(*v));
    v->id = id;
    v->by = q->caller;
    v->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, revoke_token, on_revoked, v);
}
