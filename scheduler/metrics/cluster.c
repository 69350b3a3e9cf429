/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics/cluster.h"

#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/placement/rack_options.h"
#include "scheduler/core/queue/budget_options.h"
#include "scheduler/metrics/series.h"
#include <stdio.h>

/* ---- nodes and machines ---- */

/* Sums over nodes with the same labels. */
enum of_nodes { NODES, CPUS, CPUS_USED, GPUS, GPUS_USED, MEMORY, MEMORY_USED, DOLLARS_H, OF_NODES };

static const struct {
    const char *name, *help;
} node_gauges[OF_NODES] = {
    [NODES] = {"belay_nodes", "Nodes by state; drained: who drains it."},
    [CPUS] = {"belay_cpus", "CPUs of nodes."},
    [CPUS_USED] = {"belay_cpus_used", "CPUs of nodes that jobs have."},
    [GPUS] = {"belay_gpus", "GPUs of nodes."},
    [GPUS_USED] = {"belay_gpus_used", "GPUs of nodes that jobs have."},
    [MEMORY] = {"belay_memory_bytes", "Memory of nodes."},
    [MEMORY_USED] = {"belay_memory_used_bytes", "Memory of nodes that jobs have."},
    [DOLLARS_H] = {"belay_cost_dollars_per_hour", "Hourly cost of nodes at their prices."},
};

static void add_node(struct series *all, const struct node *n)
{
    const struct resources *total = &n->row.total, *left = &n->free;
    struct metric_labels place = {0}, state;
    metric_labels_add(&place, "pool", n->row.pool);
    metric_labels_add(&place, "market", market_names[n->row.market]);
    state = place;
    metric_labels_add(&state, "state", sm_name(&node_sm, (int)n->row.state));
    metric_labels_add(&state, "drained",
        !n->row.drain          ? ""
        : n->row.drain_text[0] ? "belay"
                               : "operator");
    const double sums[OF_NODES] = {
        [CPUS] = total->cpus,
        [CPUS_USED] = total->cpus - left->cpus,
        [GPUS] = total->gpus,
        [GPUS_USED] = total->gpus - left->gpus,
        [MEMORY] = (double)total->memory_mib * (1 << 20),
        [MEMORY_USED] = (double)(total->memory_mib - left->memory_mib) * (1 << 20),
        [DOLLARS_H] = (double)n->row.price_uusd_h / 1e6,
    };
    series_get(&all[NODES], &state, NULL)->value++;
    for (int k = NODES + 1; k < OF_NODES; k++)
        series_get(&all[k], &place, NULL)->value += sums[k];
}

static void write_nodes(const struct model *m, struct exposition *x)
{
    struct series all[OF_NODES] = {0};
    LIST_FOREACH (model_nodes(m), l)
        add_node(all, LIST_ENTRY(l, struct node, in_all));
    for (int k = 0; k < OF_NODES; k++) {
        exposition_family(x, METRIC_GAUGE, node_gauges[k].name, node_gauges[k].help);
        series_write(&all[k], x);
        series_deinit(&all[k]);
    }
}

static void write_drains(const struct model *m, struct exposition *x)
{
    static const char *const causes[DRAIN_CAUSES] = {"operator", "fault", "failing-jobs"};
    exposition_family(x, METRIC_COUNTER, "belay_node_drains", "Drains of nodes, by cause.");
    for (int c = 0; c < DRAIN_CAUSES; c++) {
        struct metric_labels l = {0};
        metric_labels_add(&l, "cause", causes[c]);
        exposition_sample(x, l.text, (double)nodes_drains(m, (enum drain_cause)c));
    }
}

static void write_instances(const struct model *m, struct exposition *x)
{
    struct series all = {0};
    LIST_FOREACH (model_instances(m), l) {
        const struct instance_row *r = &LIST_ENTRY(l, struct instance, in_all)->row;
        struct metric_labels labels = {0};
        metric_labels_add(&labels, "pool", r->pool);
        metric_labels_add(&labels, "market", market_names[r->market]);
        metric_labels_add(&labels, "state", sm_name(&instance_sm, (int)r->state));
        series_get(&all, &labels, NULL)->value++;
    }
    exposition_family(
        x, METRIC_GAUGE, "belay_instances", "Machines of providers, by what belay knows of them.");
    series_write(&all, x);
    series_deinit(&all);
}

/* ---- pools and offers ---- */

static double failed_boots(const struct pool_row *r)
{
    return r->boots.failed;
}

static double boots_fail(const struct pool_row *r)
{
    return r->boots.wait_ms > 0;
}

/* A gauge of each elastic pool. */
static void write_pools(const struct model *m, struct exposition *x, const char *name,
    const char *help, double (*value)(const struct pool_row *r))
{
    exposition_family(x, METRIC_GAUGE, name, help);
    LIST_FOREACH (model_pools(m), l) {
        const struct pool_row *r = &LIST_ENTRY(l, struct pool, in_all)->row;
        struct metric_labels labels = {0};
        metric_labels_add(&labels, "pool", r->name);
        if (r->elastic)
            exposition_sample(x, labels.text, value(r));
    }
}

static double price(const struct offer_row *r)
{
    return (double)r->price_uusd_h / 1e6;
}

static double on_demand_price(const struct offer_row *r)
{
    return (double)r->on_demand_uusd_h / 1e6;
}

static double launches(const struct offer_row *r)
{
    return (double)r->launches;
}

static double refusals(const struct offer_row *r)
{
    return (double)r->refusals;
}

static double reclaims(const struct offer_row *r)
{
    return (double)r->reclaims;
}

static double up(const struct offer_row *r)
{
    return (double)r->up_ms / 1000;
}

static const struct {
    enum metric_type type;
    const char *name, *help;
    double (*of)(const struct offer_row *r);
} offer_families[] = {
    {METRIC_GAUGE, "belay_offer_price_dollars_per_hour", "Price of an offer.", price},
    {METRIC_GAUGE, "belay_offer_on_demand_dollars_per_hour", "The same machine on-demand.",
        on_demand_price},
    {METRIC_COUNTER, "belay_offer_launches", "Launches from an offer, of all time.", launches},
    {METRIC_COUNTER, "belay_offer_refusals", "Launches that the provider refused, of all time.",
        refusals},
    {METRIC_COUNTER, "belay_offer_reclaims", "Machines of an offer taken back, of all time.",
        reclaims},
    {METRIC_COUNTER, "belay_offer_up_seconds",
        "Observed time of machines of an offer, of all time.", up},
};

static void write_offers(const struct model *m, struct exposition *x)
{
    for (size_t k = 0; k < sizeof offer_families / sizeof offer_families[0]; k++) {
        int left = CLUSTER_OFFERS_MAX;
        exposition_family(
            x, offer_families[k].type, offer_families[k].name, offer_families[k].help);
        LIST_FOREACH (model_pools(m), p)
            LIST_FOREACH (&LIST_ENTRY(p, struct pool, in_all)->offers, l) {
                const struct offer_row *r = &LIST_ENTRY(l, struct offer, in_pool)->row;
                struct metric_labels labels = {0};
                if (r->rank == OFFER_WITHDRAWN || left-- <= 0)
                    continue;
                metric_labels_add(&labels, "pool", r->pool);
                metric_labels_add(&labels, "zone", r->zone);
                metric_labels_add(&labels, "type", r->type);
                metric_labels_add(&labels, "market", market_names[r->market]);
                exposition_sample(x, labels.text, offer_families[k].of(r));
            }
    }
}

/* ---- budgets and racks ---- */

static void write_budget(const struct model *m, struct wall now, struct exposition *x,
    const char *name, const char *help, double (*of)(const struct budget_view *v))
{
    exposition_family(x, METRIC_GAUGE, name, help);
    for (size_t k = 0; k < core_budgets(m); k++) {
        struct budget_view v;
        struct metric_labels labels = {0};
        core_budget(m, k, now, &v);
        metric_labels_add(&labels, "budget", v.options->name);
        exposition_sample(x, labels.text, of(&v));
    }
}

static double cap(const struct budget_view *v)
{
    return (double)v->options->cap_uusd / 1e6;
}

static double spent(const struct budget_view *v)
{
    return (double)v->spent_uusd / 1e6;
}

static double left_of(const struct budget_view *v)
{
    return (double)(v->options->cap_uusd - v->spent_uusd - v->reserved_uusd) / 1e6;
}

static void write_racks(const struct model *m, struct exposition *x, const char *name,
    const char *help, double (*of)(const struct rack_view *v))
{
    exposition_family(x, METRIC_GAUGE, name, help);
    for (size_t k = 0; k < core_racks(m); k++) {
        struct rack_view v;
        struct metric_labels labels = {0};
        core_rack(m, k, &v);
        metric_labels_add(&labels, "rack", v.options->name);
        exposition_sample(x, labels.text, of(&v));
    }
}

static double draw(const struct rack_view *v)
{
    return (double)(v->draw_w + v->measured_w);
}

static double limit(const struct rack_view *v)
{
    return (double)v->options->max_w;
}

void cluster_write(const struct model *m, struct wall now, struct exposition *x)
{
    write_nodes(m, x);
    write_drains(m, x);
    write_instances(m, x);
    write_pools(m, x, "belay_pool_failed_boots",
        "Machines of a pool, in a row, that were launched and never joined, or whose disks were "
        "full before their first job.",
        failed_boots);
    write_pools(m, x, "belay_pool_boots_fail",
        "1 while a pool launches one machine at a time, because its machines do not join, or join "
        "with full disks.",
        boots_fail);
    write_offers(m, x);
    write_budget(m, now, x, "belay_budget_dollars", "What a budget allows in its period.", cap);
    write_budget(m, now, x, "belay_budget_spent_dollars", "Spent in this period.", spent);
    write_budget(m, now, x, "belay_budget_left_dollars",
        "Neither spent nor set aside for running jobs; negative: more than allowed.", left_of);
    write_racks(m, x, "belay_rack_watts", "Power that a rack draws, or has set aside.", draw);
    write_racks(m, x, "belay_rack_max_watts", "Power that a rack may draw.", limit);
}
