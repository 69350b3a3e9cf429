/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/cluster.h"

#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/placement/rack_options.h"
#include "scheduler/core/queue/budget_options.h"
#include "scheduler/metrics/series.h"

enum family {
    NODES,
    CPUS,
    CPUS_USED,
    GPUS,
    GPUS_USED,
    MEMORY,
    MEMORY_USED,
    DOLLARS_H,
    DRAINS,
    INSTANCES,
    FAILED_BOOTS,
    BOOTS_FAIL,
    PRICE,
    ON_DEMAND_PRICE,
    LAUNCHES,
    REFUSALS,
    RECLAIMS,
    UP,
    BUDGET,
    BUDGET_SPENT,
    BUDGET_LEFT,
    RACK,
    RACK_MAX,
    RACK_PUE,
    FAMILIES
};

static const struct {
    enum metric_type type;
    const char *name, *help;
} families[FAMILIES] = {
    [NODES] = {METRIC_GAUGE, "belay_nodes", "Nodes by state; drained: who drains it."},
    [CPUS] = {METRIC_GAUGE, "belay_cpus", "CPUs of nodes."},
    [CPUS_USED] = {METRIC_GAUGE, "belay_cpus_used", "CPUs of nodes that jobs have."},
    [GPUS] = {METRIC_GAUGE, "belay_gpus", "GPUs of nodes."},
    [GPUS_USED] = {METRIC_GAUGE, "belay_gpus_used", "GPUs of nodes that jobs have."},
    [MEMORY] = {METRIC_GAUGE, "belay_memory_bytes", "Memory of nodes."},
    [MEMORY_USED] = {METRIC_GAUGE, "belay_memory_used_bytes", "Memory of nodes that jobs have."},
    [DOLLARS_H] = {METRIC_GAUGE, "belay_cost_dollars_per_hour",
        "Hourly cost of nodes at their prices."},
    [DRAINS] = {METRIC_COUNTER, "belay_node_drains", "Drains of nodes, by cause."},
    [INSTANCES] = {METRIC_GAUGE, "belay_instances",
        "Machines of providers, by what belay knows of them."},
    [FAILED_BOOTS] = {METRIC_GAUGE, "belay_pool_failed_boots",
        "Machines of a pool, in a row, that were launched and never joined, or whose disks were "
        "full before their first job."},
    [BOOTS_FAIL] = {METRIC_GAUGE, "belay_pool_boots_fail",
        "1 while a pool launches one machine at a time, because its machines do not join, or join "
        "with full disks."},
    [PRICE] = {METRIC_GAUGE, "belay_offer_price_dollars_per_hour", "Price of an offer."},
    [ON_DEMAND_PRICE] = {METRIC_GAUGE, "belay_offer_on_demand_dollars_per_hour",
        "Price of the same machine on-demand."},
    [LAUNCHES] = {METRIC_COUNTER, "belay_offer_launches", "Launches from an offer, of all time."},
    [REFUSALS] = {METRIC_COUNTER, "belay_offer_refusals",
        "Launches that the provider refused, of all time."},
    [RECLAIMS] = {METRIC_COUNTER, "belay_offer_reclaims",
        "Machines of an offer taken back, of all time."},
    [UP] = {METRIC_COUNTER, "belay_offer_up_seconds",
        "Observed time of machines of an offer, of all time."},
    [BUDGET] = {METRIC_GAUGE, "belay_budget_dollars", "What a budget allows in its period."},
    [BUDGET_SPENT] = {METRIC_GAUGE, "belay_budget_spent_dollars", "Spent in this period."},
    [BUDGET_LEFT] = {METRIC_GAUGE, "belay_budget_left_dollars",
        "Neither spent nor set aside for running jobs; negative: more than allowed."},
    [RACK] = {METRIC_GAUGE, "belay_rack_watts", "Power that a rack draws, or has set aside."},
    [RACK_MAX] = {METRIC_GAUGE, "belay_rack_max_watts", "Power that a rack may draw."},
    [RACK_PUE] = {METRIC_GAUGE, "belay_rack_pue",
        "What the site draws for each watt of a rack (power usage effectiveness), as configured."},
};

/* Adds to the series with these labels. */
static void add(struct series *all, enum family f, const struct metric_labels *labels, double value)
{
    series_get(&all[f], labels, NULL)->value += value;
}

static double dollars(int64_t uusd)
{
    return (double)uusd / 1e6;
}

static double bytes(int64_t mib)
{
    return (double)mib * (1 << 20);
}

/* ---- nodes and machines ---- */

static void add_node(struct series *all, const struct node *n)
{
    const struct resources *total = &n->row.total, *left = &n->free;
    struct metric_labels place = {0}, state;
    metric_labels_add(&place, "pool", n->row.pool);
    metric_labels_add(&place, "market", market_names[n->row.market]);
    state = place;
    metric_labels_add(&state, "state", sm_name(&node_sm, (int)n->row.state));
    metric_labels_add(&state, "drained",
        !n->row.drain             ? ""
        : n->row.drained_by_belay ? "belay"
                                  : "operator");
    add(all, NODES, &state, 1);
    add(all, CPUS, &place, total->cpus);
    add(all, CPUS_USED, &place, total->cpus - left->cpus);
    add(all, GPUS, &place, total->gpus);
    add(all, GPUS_USED, &place, total->gpus - left->gpus);
    add(all, MEMORY, &place, bytes(total->memory_mib));
    add(all, MEMORY_USED, &place, bytes(total->memory_mib - left->memory_mib));
    add(all, DOLLARS_H, &place, dollars(n->row.price_uusd_h));
}

static void add_drains(struct series *all, const struct model *m)
{
    static const char *const causes[DRAIN_CAUSES] = {"operator", "fault", "failing-jobs"};
    for (int c = 0; c < DRAIN_CAUSES; c++) {
        struct metric_labels l = {0};
        metric_labels_add(&l, "cause", causes[c]);
        add(all, DRAINS, &l, (double)nodes_drains(m, (enum drain_cause)c));
    }
}

static void add_instance(struct series *all, const struct instance_row *r)
{
    struct metric_labels l = {0};
    metric_labels_add(&l, "pool", r->pool);
    metric_labels_add(&l, "market", market_names[r->market]);
    metric_labels_add(&l, "state", sm_name(&instance_sm, (int)r->state));
    add(all, INSTANCES, &l, 1);
}

/* ---- pools and offers ---- */

static void add_offer(struct series *all, const struct offer_row *r)
{
    struct metric_labels l = {0};
    metric_labels_add(&l, "pool", r->pool);
    metric_labels_add(&l, "zone", r->zone);
    metric_labels_add(&l, "type", r->type);
    metric_labels_add(&l, "market", market_names[r->market]);
    add(all, PRICE, &l, dollars(r->price_uusd_h));
    add(all, ON_DEMAND_PRICE, &l, dollars(r->on_demand_uusd_h));
    add(all, LAUNCHES, &l, (double)r->launches);
    add(all, REFUSALS, &l, (double)r->refusals);
    add(all, RECLAIMS, &l, (double)r->reclaims);
    add(all, UP, &l, (double)r->up_ms / 1000);
}

static void add_pools(struct series *all, const struct model *m)
{
    int left = CLUSTER_OFFERS_MAX;
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        struct metric_labels labels = {0};
        metric_labels_add(&labels, "pool", p->row.name);
        if (p->row.elastic) {
            add(all, FAILED_BOOTS, &labels, p->row.boots.failed);
            add(all, BOOTS_FAIL, &labels, p->row.boots.wait_ms > 0);
        }
        LIST_FOREACH (&p->offers, k) {
            const struct offer *o = LIST_ENTRY(k, struct offer, in_pool);
            if (o->row.rank != OFFER_WITHDRAWN && left-- > 0)
                add_offer(all, &o->row);
        }
    }
}

/* ---- budgets and racks ---- */

static void add_budgets(struct series *all, const struct model *m, struct wall now)
{
    for (size_t k = 0; k < core_budgets(m); k++) {
        struct budget_view v;
        struct metric_labels l = {0};
        core_budget(m, k, now, &v);
        int64_t cap = v.options->cap_uusd;
        metric_labels_add(&l, "budget", v.options->name);
        add(all, BUDGET, &l, dollars(cap));
        add(all, BUDGET_SPENT, &l, dollars(v.spent_uusd));
        add(all, BUDGET_LEFT, &l, dollars(cap - v.spent_uusd - v.reserved_uusd));
    }
}

static void add_racks(struct series *all, const struct model *m)
{
    for (size_t k = 0; k < core_racks(m); k++) {
        struct rack_view v;
        struct metric_labels l = {0};
        core_rack(m, k, &v);
        metric_labels_add(&l, "rack", v.options->name);
        add(all, RACK, &l, (double)(v.draw_w + v.measured_w));
        add(all, RACK_MAX, &l, (double)v.options->max_w);
        if (v.options->pue_micro > 0)
            add(all, RACK_PUE, &l, (double)v.options->pue_micro / 1e6);
    }
}

void cluster_write(const struct model *m, struct wall now, struct exposition *x)
{
    struct series all[FAMILIES] = {0};
    LIST_FOREACH (model_nodes(m), l)
        add_node(all, LIST_ENTRY(l, struct node, in_all));
    LIST_FOREACH (model_instances(m), l)
        add_instance(all, &LIST_ENTRY(l, struct instance, in_all)->row);
    add_drains(all, m);
    add_pools(all, m);
    add_budgets(all, m, now);
    add_racks(all, m);
    for (int f = 0; f < FAMILIES; f++) {
        exposition_family(x, families[f].type, families[f].name, families[f].help);
        series_write(&all[f], x);
        series_deinit(&all[f]);
    }
}
