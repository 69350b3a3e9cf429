/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement rules in a run of a forecast (run.c): capacity, price, limits, licences, rack power,
 * and reservations.
 */
#include "scheduler/core/forecast/run_private.h"

#include "scheduler/core/model/resources.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/windows.h"

int64_t run_price_of(const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    const struct node_class *k = &s->p->node_class[c->node_class];
    return resources_share(run_takes(s, c, of), &k->total,
        c->node ? c->node->row.price_uusd_h : k->offer->row.price_uusd_h);
}

bool run_exceeds(
    const struct forecast_run *s, const struct forecast_demand *l, const struct slot *c)
{
    for (int k = 0; k < 2; k++) {
        const struct group *g = &s->groups[l->group[k]];
        if (l->group[k] == 0)
            continue;
        const struct resources *each = c ? run_takes(s, c, l->shape) : &l->need;
        int64_t more[LIMIT_KINDS] = {[LIMIT_RUNNING] = 1,
            [LIMIT_GPUS] = (int64_t)l->nodes * each->gpus,
            [LIMIT_UUSD_H] = c ? l->nodes * run_price_of(s, c, l->shape) : 0,
            [LIMIT_MCPU] = l->nodes * priority_mcpu(model_policy(s->p->m), each)};
        for (int kind = 0; kind < LIMIT_SUBMITTED; kind++)
            if (more[kind] > 0 && more[kind] > g->of->max[kind] - g->used[kind])
                return true;
    }
    return false;
}

bool run_lacks_licences(const struct forecast_run *s, const struct forecast_demand *l)
{
    const struct counts *need = l->shape->constraints ? &l->shape->constraints->licences : NULL;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *of = licence_named(s->p->m, need->v[i].name);
        if (!of || s->licences[licence_index(of, s->p->m)] < need->v[i].n)
            return true;
    }
    return false;
}

/* Rack of its machine; NULL: none. */
const struct rack *run_rack_of(
    const struct forecast_run *s, const struct slot *c, const struct rack_nodes **ret_kind)
{
    const struct node_class *k = &s->p->node_class[c->node_class];
    const struct rack *r = c->node ? c->node->rack : k->offer ? k->offer->pool->rack : NULL;
    *ret_kind = !r ? NULL : c->node ? c->node->rack_kind : k->offer->pool->rack_kind;
    return *ret_kind ? r : NULL;
}

/* Additional draw of one more job of the shape there; NULL: no rack. */
static const struct rack *power_drawn_by(
    const struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t *ret_w)
{
    const struct rack_nodes *kind;
    const struct rack *r = run_rack_of(s, c, &kind);
    *ret_w = r ? rack_adds(kind, &s->p->node_class[c->node_class].total, &c->free, of, 1) : 0;
    return r;
}

static bool has_power(const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    int64_t watts;
    const struct rack *r = power_drawn_by(s, c, of, &watts);
    return !r || watts <= s->left_w[r->index];
}

/* sign 1: a job of the shape starts there; -1: one ended. */
void run_take_power(
    struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t sign)
{
    int64_t watts;
    const struct rack *r = power_drawn_by(s, c, of, &watts);
    if (r)
        s->left_w[r->index] -= sign * watts;
}

int64_t run_maintained_until(
    const struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t at_ms)
{
    uint64_t mask = c->node ? c->node->maintenance : run_pool_of(c, s->p)->maintenance;
    if (!mask || at_ms >= NEVER_MS)
        return at_ms;
    struct wall at = maintenance_earliest(mask, of, (struct wall){at_ms}, false);
    return at.ms < WALL_NEVER.ms ? at.ms : NEVER_MS;
}

bool run_fits(const struct forecast_run *s, const struct slot *c, int32_t demand)
{
    const struct forecast_demand *l = &s->demands[demand];
    return resources_fit(run_takes(s, c, l->shape), &c->free) && has_power(s, c, l->shape) &&
           run_demand_allowed(s, c, demand) && (!c->node || c->node->row.id != l->shape->avoid) &&
           run_maintained_until(s, c, l->shape, s->t_ms) == s->t_ms;
}

/* The slot's reservation is still kept with this job there. */
bool run_leaves_capacity(
    const struct forecast_run *s, const struct slot *c, const struct forecast_demand *l)
{
    struct resources free = c->free, all = *run_takes(s, c, s->demands[c->kept_for].shape);
    resources_give(&all, run_takes(s, c, l->shape));
    for (int32_t r = c->first; r != NO_INDEX; r = s->runs[r].next)
        if (s->runs[r].limit_ms <= c->until_ms)
            resources_give(&free, run_takes(s, c, s->runs[r].shape));
    return resources_fit(&all, &free);
}

bool run_is_open(const struct forecast_run *s, const struct slot *c, int32_t demand)
{
    const struct forecast_demand *l = &s->demands[demand];
    if (c->open_ms > s->t_ms)
        return false;
    if (c->kept_for == NO_INDEX || c->kept_for == demand ||
        run_is_ahead(l, &s->demands[c->kept_for]))
        return true;
    return run_limit_end(s->t_ms, l->shape->limit_ms) <= c->until_ms ||
           run_leaves_capacity(s, c, l);
}

/* For a job of the shape on each of these slots. */
bool run_have_power(
    const struct forecast_run *s, const int32_t *slots, int32_t n, const struct shape *of)
{
    int64_t sums[RACKS_MAX] = {0};
    for (int32_t k = 0; k < n && racks_count(s->p->m) > 0; k++) {
        int64_t watts;
        const struct rack *r = power_drawn_by(s, &s->slots[slots[k]], of, &watts);
        if (r && (sums[r->index] += watts) > s->left_w[r->index])
            return false;
    }
    return true;
}
