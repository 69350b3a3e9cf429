/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for nodes, instances, offers and tokens.
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

/* ---- lists ---- */

/* Replies {name: list}, or the error. Takes ownership of the list. */
static void reply_list(
    struct http_exchange *x, const char *name, json_t *list, int rc, const struct err *e)
{
    if (rc != 0) {
        json_decref(list);
        http_reply_err(x, e);
        return;
    }
    json_t *o = json_object();
    json_object_set_new(o, name, list);
    api_reply_json(x, 200, o);
}

struct node_list {
    const struct model *model;
    struct mono now;
    json_t *nodes;
};

static int add_node(void *ctx, const struct node_row *n)
{
    struct node_list *l = ctx;
    const struct node *live = l->model ? model_node(l->model, n->id) : NULL;
    json_array_append_new(l->nodes, api_json_node(n, live, l->now));
    return 0;
}

static int add_instance(void *ctx, const struct instance_row *i)
{
    json_array_append_new(ctx, api_json_instance(i));
    return 0;
}

struct offer_list {
    const struct model *model; /* NULL = not available */
    struct stamp now;
    json_t *offers;
};

static int add_offer(void *ctx, const struct offer_row *o)
{
    struct offer_list *l = ctx;
    const struct offer *live = l->model ? model_offer(l->model, o->id) : NULL;
    json_array_append_new(l->offers, api_json_offer(o, live, l->now));
    return 0;
}

struct token_list {
    const struct api *api;
    json_t *list;
};

static int add_token(void *ctx, const struct token_row *t)
{
    struct token_list *l = ctx;
    json_array_append_new(l->list, api_json_token(t, token_uses_last(l->api->token_uses, t)));
    return 0;
}

static void reply_nodes(
    const struct api *a, struct http_exchange *x, const struct model *model, int64_t all)
{
    struct err e;
    struct node_list l = {.model = model, .now = tick_now(a->o.tick).mono, .nodes = json_array()};
    reply_list(x, "nodes", l.nodes, db_read_nodes(a->o.reader, !all, add_node, &l, &e), &e);
}

void api_nodes_list(struct request *q)
{
    bool all;
    if (api_query_state(q, "live", &all))
        api_read_model(q, reply_nodes, all);
}

void api_instances_list(struct request *q)
{
    bool all;
    struct err e;
    if (!api_query_state(q, "live", &all))
        return;
    json_t *list = json_array();
    reply_list(q->x, "instances", list,
        db_read_instances(q->api->o.reader, !all, add_instance, list, &e), &e);
}

static void reply_offers(
    const struct api *a, struct http_exchange *x, const struct model *model, int64_t arg)
{
    struct offer_list l = {.model = model, .now = tick_now(a->o.tick), .offers = json_array()};
    struct err e;
    (void)arg;
    reply_list(x, "offers", l.offers, db_read_offers(a->o.reader, add_offer, &l, &e), &e);
}

void api_offers_list(struct request *q)
{
    api_read_model(q, reply_offers, 0);
}

void api_events(struct request *q)
{
    int64_t after, wait_ms;
    if (api_query_i64(q, "after", 0, INT64_MAX, 0, &after) &&
        api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms))
        api_watch(q, &(struct watch_of){.kind = WATCH_EVENTS, .after = after, .viewer = q->caller},
            wait_ms);
}

/* ---- nodes ---- */

struct node_change {
    struct deferred_reply *deferred;
    char name[CORE_NAME_MAX];
    bool elastic;
};

/* Replies with the node after the change. Reads the model, all of which is committed now. */
static void on_node_changed(void *ctx, const struct err *e, int64_t id)
{
    struct node_change *c = ctx;
    struct api *a = c->deferred->api;
    struct http_exchange *x = deferred_reply_take(c->deferred);
    const struct node *n = model_node(tick_model(a->o.tick), id);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200,
            json_pack("{s:I,s:o,s:s,s:b,s:I}", "id", (json_int_t)id, "name",
                json_text(n ? n->row.name : c->name), "state",
                sm_name(&node_sm, n ? n->row.state : NODE_GONE), "elastic", (int)c->elastic, "jobs",
                (json_int_t)(n ? api_count(&n->attempts) : 0)));
    free(c);
}

static void post_node_event(struct request *q, enum event_type type)
{
    struct event ev = {.type = type, .drain = {.node = q->id}};
    if (!api_need_admin(q))
        return;
    struct node_change *c = mem_alloc(sizeof(*c));
    const struct node *n = model_node(tick_model(q->api->o.tick), q->id);
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    c->elastic = n && n->instance;
    STR_COPY(c->name, n ? n->row.name : "");
    tick_post(q->api->o.tick, &ev, on_node_changed, c);
}

void api_nodes_drain(struct request *q)
{
    post_node_event(q, EV_DRAIN);
}

void api_nodes_undrain(struct request *q)
{
    post_node_event(q, EV_UNDRAIN);
}

void api_nodes_delete(struct request *q)
{
    post_node_event(q, EV_NODE_DELETE);
}

/* ---- tokens ---- */

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

static int read_token_request(
    struct request *q, const json_t *body, struct token_row *row, struct err *e)
{
    static const char *const kinds[] = {"api", "join", NULL};
    struct json_reader r;
    json_reader_init(&r, body, "", e);
    row->join = json_req_enum(&r, "kind", kinds) == 1;
    if (!row->join && json_object_get(body, "pool"))
        json_reader_fail(&r, "pool",
            "only a join token has a pool: ask for kind join (belay token create --join)");
    if (row->join && (json_object_get(body, "user") || json_object_get(body, "admin")))
        json_reader_fail(&r, "kind", "a join token is a machine's: it has neither user nor admin");
    int64_t usual_ms = row->join ? JOIN_TTL_DEFAULT_MS : q->api->o.config->api_token_ms;
    int64_t ttl_ms = json_opt_i64(&r, "ttl_ms", 0, TTL_MAX_MS, usual_ms);
    json_opt_strcpy(&r, "user", row->user, sizeof(row->user), row->join ? "" : q->caller.user);
    json_opt_strcpy(&r, "pool", row->pool, sizeof(row->pool), "");
    row->admin = json_opt_bool(&r, "admin", false);
    if (r.rc == 0 && !row->join && !str_is_name(row->user, CORE_NAME_MAX - 1))
        json_reader_fail(&r, "user", "expected a user's name of letters, digits, '.', '_', '-'");
    if (r.rc == 0 && row->join)
        choose_pool(&r, q->api->o.pools, row->pool);
    struct wall now = clock_wall(q->api->o.timers->clock);
    row->created_at = now;
    row->expires_at = ttl_ms ? (struct wall){now.ms + ttl_ms} : WALL_NONE;
    row->used_at = WALL_NONE;
    return json_reader_finish(&r);
}

void api_tokens_create(struct request *q)
{
    struct err e;
    if (!api_need_admin(q))
        return;
    json_t *body = api_body(q, TOKEN_BODY_MAX);
    if (!body)
        return;
    struct new_token *n = mem_alloc(sizeof(*n));
    int rc = read_token_request(q, body, &n->row, &e);
    json_decref(body);
    if (rc != 0) {
        free(n);
        http_reply_err(q->x, &e);
        return;
    }
    char hex[2 * TOKEN_BYTES + 1];
    random_hex(TOKEN_BYTES, hex);
    snprintf(n->token, sizeof(n->token), "%s%s", n->row.join ? "j." : "b.", hex);
    ca_sha256_hex(n->token, n->row.hash);
    n->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, put_token, on_token_stored, n);
}

void api_tokens_list(struct request *q)
{
    struct err e;
    if (!api_need_admin(q))
        return;
    struct token_list l = {q->api, json_array()};
    reply_list(q->x, "tokens", l.list, db_read_tokens(q->api->o.reader, add_token, &l, &e), &e);
}

struct revocation {
    struct deferred_reply *deferred;
    int64_t id;
    struct token_row found;
};

static int find_token(void *ctx, const struct token_row *t)
{
    struct revocation *v = ctx;
    if (t->id != v->id)
        return 0;
    v->found = *t;
    return 1;
}

static int revoke_token(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct revocation *v = ctx;
    int rc = db_read_tokens(v->deferred->api->o.reader, find_token, v, e);
    if (rc != 0)
        return rc;
    if (v->found.id == 0)
        return err_set(
            e, ERR_NOT_FOUND, "there is no token %lld (belay token list)", (long long)v->id);
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
    if (!api_need_admin(q))
        return;
    struct revocation *v = mem_alloc(sizeof(*v));
    v->id = q->id;
    v->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, revoke_token, on_revoked, v);
}

/* ---- version ---- */

void api_version(struct request *q)
{
    const struct api *a = q->api;
    api_reply_json(q->x, 200,
        json_pack("{s:s,s:s,s:s,s:s,s:b,s:s,s:s}", "version", BELAY_VERSION, "cluster",
            a->o.config->cluster, "cluster_uid", a->o.meta->cluster_uid, "user", q->caller.user,
            "admin", (int)q->caller.admin, "listen", a->server_url, "store", a->o.config->store));
}
