/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by run.c, run_fit.c, run_reserve.c and run_machines.c: the state of one run of a
 * forecast.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_RUN_PRIVATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_RUN_PRIVATE_H

#include "scheduler/core/forecast/forecast_parts.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/queue/queue.h"

#define REFILLS_MAX 64

/* The end of a run. */
struct due {
    int64_t at_ms;
    int32_t run;
};

struct forecast_run {
    const struct forecast_snapshot *p;
    struct prng prng;
    bool latest;
    int64_t t_ms, work;
    struct slot *slots;
    size_t n_slots;
    struct run *runs;
    size_t n_runs;
    struct due *heap;
    size_t n_heap; /* earliest on top */
    struct forecast_demand demands[FORECAST_DEMANDS];
    struct group groups[GROUPS_MAX];
    int64_t licences[LICENCES_MAX];
    struct capacity *capacity, all; /* by the index of a pool */
    int64_t left_w[RACKS_MAX];      /* by the index of a rack */
    int32_t recent_ends[RECENT_ENDS_MAX], n_recent_ends;
    int32_t to_refill[REFILLS_MAX], n_to_refill; /* slots that may start jobs */
    int32_t n_reserved;
    int64_t epoch; /* increases when other nodes may be reserved */
    size_t n_launched;
    struct forecast_result done;
    bool is_done;
};

/* ---- run.c ---- */

/* Schedules a future event that is not a run. */
void run_schedule(struct forecast_run *s, int32_t slot, int64_t at_ms);

/* ---- run_fit.c ---- */

/* The demand could use the slot if it were empty. */
static inline bool run_demand_allowed(
    const struct forecast_run *s, const struct slot *c, int32_t demand)
{
    return s->p->node_class[c->node_class].allowed_demands[demand / 64] >> (demand % 64) & 1;
}

/* Jobs of the demand are waiting now. */
static inline bool run_waits(const struct forecast_run *s, const struct forecast_demand *l)
{
    return l->left > 0 && l->from_ms <= s->t_ms;
}

/* Resources that a job of the shape uses on the slot. */
static inline const struct resources *run_takes(
    const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    return shape_takes(of, &s->p->node_class[c->node_class].total);
}

/* Latest end of a run that begins then, with this limit. */
static inline int64_t run_limit_end(int64_t from_ms, int64_t limit_ms)
{
    return limit_ms > 0 ? from_ms + limit_ms : NEVER_MS;
}

/* Jobs of a are before those of b in the queue. */
static inline bool run_is_ahead(const struct forecast_demand *a, const struct forecast_demand *b)
{
    return queue_position_order(a->position, b->position) < 0;
}

/* Pool of its machine. */
static inline const struct pool *run_pool_of(
    const struct slot *c, const struct forecast_snapshot *p)
{
    const struct node_class *k = &p->node_class[c->node_class];
    return k->node ? k->node->pool : k->offer->pool;
}

/* Hourly cost of a job of the shape there. */
int64_t run_price_of(const struct forecast_run *s, const struct slot *c, const struct shape *of);

/* One more of the demand there (NULL: anywhere) exceeds a limit of its user or team. */
bool run_exceeds(
    const struct forecast_run *s, const struct forecast_demand *l, const struct slot *c);

/* Fewer are free than a job of the demand needs. */
bool run_lacks_licences(const struct forecast_run *s, const struct forecast_demand *l);

/* Rack of its machine; NULL: none. */
const struct rack *run_rack_of(
    const struct forecast_run *s, const struct slot *c, const struct rack_nodes **ret_kind);

/* sign 1: a job of the shape starts there; -1: one ended. */
void run_take_power(
    struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t sign);

/* For a job of the shape on each of these slots. */
bool run_have_power(
    const struct forecast_run *s, const int32_t *slots, int32_t n, const struct shape *of);

/* The first moment from then on at which reservations for maintenance allow a job there. */
int64_t run_maintained_until(
    const struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t at_ms);

/* Capacity and power for a job of the demand, and no other condition excludes it. */
bool run_fits(const struct forecast_run *s, const struct slot *c, int32_t demand);

/* The slot's reservation is still kept with this job there. */
bool run_leaves_capacity(
    const struct forecast_run *s, const struct slot *c, const struct forecast_demand *l);

/* It accepts work now, and the demand may pass its reservation. */
bool run_is_open(const struct forecast_run *s, const struct slot *c, int32_t demand);

/* ---- run_reserve.c ---- */

/* Searches the slots with recent ends; for a large gang with too few of them, all slots. */
void run_reserve(struct forecast_run *s, int32_t demand);

/* no-op without reservations */
void run_unreserve(struct forecast_run *s, int32_t demand);

/* ---- run_machines.c ---- */

/* For all pending jobs, within their limits. */
void run_launch_all(struct forecast_run *s);

/* The pool, if it is elastic; else NULL. */
const struct pool_row *run_elastic(const struct forecast_run *s, const struct slot *c);

/* No job fits there any more: ending it may free capacity for another machine. */
void run_end_if_idle(struct forecast_run *s, int32_t slot);

#endif
