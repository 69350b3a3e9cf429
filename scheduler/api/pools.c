/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for pools: the list, details, and applying other pools.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "scheduler/pooldiff.h"
#include <stdlib.h>
#include <string.h>

#define BODY_MAX (2 * YAML_BYTES_MAX + 4096) /* a file as a JSON string */
#define FILE_NAME_MAX 256
#define REVISION_MAX 63

/* True for a pool that is in force or still has nodes or instances. */
static bool is_listed(const struct api *a, const struct model *m, const struct pool *p)
{
    return pools_find(a->o.pools, p->row.name) || p->n_nodes > 0 || pools_count_nodes(m, p) > 0;
}

/* ---- the list ---- */

/* Right after the start the configured pools are listed only once they are stored. */
static void reply_pools(const struct api *a, struct http_exchange *x, const struct caller *viewer,
    const struct model *model, int64_t arg)
{
    json_t *list = json_array();
    (void)viewer, (void)arg;
    LIST_FOREACH (model_pools(model), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (is_listed(a, model, p))
            json_array_append_new(list, api_json_pool(p, tick_now(a->o.tick).wall));
    }
    api_reply_json(x, 200, json_pack("{s:o}", "pools", list));
}

void api_pools_list(struct request *q)
{
    api_read_model(q, reply_pools, 0);
}

/* ---- details of one, or of each ---- */

struct detail {
    struct deferred_reply *deferred;
    char pool[CORE_NAME_MAX]; /* "" = all */
    bool admin;
};

static json_t *used_of(int64_t max, int64_t used)
{
    return json_pack("{s:o,s:I}", "max", api_json_opt(max, 0), "used", (json_int_t)used);
}

static json_t *limits_of(
    int64_t max_nodes, int64_t max_gpus, int64_t max_uusd_h, const struct capacity *used)
{
    return json_pack("{s:o,s:o,s:o}", "nodes", used_of(max_nodes, used->nodes), "gpus",
        used_of(max_gpus, used->gpus), "uusd_per_hour", used_of(max_uusd_h, used->uusd_h));
}

static json_t *json_pool(
    const struct api *a, const struct model *m, const struct pool *p, bool admin)
{
    const struct config_pool *c = pools_find(a->o.pools, p->row.name);
    const struct stamp now = tick_now(a->o.tick);
    json_t *o = api_json_pool(p, now.wall), *nodes = json_array(), *instances = json_array(),
           *offers = json_array();
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool == p)
            json_array_append_new(nodes, api_json_node(&n->row, n, now.mono));
    }
    LIST_FOREACH (model_instances(m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (i->pool == p)
            json_array_append_new(instances, api_json_instance(&i->row));
    }
    LIST_FOREACH (&p->offers, l) {
        const struct offer *f = LIST_ENTRY(l, struct offer, in_pool);
        json_array_append_new(offers, api_json_offer(&f->row, f, now));
    }
    json_object_set_new(o, "configured", json_boolean(c));
    json_object_set_new(o, "settings", c && admin ? pool_settings(c) : json_null());
    json_object_set_new(o, "limits",
        p->row.elastic ? limits_of(p->row.max_nodes, p->row.max_gpus, p->row.max_uusd_h, &p->used)
                       : json_null());
    json_object_set_new(o, "nodes", nodes);
    json_object_set_new(o, "instances", instances);
    json_object_set_new(o, "offers", offers);
    return o;
}

static void reply_detail(const struct api *a, struct http_exchange *x, const struct detail *d)
{
    const struct model *m = tick_model(a->o.tick);
    const struct config *c = pools_in_force(a->o.pools);
    const struct capacity used = model_used(m);
    json_t *list = json_array();
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (d->pool[0] ? str_eq(d->pool, p->row.name) : is_listed(a, m, p))
            json_array_append_new(list, json_pool(a, m, p, d->admin));
    }
    if (d->pool[0] && json_array_size(list) == 0) {
        json_decref(list);
        api_reply_failure(
            x, ERR_NOT_FOUND, "there is no pool \"%s\" (belay pools lists them)", d->pool);
        return;
    }
    api_reply_json(x, 200,
        json_pack("{s:o,s:o}", "pools", list, "limits",
            limits_of(c->max_nodes, c->max_gpus, c->max_uusd_h, &used)));
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct detail *d = ctx;
    const struct api *a = d->deferred->api;
    struct http_exchange *x = deferred_reply_take(d->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        reply_detail(a, x, d);
    free(d);
}

void api_pools_detail(struct request *q)
{
    const char *name = http_request_query(q->x, "name");
    if (name && !str_is_name(name, CORE_NAME_MAX - 1)) {
        api_reply_failure(q->x, ERR_INVALID, "name: expected a pool's name");
        return;
    }
    struct detail *d = mem_alloc(sizeof(*d));
    d->admin = q->caller.admin;
    STR_COPY(d->pool, name ? name : "");
    d->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_when_durable(q->api->o.tick, on_durable, d);
}

/* ---- applying other pools ---- */

struct pools_change {
    struct deferred_reply *deferred;
    bool dry_run;
};

static void on_applied(void *ctx, const struct err *e, const char *revision, const json_t *diff)
{
    struct pools_change *y = ctx;
    struct http_exchange *x = deferred_reply_take(y->deferred);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200,
            json_pack("{s:b,s:s,s:O}", "applied", (int)!y->dry_run, "revision", revision, "changes",
                (json_t *)diff));
    free(y);
}

void api_pools_apply(struct request *q)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    json_reader_init(&r, body, "", &e);
    struct pools_request request = {
        .file = json_opt_str(&r, "file", FILE_NAME_MAX, "pools.yaml"),
        .text = json_req_str(&r, "text", YAML_BYTES_MAX),
        .dry_run = json_opt_bool(&r, "dry_run", false),
        .expect = json_opt_str(&r, "expect", REVISION_MAX, NULL),
    };
    if (json_reader_finish(&r) != 0) {
        http_reply_err(q->x, &e);
    } else {
        struct pools_change *y = mem_alloc(sizeof(*y));
        request.n = strlen(request.text);
        y->dry_run = request.dry_run;
        y->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
        pools_apply(q->api->o.pools, &request, on_applied, y);
    }
    json_decref(body);
}
