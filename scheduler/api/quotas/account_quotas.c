/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/admin/account-quotas: the quotas of the accounts at the providers, what is used of
 * each, and what the pools that share it may still ask for. Pools share a quota if they use the
 * same account: the same provider, endpoint, credentials file and project or subscription.
 */
#include "scheduler/account_quotas.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/provider.h"
#include "scheduler/api/api_private.h"
#include <stdlib.h>

/* What a pool may still launch. */
struct room {
    char pool[CORE_NAME_MAX];
    int64_t nodes, gpus; /* gpus -1 = no limit */
};

struct quotas_query {
    struct deferred_reply *deferred;
    struct room *rooms;
    size_t n_rooms;
};

/* ---- the pools ---- */

/* The catalogue's figure, because quotas count a type's vCPUs whatever the pool file says. */
static struct cloud_machine machine_of(const char *provider, const struct offer_row *f)
{
    struct catalogue_type t;
    bool is_known = catalogue_find(provider, f->type, &t, NULL) == 0;
    return (struct cloud_machine){.type = f->type,
        .market = f->market == MARKET_SPOT ? CLOUD_SPOT : CLOUD_ON_DEMAND,
        .vcpus = is_known ? t.vcpus : f->total.cpus,
        .gpus = is_known ? t.gpus : f->total.gpus};
}

static void add_machine(struct account_pool *p, const struct cloud_machine *m)
{
    for (size_t i = 0; i < p->n_machines; i++)
        if (p->machines[i].market == m->market && str_eq(p->machines[i].type, m->type))
            return;
    if (p->n_machines < CLOUD_MACHINES_MAX)
        p->machines[p->n_machines++] = *m;
}

bool api_account_pool(void *ctx, size_t i, struct account_pool *ret_pool)
{
    const struct api *a = ctx;
    const struct config *c = pools_in_force(a->o.pools);
    if (i >= c->n_pools)
        return false;
    const struct config_pool *p = &c->pools[i];
    ret_pool->pool = p->row.name;
    ret_pool->region = p->row.region;
    ret_pool->driver = pools_driver(a->o.pools, p);
    ret_pool->n_machines = 0;
    for (size_t k = 0; k < p->n_offers; k++) {
        struct cloud_machine m = machine_of(p->row.provider, &p->offers[k]);
        add_machine(ret_pool, &m);
    }
    return true;
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the pool may still launch by its own limits and by those of the cluster. */
static struct room room_of(const struct config *c, const struct capacity *all, const struct pool *p)
{
    struct room r = {.nodes = at_least_0(p->row.max_nodes - p->used.nodes), .gpus = -1};
    STR_COPY(r.pool, p->row.name);
    if (c->max_nodes > 0)
        r.nodes = least(r.nodes, at_least_0(c->max_nodes - all->nodes));
    if (p->row.max_gpus > 0)
        r.gpus = at_least_0(p->row.max_gpus - p->used.gpus);
    if (c->max_gpus > 0) {
        int64_t left = at_least_0(c->max_gpus - all->gpus);
        r.gpus = r.gpus < 0 ? left : least(r.gpus, left);
    }
    return r;
}

static void read_rooms(const struct api *a, struct quotas_query *y)
{
    const struct model *m = tick_model(a->o.tick);
    const struct config *c = pools_in_force(a->o.pools);
    const struct capacity used = model_used(m);
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!p->row.elastic)
            continue;
        y->rooms = mem_resize(y->rooms, y->n_rooms + 1, sizeof(*y->rooms));
        y->rooms[y->n_rooms++] = room_of(c, &used, p);
    }
}

static const struct room *find_room(const struct quotas_query *y, const char *pool)
{
    static const struct room none = {.gpus = -1}; /* its pool is not stored yet */
    for (size_t i = 0; i < y->n_rooms; i++)
        if (str_eq(y->rooms[i].pool, pool))
            return &y->rooms[i];
    return &none;
}

/* ---- the quotas ---- */

/* One pool's part of a quota. *ret_is_known is false if a machine's share is unknown. */
static void draw_of(const struct account_reading *r, const struct cloud_quota *q,
    const struct room *room, int64_t *ret_nodes, int64_t *ret_wanted, bool *ret_is_known)
{
    *ret_nodes = *ret_wanted = 0;
    *ret_is_known = true;
    for (size_t i = 0; i < r->n; i++) {
        const struct cloud_quota *row = &r->list[i];
        if (!str_eq(row->name, q->name) || !str_eq(row->scope, q->scope))
            continue;
        int32_t gpus = r->gpus[row->machine];
        int64_t n =
            gpus > 0 && room->gpus >= 0 ? least(room->nodes, room->gpus / gpus) : room->nodes;
        *ret_is_known = *ret_is_known && row->per_machine > 0;
        *ret_nodes = n > *ret_nodes ? n : *ret_nodes;
        if (n * row->per_machine > *ret_wanted)
            *ret_wanted = n * row->per_machine;
    }
}

/* The text that two pools of one account have in common. */
static char *account_of(const struct api *a, const char *pool)
{
    struct buf out = {0};
    const struct config_pool *p = pools_find(a->o.pools, pool);
    if (!p || !p->provider)
        return mem_strdup(pool);
    buf_printf(&out, "%s\n%s\n%s\n", p->provider->name, p->endpoint ? p->endpoint : "",
        p->credentials ? p->credentials : "");
    for (size_t i = 0; p->provider->settings[i].key; i++)
        if (str_eq(p->provider->settings[i].key, "project") ||
            str_eq(p->provider->settings[i].key, "subscription"))
            buf_printf(&out, "%s\n", p->settings[i] ? p->settings[i] : "");
    char *text = mem_strdup(buf_str(&out));
    buf_deinit(&out);
    return text;
}

static int64_t int_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* The row of the answer for this quota; a new one if the account has none yet. */
static json_t *row_of(json_t *list, json_t *accounts, const char *account,
    const struct account_reading *r, const struct cloud_quota *q)
{
    char *key = mem_printf("%s%s\n%s", account, q->scope, q->name);
    json_t *row = json_object_get(accounts, key);
    if (!row) {
        row = json_pack("{s:s,s:o,s:o,s:o,s:I,s:o,s:o,s:I,s:n,s:s,s:o}", "provider", r->provider,
            "region", json_text(r->region), "scope", json_text(q->scope), "name",
            json_text(q->name), "limit", (json_int_t)q->limit, "used", api_json_opt(q->used, -1),
            "left", q->used >= 0 ? json_integer(at_least_0(q->limit - q->used)) : json_null(),
            "wanted", (json_int_t)0, "enough", "page", r->page, "pools", json_array());
        json_array_append_new(list, row);
        json_object_set(accounts, key, row);
    }
    free(key);
    return row;
}

static bool is_first(const struct account_reading *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (str_eq(r->list[k].name, r->list[i].name) && str_eq(r->list[k].scope, r->list[i].scope))
            return false;
    return true;
}

static void add_pool(json_t *row, const struct account_reading *r, const struct cloud_quota *q,
    const struct room *room)
{
    int64_t nodes, wanted;
    bool is_known;
    draw_of(r, q, room, &nodes, &wanted, &is_known);
    json_array_append_new(json_object_get(row, "pools"),
        json_pack("{s:o,s:I,s:o}", "pool", json_text(r->pool), "nodes", (json_int_t)nodes, "wanted",
            is_known ? json_integer(wanted) : json_null()));
    json_object_set_new(row, "wanted", json_integer(int_of(row, "wanted") + wanted));
}

/* null: it cannot be known. */
static json_t *is_enough(const json_t *row)
{
    size_t i;
    const json_t *left = json_object_get(row, "left"), *pool;
    int64_t wanted = int_of(row, "wanted");
    if (wanted > (json_is_null(left) ? int_of(row, "limit") : json_integer_value(left)))
        return json_false();
    json_array_foreach(json_object_get(row, "pools"), i,
        pool) if (json_is_null(json_object_get(pool, "wanted"))) return json_null();
    return json_is_null(left) ? json_null() : json_true();
}

static void add_unknown(json_t *unknown, const struct account_reading *r)
{
    static const char incomplete[] = "the provider reports none for some of its types";
    json_array_append_new(
        unknown, json_pack("{s:o,s:s,s:o,s:s,s:o,s:s}", "pool", json_text(r->pool), "provider",
                     r->provider, "region", json_text(r->region), "kind",
                     r->why ? err_kind_name(r->why->kind) : "not-found", "text",
                     json_text(r->why ? r->why->text : incomplete), "page", r->page));
}

static void on_quotas(void *ctx, const struct account_reading *readings, size_t n)
{
    struct quotas_query *y = ctx;
    const struct api *a = y->deferred->api;
    struct http_exchange *x = deferred_reply_take(y->deferred);
    json_t *list = json_array(), *unknown = json_array(), *accounts = json_object(), *row;
    size_t at;
    for (size_t i = 0; x && i < n; i++) {
        const struct account_reading *r = &readings[i];
        char *account = account_of(a, r->pool);
        for (size_t k = 0; k < r->n; k++)
            if (is_first(r, k))
                add_pool(row_of(list, accounts, account, r, &r->list[k]), r, &r->list[k],
                    find_room(y, r->pool));
        if (r->why || !r->all_machines)
            add_unknown(unknown, r);
        free(account);
    }
    json_array_foreach(list, at, row) json_object_set_new(row, "enough", is_enough(row));
    json_decref(accounts);
    if (x) {
        api_reply_json(x, 200, json_pack("{s:o,s:o}", "quotas", list, "unknown", unknown));
    } else {
        json_decref(list);
        json_decref(unknown);
    }
    free(y->rooms);
    free(y);
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct quotas_query *y = ctx;
    struct api *a = y->deferred->api;
    (void)id;
    if (!e) {
        read_rooms(a, y);
        account_quotas_read(a->account_quotas, on_quotas, y);
        return;
    }
    struct http_exchange *x = deferred_reply_take(y->deferred);
    if (x)
        http_reply_err(x, e);
    free(y);
}

void api_account_quotas(struct request *q)
{
    struct quotas_query *y = mem_alloc(sizeof(*y));
    y->deferred =
        deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS + 2 * ACCOUNT_QUOTAS_WAIT_MS);
    tick_when_durable(q->api->o.tick, on_durable, y);
}
