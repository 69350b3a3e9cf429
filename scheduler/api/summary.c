/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/summary: the current state of the cluster in numbers, for `belay top`. Reads every
 * node and instance once.
 */
#include "scheduler/api/api_private.h"
#include "scheduler/core/lifecycle/instances.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

/* Totals, and the part in use. */
struct sum {
    const struct pool *pool;
    int64_t nodes[NODE_GONE + 1]; /* by enum node_state */
    int64_t coming, jobs;
    int64_t cpus, cpus_used, gpus, gpus_used, memory_mib, memory_used_mib;
    int64_t uusd_h, on_demand_uusd_h;
    int64_t cpu_milli, memory_bytes; /* use of running jobs, as last reported by agents */
};

static void add_node(struct sum *s, const struct node *n)
{
    const struct resources *all = &n->row.total, *left = &n->free;
    s->nodes[n->row.state]++;
    s->jobs += api_count(&n->attempts);
    s->cpus += all->cpus;
    s->cpus_used += all->cpus - left->cpus;
    s->gpus += all->gpus;
    s->gpus_used += all->gpus - left->gpus;
    s->memory_mib += all->memory_mib;
    s->memory_used_mib += all->memory_mib - left->memory_mib;
    s->uusd_h += n->row.price_uusd_h;
    s->on_demand_uusd_h += n->row.on_demand_uusd_h;
    LIST_FOREACH (&n->attempts, l) {
        s->cpu_milli += LIST_ENTRY(l, struct attempt, on_node)->cpu_milli;
        s->memory_bytes += LIST_ENTRY(l, struct attempt, on_node)->memory_bytes;
    }
}

/* Adds a machine that has not joined; once launched, it costs money. */
static void add_instance(struct sum *s, const struct instance *i)
{
    if (i->node || !instance_is_coming(i))
        return;
    s->coming++;
    s->uusd_h += i->row.state == INSTANCE_LAUNCHED ? i->row.price_uusd_h : 0;
    s->on_demand_uusd_h += i->row.state == INSTANCE_LAUNCHED ? i->row.on_demand_uusd_h : 0;
}

static json_t *used_of(int64_t total, int64_t used)
{
    return json_pack("{s:I,s:I}", "total", (json_int_t)total, "used", (json_int_t)used);
}

static json_t *sum_json(const struct sum *s)
{
    json_t *o = json_object(), *nodes = json_object();
    for (int k = 0; k < NODE_GONE; k++)
        json_object_set_new(nodes, sm_name(&node_sm, k), json_integer(s->nodes[k]));
    json_object_set_new(o, "nodes", nodes);
    json_object_set_new(o, "coming", json_integer(s->coming));
    json_object_set_new(o, "cpus", used_of(s->cpus, s->cpus_used));
    json_object_set_new(o, "gpus", used_of(s->gpus, s->gpus_used));
    json_object_set_new(o, "memory_mib", used_of(s->memory_mib, s->memory_used_mib));
    json_object_set_new(o, "usage",
        json_pack("{s:I,s:I}", "cpu_milli", (json_int_t)s->cpu_milli, "memory_bytes",
            (json_int_t)s->memory_bytes));
    json_object_set_new(o, "uusd_h", json_integer(s->uusd_h));
    json_object_set_new(o, "on_demand_uusd_h", json_integer(s->on_demand_uusd_h));
    return o;
}

static void sum_nodes(const struct model *m, struct sum *all, struct sum *pools, size_t n_pools)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        add_node(all, n);
        for (size_t k = 0; k < n_pools; k++)
            if (pools[k].pool == n->pool)
                add_node(&pools[k], n);
    }
    LIST_FOREACH (model_instances(m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        add_instance(all, i);
        for (size_t k = 0; k < n_pools; k++)
            if (pools[k].pool == i->pool)
                add_instance(&pools[k], i);
    }
}

static json_t *totals_json(const struct api *a, const struct model *m, const struct sum *all)
{
    struct model_counts c;
    json_t *o = sum_json(all);
    model_counts(m, &c);
    json_object_set_new(o, "jobs",
        json_pack("{s:I,s:I,s:I}", "pending", (json_int_t)c.pending, "waiting",
            (json_int_t)c.waiting, "running", (json_int_t)c.running));
    json_object_set_new(o, "cluster", json_text(a->o.config->cluster));
    return o;
}

json_t *api_json_totals(const struct api *a, const struct model *m)
{
    struct sum all = {0};
    sum_nodes(m, &all, NULL, 0);
    return totals_json(a, m, &all);
}

static void reply_summary(const struct api *a, struct http_exchange *x, const struct caller *viewer,
    const struct model *m, int64_t arg)
{
    struct sum all = {0};
    size_t n = 0;
    (void)viewer, (void)arg;
    struct sum *pools = mem_array((size_t)api_count(model_pools(m)) + 1, sizeof(*pools));
    LIST_FOREACH (model_pools(m), l)
        pools[n++].pool = LIST_ENTRY(l, struct pool, in_all);
    sum_nodes(m, &all, pools, n);
    json_t *o = totals_json(a, m, &all), *list = json_array();
    for (size_t k = 0; k < n; k++) {
        json_t *p = sum_json(&pools[k]);
        json_object_set_new(p, "pool", json_text(pools[k].pool->row.name));
        json_object_set_new(p, "jobs", json_integer(pools[k].jobs));
        json_array_append_new(list, p);
    }
    json_object_set_new(o, "pools", list);
    api_reply_json(x, 200, o);
    free(pools);
}

void api_summary(struct request *q)
{
    api_read_model(q, reply_summary, 0);
}
