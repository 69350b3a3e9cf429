/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines in a run of a forecast (run.c): launched for pending jobs, and ended when no job fits
 * any more.
 */
#include "scheduler/core/forecast/run_private.h"

#include "base/mem.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/supply/offers.h"
#include <stdlib.h>

#define COMING_MAX 1024 /* launches per run */

static int32_t launch(struct forecast_run *s, const struct offer *o)
{
    int32_t slot = (int32_t)s->n_slots, node_class = 0;
    while (s->p->node_class[node_class].offer != o)
        node_class++;
    *GROW(s->slots, s->n_slots) = (struct slot){.free = offer_total(o),
        .node_class = node_class,
        .first = NO_INDEX,
        .kept_for = NO_INDEX,
        .open_ms = s->t_ms + offer_boot_ms(o) * (s->latest ? 2 : 1)};
    s->slots[slot].idle_ms = s->slots[slot].open_ms;
    run_schedule(s, slot, s->slots[slot].open_ms);
    capacity_take(&s->capacity[o->pool->index], o);
    capacity_take(&s->all, o);
    s->n_launched++;
    return slot;
}

static const struct offer *cheapest_for(
    const struct forecast_run *s, int32_t demand, int64_t *ret_again_ms)
{
    const struct offer *best = NULL;
    struct stamp now = s->p->now;
    now.mono.ms += s->t_ms - now.wall.ms;
    for (size_t k = 0; k < s->p->n_node_classes; k++) {
        const struct offer *o = s->p->node_class[k].offer;
        if (!o || !(s->p->node_class[k].allowed_demands[demand / 64] >> (demand % 64) & 1) ||
            capacity_lacks(&s->capacity[o->pool->index], o) || capacity_lacks(&s->all, o))
            continue;
        const struct pool *in = o->pool;
        const struct wall ready_at = {s->t_ms + offer_boot_ms(o) * (s->latest ? 2 : 1)};
        if (maintenance_earliest(in->maintenance, s->demands[demand].shape, ready_at, true).ms >
            ready_at.ms)
            continue;
        if (offer_is_unreliable(o) ||
            (in->rack && rack_single_w(in->rack_kind, offer_total(o), s->demands[demand].shape) >
                             s->left_w[in->rack->index]))
            continue;
        int64_t until = mono_is_set(o->row.avoid_until) ? o->row.avoid_until.ms : 0;
        if (until > now.mono.ms) {
            int64_t at = s->t_ms + until - now.mono.ms;
            *ret_again_ms = at < *ret_again_ms ? at : *ret_again_ms;
            continue;
        }
        if (!best || o->row.rank < best->row.rank ||
            (o->row.rank == best->row.rank && o->row.price_uusd_h < best->row.price_uusd_h))
            best = o;
    }
    return best;
}

/* How many of n jobs fit on the machine; takes the capacity. */
static int64_t fill(const struct forecast_run *s, const struct slot *c,
    const struct forecast_demand *l, int64_t n, struct resources *left)
{
    const struct resources *each = run_takes(s, c, l->shape);
    int64_t times = l->nodes > 1 ? resources_fit(each, left) : resources_times(left, each);
    times = times < n ? times : n;
    for (int64_t i = 0; i < times; i++)
        resources_take(left, each);
    return times;
}

/* For pending jobs in queue order, assuming no ends in between. Capacity on coming machines is used
 * first. */
static void launch_for(
    struct forecast_run *s, int32_t demand, struct resources *left, int64_t *ret_again_ms)
{
    struct forecast_demand *l = &s->demands[demand];
    int64_t n = l->left * l->nodes;
    for (size_t k = 0; k < s->n_slots && n > 0; k++)
        if (left[k].cpus > 0 && run_demand_allowed(s, &s->slots[k], demand) &&
            run_maintained_until(s, &s->slots[k], l->shape, s->slots[k].open_ms) ==
                s->slots[k].open_ms)
            n -= fill(s, &s->slots[k], l, n, &left[k]);
    const struct offer *o;
    while (n > 0 && s->n_launched < COMING_MAX && (o = cheapest_for(s, demand, ret_again_ms))) {
        const struct capacity *capacity = &s->capacity[o->pool->index];
        if (l->nodes > 1 && (capacity->nodes < l->nodes || s->all.nodes < l->nodes))
            break;
        size_t at = (size_t)launch(s, o);
        left[at] = s->slots[at].free;
        n -= fill(s, &s->slots[at], l, n, &left[at]);
    }
    l->comes = n == 0;
}

void run_launch_all(struct forecast_run *s)
{
    int64_t again_ms = NEVER_MS;
    bool any = s->n_launched > 0;
    for (size_t k = 0; k < s->p->n_node_classes; k++)
        any |= s->p->node_class[k].offer != NULL;
    if (!any)
        return;
    /* of coming machines */
    struct resources *left = mem_array(s->n_slots + COMING_MAX, sizeof *left);
    for (size_t k = 0; k < s->n_slots; k++)
        if (s->slots[k].open_ms > s->t_ms && s->slots[k].open_ms < NEVER_MS)
            left[k] = s->slots[k].free;
    for (int32_t k = 0; k < s->p->n_demands; k++)
        if (run_waits(s, &s->demands[k]) && !run_exceeds(s, &s->demands[k], NULL) &&
            !run_lacks_licences(s, &s->demands[k]))
            launch_for(s, k, left, &again_ms);
    free(left);
    s->work += s->p->n_demands;
    if (again_ms < NEVER_MS)
        run_schedule(s, NO_INDEX, again_ms);
}

const struct pool_row *run_elastic(const struct forecast_run *s, const struct slot *c)
{
    const struct pool *p = run_pool_of(c, s->p);
    return p->row.elastic ? &p->row : NULL;
}

/* No job fits there any more: ending it may free capacity for another machine. */
void run_end_if_idle(struct forecast_run *s, int32_t slot)
{
    struct slot *c = &s->slots[slot];
    const struct pool_row *pool = run_elastic(s, c);
    if (!pool || c->first != NO_INDEX || c->kept_for != NO_INDEX || c->open_ms > s->t_ms)
        return;
    if (s->t_ms < c->idle_ms + pool->idle_timeout_ms) {
        run_schedule(s, slot, c->idle_ms + pool->idle_timeout_ms);
        return;
    }
    c->open_ms = NEVER_MS;
    struct capacity *capacity = &s->capacity[run_pool_of(c, s->p)->index];
    const struct node_class *k = &s->p->node_class[c->node_class];
    int64_t uusd_h = k->node ? k->node->row.price_uusd_h : k->offer->row.price_uusd_h;
    int64_t gpus = k->node ? k->node->row.total.gpus : k->offer->row.total.gpus;
    struct capacity *const both[] = {capacity, &s->all};
    for (int i = 0; i < 2; i++) {
        both[i]->nodes += both[i]->nodes == INT64_MAX ? 0 : 1;
        both[i]->gpus += both[i]->gpus == INT64_MAX ? 0 : gpus;
        both[i]->uusd_h += both[i]->uusd_h == INT64_MAX ? 0 : uusd_h;
    }
    run_launch_all(s);
}
