/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations for the first waiting jobs in a run of a forecast (run.c), as the planner makes them
 * (placement/reserve.c).
 */
#include "scheduler/core/forecast/run_private.h"

#include "base/mem.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/queue/queue.h"
#include <stdlib.h>

#define SORT_MAX 256 /* runs per node that are examined */

static void queue_refill(struct forecast_run *s, int32_t slot)
{
    if (s->n_to_refill < REFILLS_MAX)
        s->to_refill[s->n_to_refill++] = slot;
}

void run_unreserve(struct forecast_run *s, int32_t demand)
{
    struct forecast_demand *l = &s->demands[demand];
    l->reserve_tried = 0;
    if (!l->has_reserved)
        return;
    l->has_reserved = false;
    s->epoch++;
    s->n_reserved--;
    for (int32_t c = l->kept, next; c != NO_INDEX; c = next) {
        next = s->slots[c].next_kept;
        s->slots[c].kept_for = NO_INDEX;
        queue_refill(s, c);
    }
}

struct by_limit {
    int64_t at_ms;
    const struct resources *need;
};

static int compare_limits(const void *a, const void *b)
{
    int64_t x = ((const struct by_limit *)a)->at_ms, y = ((const struct by_limit *)b)->at_ms;
    return (x > y) - (x < y);
}

/* When it has capacity there by the limits of running jobs; 0 = now. */
static int64_t has_capacity_at(
    const struct forecast_run *s, const struct slot *c, const struct forecast_demand *l)
{
    struct by_limit ends[SORT_MAX];
    struct resources free = c->free;
    const struct resources *need = run_takes(s, c, l->shape);
    size_t n = 0;
    int64_t at = 0;
    if (c->open_ms > s->t_ms)
        at = c->open_ms;
    if (resources_fit(need, &free))
        return at;
    for (int32_t r = c->first; r != NO_INDEX && n < SORT_MAX; r = s->runs[r].next)
        ends[n++] = (struct by_limit){s->runs[r].limit_ms, run_takes(s, c, s->runs[r].shape)};
    qsort(ends, n, sizeof ends[0], compare_limits);
    for (size_t k = 0; k < n && !resources_fit(need, &free); k++) {
        resources_give(&free, ends[k].need);
        at = ends[k].at_ms;
    }
    return at;
}

/* The same, and no reservation for maintenance excludes it. */
static int64_t fits_at(
    const struct forecast_run *s, const struct slot *c, const struct forecast_demand *l)
{
    int64_t at = has_capacity_at(s, c, l), from = at > s->t_ms ? at : s->t_ms,
            until = run_maintained_until(s, c, l->shape, from);
    return until > from ? until : at;
}

struct option {
    int64_t at_ms;
    int32_t slot;
};

static int compare_options(const void *a, const void *b)
{
    const struct option *x = a, *y = b;
    int by_time = (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
    return by_time ? by_time : (x->slot > y->slot) - (x->slot < y->slot);
}

static bool may_be_reserved(const struct forecast_run *s, const struct slot *c, int32_t demand)
{
    const struct forecast_demand *l = &s->demands[demand];
    return c->open_ms < NEVER_MS && run_demand_allowed(s, c, demand) &&
           (c->kept_for == NO_INDEX || run_is_ahead(l, &s->demands[c->kept_for]));
}

static void reserve_slots(struct forecast_run *s, int32_t demand, const struct option *o, int32_t n)
{
    s->demands[demand].kept = NO_INDEX;
    for (int32_t k = 0; k < n; k++) {
        struct slot *c = &s->slots[o[k].slot];
        if (c->kept_for != NO_INDEX)
            run_unreserve(s, c->kept_for);
        c->kept_for = demand;
        c->until_ms = o[n - 1].at_ms;
        c->next_kept = s->demands[demand].kept;
        s->demands[demand].kept = o[k].slot;
    }
    s->demands[demand].has_reserved = true;
    s->n_reserved++;
}

/* Slots with the earliest start: as many as needed, sorted, in the first pool that has enough. */
static int32_t choose(
    const struct forecast_run *s, const struct forecast_demand *l, struct option *options, size_t n)
{
    qsort(options, n, sizeof *options, compare_options);
    for (size_t k = 0; k < n; k++) {
        const struct pool *pool = run_pool_of(&s->slots[options[k].slot], s->p);
        int32_t same = 0;
        for (size_t i = 0; i <= k && same < l->nodes; i++)
            same += run_pool_of(&s->slots[options[i].slot], s->p) == pool;
        if (same < l->nodes)
            continue;
        size_t chosen = 0;
        for (size_t i = 0; i <= k; i++)
            if (run_pool_of(&s->slots[options[i].slot], s->p) == pool)
                options[chosen++] = options[i];
        return l->nodes;
    }
    return 0;
}

/* Searches the slots with recent ends; for a large gang with too few of them, all slots. */
void run_reserve(struct forecast_run *s, int32_t demand)
{
    struct forecast_demand *l = &s->demands[demand];
    bool all = l->nodes * 4 > RECENT_ENDS_MAX;
    l->reserve_tried = s->epoch;
    for (int tries = 0; tries < 2 && !l->has_reserved; tries++, all = true) {
        size_t max = all ? s->n_slots : (size_t)s->n_recent_ends, n = 0;
        struct option *options = mem_array(max + 1, sizeof *options);
        for (size_t k = 0; k < max; k++) {
            int32_t at = all ? (int32_t)k : s->recent_ends[k];
            if (may_be_reserved(s, &s->slots[at], demand))
                options[n++] = (struct option){fits_at(s, &s->slots[at], l), at};
        }
        s->work += 1 + (int64_t)max / 64;
        if (choose(s, l, options, n) > 0)
            reserve_slots(s, demand, options, l->nodes);
        free(options);
        if (all || l->nodes == 1)
            return;
    }
}
