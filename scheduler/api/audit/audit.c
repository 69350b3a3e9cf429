/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's route for an audit: lists every pool's machines in parallel. When the last answer has
 * arrived and the whole model is on disk, it compares the answers with the database. That reads the
 * whole database, so it runs on a thread, with copies of the pools' fields that it needs.
 */
#include "scheduler/api/api_private.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/audit.h"
#include <stdlib.h>

#define AUDIT_WAIT_MS 80000 /* drivers time out earlier */
#define READ_WAIT_MS 600000 /* reads the whole ledger, more than once */
#define SHOWN_MAX 1000

struct audit_request;

/* One pool's listing. */
struct part {
    struct audit_request *of;
    char pool[CORE_NAME_MAX];
    struct wall began;
    struct err e; /* kind ERR_NONE = listed */
    struct cloud_instance *list;
    size_t n;
};

struct audit_request {
    struct deferred_reply *deferred;
    struct api *api; /* not for use on the thread */
    struct part parts[CONFIG_POOLS_MAX];
    size_t n_parts, n_waited_for;
    struct config config; /* only its pools, copied: their names, providers and regions */
    int64_t settle_ms;
    struct smap hidden; /* "POOL\nID" of instances that the listings could not see -> itself */
    json_t *differences;
};

static void add_difference(void *ctx, const struct audit_difference *d)
{
    struct audit_request *g = ctx;
    if (json_array_size(g->differences) >= SHOWN_MAX)
        return;
    json_array_append_new(g->differences,
        json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "kind", audit_kind_names[d->kind], "provider",
            api_json_opt_text(d->provider), "region", api_json_opt_text(d->region), "pool",
            api_json_opt_text(d->pool), "instance", api_json_opt(d->instance, CORE_ID_NONE),
            "provider_id", api_json_opt_text(d->provider_id), "text", json_text(d->text)));
}

/* Only the driver can say whether a listing could have seen an instance, so this is computed before
 * the thread begins. */
static void find_hidden(struct audit_request *g)
{
    LIST_FOREACH (model_instances(tick_model(g->api->o.tick)), l) {
        const struct instance_row *r = &LIST_ENTRY(l, struct instance, in_all)->row;
        const struct config_pool *c = pools_find(g->api->o.pools, r->pool);
        const struct cloud_driver *d = c ? pools_driver(g->api->o.pools, c) : NULL;
        if (!d || !d->ops->hides || !d->ops->hides(d, r->provider_id))
            continue;
        char *key = mem_printf("%s\n%s", r->pool, r->provider_id);
        smap_put(&g->hidden, key, g);
        free(key);
    }
}

static bool hides(void *ctx, const char *pool, const char *provider_id)
{
    const struct audit_request *g = ctx;
    char *key = mem_printf("%s\n%s", pool, provider_id);
    bool is = smap_get(&g->hidden, key) != NULL;
    free(key);
    return is;
}

static int add_sum(void *ctx, const struct ledger_sum *s)
{
    audit_ledger_sum(ctx, s);
    return 0;
}

static int add_row(void *ctx, const struct instance_row *r)
{
    audit_row(ctx, r);
    return 0;
}

static int add_node(void *ctx, const struct ledger_node *n)
{
    audit_ledger_node(ctx, n);
    return 0;
}

static int add_gap(void *ctx, const struct ledger_gap *g)
{
    audit_ledger_gap(ctx, g);
    return 0;
}

static int add_rollup_gap(void *ctx, const char *text)
{
    audit_rollup_gap(ctx, text);
    return 0;
}

static int cross_check(struct audit_request *g, struct db_reader *r, struct audit *a, struct err *e)
{
    for (size_t i = 0; i < g->n_parts; i++) {
        const struct part *p = &g->parts[i];
        audit_listing(a, p->pool, p->began, p->e.kind ? &p->e : NULL, p->list, p->n);
    }
    int rc = db_read_ledger_sums(r, add_sum, a, e);
    if (rc == 0)
        rc = db_read_instances(r, false, add_row, a, e);
    if (rc == 0)
        rc = db_read_ledger_nodes(r, add_node, a, e);
    if (rc == 0)
        rc = db_read_ledger_gaps(r, add_gap, a, e);
    if (rc == 0)
        rc = db_read_rollup_gaps(r, add_rollup_gap, a, e);
    if (rc == 0)
        rc = db_read_data_gaps(r, add_rollup_gap, a, e);
    if (rc == 0)
        rc = db_read_job_gaps(r, add_rollup_gap, a, e);
    if (rc == 0)
        audit_end(a);
    return rc;
}

static int audit_read(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct audit_request *g = of;
    struct audit_counts n;
    struct audit *a = audit_create(&g->config, g->settle_ms, add_difference, g);
    audit_set_hides(a, hides);
    int rc = cross_check(g, r, a, e);
    audit_get_counts(a, &n);
    audit_destroy(a);
    if (rc == 0)
        *ret_reply = json_pack("{s:I,s:I,s:I,s:I,s:O}", "pools", (json_int_t)n.pools, "machines",
            (json_int_t)n.machines, "instances", (json_int_t)n.rows, "found",
            (json_int_t)n.differences, "differences", g->differences);
    return rc;
}

static void audit_request_free(void *of)
{
    struct audit_request *g = of;
    for (size_t i = 0; i < g->n_parts; i++)
        free(g->parts[i].list);
    smap_deinit(&g->hidden);
    json_decref(g->differences);
    free(g->config.pools);
    free(g);
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct audit_request *g = ctx;
    const struct config *c = pools_in_force(g->api->o.pools);
    struct http_exchange *x = deferred_reply_take(g->deferred);
    (void)id;
    g->api->auditing = false;
    if (!x || e) {
        if (x)
            http_reply_err(x, e);
        audit_request_free(g);
        return;
    }
    g->config = (struct config){
        .pools = mem_dup(c->pools, c->n_pools * sizeof(*c->pools)), .n_pools = c->n_pools};
    find_hidden(g);
    read_pool_run(g->api, x, NULL, READ_WAIT_MS, audit_read, g, audit_request_free);
}

static void part_over(struct audit_request *g)
{
    if (--g->n_waited_for == 0)
        tick_when_durable(g->api->o.tick, on_durable, g);
}

static void on_listed(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct part *p = ctx;
    if (e) {
        p->e = *e;
    } else {
        p->list = mem_dup(list, n * sizeof(*list));
        p->n = n;
    }
    part_over(p->of);
}

void api_audit(struct request *q)
{
    struct api *a = q->api;
    if (a->auditing) {
        api_reply_failure(
            q->x, ERR_CONFLICT, "an audit is in progress: try again when it has ended");
        return;
    }
    struct audit_request *g = mem_alloc(sizeof(*g));
    const struct config *c = pools_in_force(a->o.pools);
    *g = (struct audit_request){.api = a,
        .deferred = deferred_reply_create(a, q->x, AUDIT_WAIT_MS),
        .n_waited_for = 1,
        .settle_ms = a->o.config->settle_ms,
        .differences = json_array()};
    a->auditing = true;
    for (size_t i = 0; i < c->n_pools; i++) {
        struct cloud_driver *d = pools_driver(a->o.pools, &c->pools[i]);
        if (!d)
            continue;
        struct part *p = &g->parts[g->n_parts++];
        *p = (struct part){.of = g, .began = clock_wall(a->o.timers->clock)};
        STR_COPY(p->pool, c->pools[i].row.name);
        g->n_waited_for++;
        d->ops->list(d, c->pools[i].row.region, a->o.meta->cluster_uid, on_listed, p);
    }
    part_over(g);
}
