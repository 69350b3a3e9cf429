/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a forecast: events in order of time, with the planner's rules. Only changed slots are
 * examined, so the cost of an event depends on the number of demands, not of nodes or jobs.
 * Placement rules are in run_fit.c, reservations in run_reserve.c, launches in run_machines.c.
 */
#include "scheduler/core/forecast/run_private.h"

#include "base/mem.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include <stdlib.h>
#include <string.h>

#define WEEKS_MAX 8       /* times of a weekly reservation that are looked at */
#define STOPPING_MS 10000 /* assumed rest of a stop */
/* The latest start of an extrapolated run is this much later than by capacity alone. */
#define LATEST_MARGIN 1.25
#define EXTRAPOLATED_MAX_MS (120.0 * RUNTIMES_MAX_MS) /* about ten years: more is never */

/* ---- the heap ---- */

static bool is_earlier(struct due a, struct due b)
{
    return a.at_ms != b.at_ms ? a.at_ms < b.at_ms : a.run < b.run;
}

static void sift_down(struct forecast_run *s, size_t k)
{
    const struct due it = s->heap[k];
    for (size_t child; (child = 2 * k + 1) < s->n_heap; k = child) {
        if (child + 1 < s->n_heap && is_earlier(s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_earlier(s->heap[child], it))
            break;
        s->heap[k] = s->heap[child];
    }
    s->heap[k] = it;
}

static void heap_push(struct forecast_run *s, int32_t run, int64_t at_ms)
{
    const struct due it = {at_ms, run};
    size_t k = s->n_heap;
    *GROW(s->heap, s->n_heap) = it;
    for (; k > 0 && is_earlier(it, s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = it;
}

static struct due heap_pop(struct forecast_run *s)
{
    const struct due first = s->heap[0];
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0)
        sift_down(s, 0);
    return first;
}

/* A future event that is not a run. */
void run_schedule(struct forecast_run *s, int32_t slot, int64_t at_ms)
{
    *GROW(s->runs, s->n_runs) =
        (struct run){.limit_ms = at_ms, .slot = slot, .prev = NO_INDEX, .next = NO_INDEX};
    heap_push(s, (int32_t)s->n_runs - 1, at_ms);
}

/* ---- starts and ends ---- */

static void count(struct forecast_run *s, const struct run *r, int64_t sign)
{
    const struct account *a = r->shape->account;
    const struct allowance *const of[] = {&a->allowance, &a->team->allowance};
    const struct resources *has =
        r->slot == NO_INDEX ? &r->shape->need : run_takes(s, &s->slots[r->slot], r->shape);
    for (int k = 0; k < 2; k++) {
        struct group *g = &s->groups[s->p->group_of ? s->p->group_of[of[k]->index] : 0];
        if (g == &s->groups[0])
            continue;
        g->used[LIMIT_RUNNING] += r->counts ? sign : 0;
        g->used[LIMIT_GPUS] += sign * has->gpus;
        g->used[LIMIT_UUSD_H] += sign * r->uusd_h;
        g->used[LIMIT_MCPU] += sign * priority_mcpu(model_policy(s->p->m), has);
    }
    const struct counts *need =
        r->counts && r->shape->constraints ? &r->shape->constraints->licences : NULL;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *l = licence_named(s->p->m, need->v[i].name);
        if (l)
            s->licences[licence_index(l, s->p->m)] -= sign * need->v[i].n;
    }
}

static void unlink_run(struct forecast_run *s, const struct run *r)
{
    if (r->prev != NO_INDEX)
        s->runs[r->prev].next = r->next;
    else
        s->slots[r->slot].first = r->next;
    if (r->next != NO_INDEX)
        s->runs[r->next].prev = r->prev;
}

static void start_on(struct forecast_run *s, const struct forecast_demand *l, int32_t slot,
    int64_t end_ms, bool counts)
{
    struct slot *c = &s->slots[slot];
    struct run *r = GROW(s->runs, s->n_runs);
    int32_t at = (int32_t)s->n_runs - 1;
    *r = (struct run){.limit_ms = run_limit_end(s->t_ms, l->shape->limit_ms),
        .shape = l->shape,
        .uusd_h = run_price_of(s, c, l->shape),
        .slot = slot,
        .prev = NO_INDEX,
        .next = c->first,
        .counts = counts};
    if (c->first != NO_INDEX)
        s->runs[c->first].prev = at;
    c->first = at;
    run_take_power(s, c, l->shape, 1);
    resources_take(&c->free, run_takes(s, c, l->shape));
    count(s, r, 1);
    heap_push(s, at, end_ms);
}

static int64_t draw_end(struct forecast_run *s, const struct forecast_demand *l)
{
    int64_t limit_ms = l->shape->limit_ms;
    if (s->latest)
        return run_limit_end(s->t_ms, limit_ms);
    const struct runtimes *r =
        l->n_histories ? l->histories[prng_below(&s->prng, (uint64_t)l->n_histories)] : NULL;
    return s->t_ms + runtimes_draw(r, limit_ms, 0, prng_u64(&s->prng));
}

/* The next job of the demand has started. */
static void advance(struct forecast_run *s, int32_t demand)
{
    struct forecast_demand *l = &s->demands[demand];
    run_unreserve(s, demand);
    l->position.at_16 += l->step;
    l->left--;
}

static void note_own_start(struct forecast_run *s, int32_t demand, int32_t slot)
{
    const struct slot *c = &s->slots[slot];
    if (demand != s->p->mine)
        return;
    s->is_done = true;
    s->done.at_ms = s->t_ms;
    s->done.node = c->node;
    s->done.offer = c->node ? NULL : s->p->node_class[c->node_class].offer;
}

static void start(struct forecast_run *s, int32_t demand, int32_t slot)
{
    struct slot *c = &s->slots[slot];
    const struct forecast_demand *l = &s->demands[demand];
    if (c->kept_for != NO_INDEX && c->kept_for != demand &&
        !(run_limit_end(s->t_ms, l->shape->limit_ms) <= c->until_ms ||
            run_leaves_capacity(s, c, l)))
        run_unreserve(s, c->kept_for); /* it is before them in the queue */
    note_own_start(s, demand, slot);
    start_on(s, l, slot, draw_end(s, l), true);
    advance(s, demand);
}

/* A gang with reservations starts when all of their nodes have capacity. */
static bool start_gang(struct forecast_run *s, int32_t demand)
{
    struct forecast_demand *l = &s->demands[demand];
    int32_t slots[JOB_NODES_MAX] = {0}, n = 0;
    if (!l->has_reserved || !run_waits(s, l) || run_exceeds(s, l, NULL) || run_lacks_licences(s, l))
        return false;
    for (int32_t k = l->kept; k != NO_INDEX && n < l->nodes; k = s->slots[k].next_kept) {
        const struct slot *c = &s->slots[k];
        if (c->open_ms > s->t_ms || !resources_fit(run_takes(s, c, l->shape), &c->free) ||
            run_maintained_until(s, c, l->shape, s->t_ms) > s->t_ms)
            return false;
        slots[n++] = k;
    }
    if (n < l->nodes || !run_have_power(s, slots, n, l->shape))
        return false;
    int64_t end_ms = draw_end(s, l);
    note_own_start(s, demand, slots[0]);
    for (int32_t k = 0; k < n; k++)
        start_on(s, l, slots[k], end_ms, k == 0);
    advance(s, demand);
    return true;
}

/* ---- next job ---- */

static int32_t first_demand_for_slot(const struct forecast_run *s, const struct slot *c)
{
    int32_t best = NO_INDEX;
    for (int32_t k = 0; k < s->p->n_demands; k++) {
        const struct forecast_demand *l = &s->demands[k];
        if (l->left == 0 || !resources_fit(&l->need, &c->free) || l->nodes > 1)
            continue;
        if ((best != NO_INDEX && !run_is_ahead(l, &s->demands[best])) || !run_waits(s, l) ||
            !run_fits(s, c, k) || !run_is_open(s, c, k))
            continue;
        if (!run_exceeds(s, l, c) && !run_lacks_licences(s, l))
            best = k;
    }
    return best;
}

/* Reserves nodes for the first waiting jobs before others pass them. */
static bool reserve_before(struct forecast_run *s, const struct forecast_demand *passing)
{
    int32_t reserve_max = model_policy(s->p->m)->reserve;
    for (int32_t k = 0; k < s->p->n_demands && s->n_reserved < reserve_max; k++) {
        const struct forecast_demand *l = &s->demands[k];
        if (l->has_reserved || l->reserve_tried == s->epoch || l->comes || !run_waits(s, l) ||
            (passing ? !run_is_ahead(l, passing) : l->nodes == 1))
            continue;
        if (run_exceeds(s, l, NULL) || run_lacks_licences(s, l))
            continue;
        run_reserve(s, k);
        if (l->nodes > 1)
            start_gang(s, k); /* all may have capacity already */
        return true;
    }
    return false;
}

static void fill_slot(struct forecast_run *s, int32_t slot)
{
    if (s->slots[slot].kept_for != NO_INDEX && s->demands[s->slots[slot].kept_for].nodes > 1)
        start_gang(s, s->slots[slot].kept_for);
    while (!s->is_done) {
        int32_t best = first_demand_for_slot(s, &s->slots[slot]);
        s->work++;
        if (best == NO_INDEX)
            return;
        if (!reserve_before(s, &s->demands[best]))
            start(s, best, slot);
    }
}

static void refill_freed_slots(struct forecast_run *s)
{
    while (s->n_to_refill > 0 && !s->is_done)
        fill_slot(s, s->to_refill[--s->n_to_refill]);
    s->n_to_refill = 0;
}

/* A job that was held back by something other than capacity: tries any slot. */
static void try_demand(struct forecast_run *s, int32_t demand)
{
    const struct forecast_demand *l = &s->demands[demand];
    for (size_t k = 0; k < s->n_slots && !s->is_done && run_waits(s, l) && l->nodes == 1; k++) {
        if (run_exceeds(s, l, NULL) || run_lacks_licences(s, l))
            return;
        if (run_fits(s, &s->slots[k], demand) && run_is_open(s, &s->slots[k], demand))
            fill_slot(s, (int32_t)k);
    }
    s->work += (int64_t)s->n_slots / 64;
}

static bool has_licences(const struct forecast_demand *l)
{
    return l->shape->constraints && l->shape->constraints->licences.n > 0;
}

/* Usage of its user or team fell, or licences are free. */
static void try_limited_demands(struct forecast_run *s, const struct run *r)
{
    bool licences = r->shape->constraints && r->shape->constraints->licences.n > 0;
    if (s->p->n_groups <= 1 && !licences)
        return;
    const struct account *a = r->shape->account;
    for (int32_t k = 0; k < s->p->n_demands && !s->is_done; k++) {
        const struct forecast_demand *l = &s->demands[k];
        bool same = (l->group[0] && s->groups[l->group[0]].of == &a->allowance) ||
                    (l->group[1] && s->groups[l->group[1]].of == &a->team->allowance);
        if (l->left > 0 && (same || (licences && has_licences(l))))
            try_demand(s, k);
    }
}

/* Its rack draws less: other slots there may start jobs. */
static void try_demands_after_power(struct forecast_run *s, const struct slot *c)
{
    const struct rack_nodes *kind;
    if (!run_rack_of(s, c, &kind))
        return;
    for (int32_t k = 0; k < s->p->n_demands && !s->is_done; k++)
        if (s->demands[k].left > 0)
            try_demand(s, k);
}

static void note_recent_end(struct forecast_run *s, int32_t slot)
{
    int32_t k = 0;
    while (k < s->n_recent_ends - 1 && s->recent_ends[k] != slot)
        k++;
    if (s->n_recent_ends < RECENT_ENDS_MAX && (s->n_recent_ends == 0 || s->recent_ends[k] != slot))
        k = s->n_recent_ends++;
    for (; k > 0; k--)
        s->recent_ends[k] = s->recent_ends[k - 1];
    s->recent_ends[0] = slot;
}

/* ---- time ---- */

static void reserve_gangs(struct forecast_run *s)
{
    for (int32_t k = 0; k < s->p->n_demands && !s->is_done; k++)
        while (!s->is_done && s->demands[k].nodes > 1 && reserve_before(s, NULL))
            ;
}

/* Reservations for maintenance may be over: any slot may take jobs again. */
static void try_all_demands(struct forecast_run *s)
{
    for (int32_t k = 0; k < s->p->n_demands && !s->is_done; k++) {
        if (s->demands[k].nodes > 1)
            start_gang(s, k);
        else if (s->demands[k].left > 0)
            try_demand(s, k);
    }
}

static void process_due(struct forecast_run *s, struct due due)
{
    const struct run r = s->runs[due.run];
    s->work++;
    s->t_ms = due.at_ms > s->t_ms ? due.at_ms : s->t_ms;
    if (!r.shape && r.slot == NO_INDEX) {
        run_launch_all(s);
        if (s->p->is_maintained)
            try_all_demands(s);
        else
            try_demand(s, s->p->mine);
        reserve_gangs(s);
        return;
    }
    if (r.shape)
        count(s, &r, -1);
    if (r.shape && r.slot != NO_INDEX) {
        unlink_run(s, &r);
        resources_give(&s->slots[r.slot].free, run_takes(s, &s->slots[r.slot], r.shape));
        run_take_power(s, &s->slots[r.slot], r.shape, -1);
        if (s->slots[r.slot].first == NO_INDEX)
            s->slots[r.slot].idle_ms = s->t_ms;
    }
    if (r.slot != NO_INDEX && s->slots[r.slot].open_ms <= s->t_ms) {
        note_recent_end(s, r.slot);
        reserve_gangs(s); /* there may be no job to pass them */
        fill_slot(s, r.slot);
        refill_freed_slots(s);
        run_end_if_idle(s, r.slot);
    }
    if (r.shape)
        try_limited_demands(s, &r);
    if (r.shape && r.slot != NO_INDEX)
        try_demands_after_power(s, &s->slots[r.slot]);
}

static int64_t expected_ms(const struct forecast_run *s, const struct forecast_demand *l)
{
    double sum = 0;
    if (s->latest)
        return l->shape->limit_ms ? l->shape->limit_ms : NEVER_MS;
    for (int k = 0; k < l->n_histories; k++)
        sum += (double)runtimes_mean(l->histories[k], l->shape->limit_ms, 0);
    return l->n_histories > 0 ? (int64_t)(sum / l->n_histories)
                              : runtimes_mean(NULL, l->shape->limit_ms, 0);
}

static bool shares_machines(const struct forecast_run *s, int32_t demand)
{
    for (size_t k = 0; k < s->p->n_node_classes; k++) {
        const uint64_t *b = s->p->node_class[k].allowed_demands;
        if ((b[demand / 64] >> (demand % 64) & 1) && (b[s->p->mine / 64] >> (s->p->mine % 64) & 1))
            return true;
    }
    return false;
}

/* The rest ahead, divided by the capacity where it may run. */
static int64_t extrapolate(const struct forecast_run *s)
{
    double work = 0, capacity = 0;
    const struct forecast_demand *mine = &s->demands[s->p->mine];
    for (int32_t k = 0; k < s->p->n_demands; k++) {
        const struct forecast_demand *l = &s->demands[k];
        if (l->left == 0 || !run_is_ahead(l, mine) || !shares_machines(s, k))
            continue;
        int64_t ms = expected_ms(s, l), n = l->left;
        if (ms >= NEVER_MS)
            return NEVER_MS;
        if (l->step > 0 && (mine->position.at_16 - l->position.at_16) / l->step + 1 < n)
            n = (mine->position.at_16 - l->position.at_16) / l->step + 1;
        work += (double)n * (double)l->nodes * (double)l->shape->mcpu * (double)ms;
    }
    for (size_t k = 0; k < s->n_slots; k++) {
        const struct slot *c = &s->slots[k];
        if (c->open_ms == NEVER_MS || !run_demand_allowed(s, c, s->p->mine))
            continue;
        capacity +=
            (double)priority_mcpu(model_policy(s->p->m), &s->p->node_class[c->node_class].total);
    }
    double ms = capacity > 0 ? work / capacity * (s->latest ? LATEST_MARGIN : 1) : (double)NEVER_MS;
    return ms < EXTRAPOLATED_MAX_MS ? s->t_ms + (int64_t)ms : NEVER_MS;
}

/* Copies with the capacity that GROW expects. */
static void *copy(const void *from, size_t n, size_t size)
{
    size_t cap = 1;
    while (cap < n)
        cap *= 2;
    void *p = mem_array(cap, size);
    if (n > 0)
        memcpy(p, from, n * size);
    return p;
}

/* The finaliser of SplitMix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* All ranks of a gang draw the same time. */
static int64_t end_of(
    const struct forecast_run *s, const struct running *g, const struct run *r, uint64_t seed)
{
    int64_t now_ms = s->p->now.wall.ms;
    if (g->is_stopping)
        return now_ms + STOPPING_MS;
    if (s->latest)
        return r->limit_ms > now_ms ? r->limit_ms : now_ms + STOPPING_MS;
    int64_t elapsed = now_ms - g->began_ms,
            limit = r->limit_ms >= NEVER_MS ? 0 : r->limit_ms - g->began_ms;
    return g->began_ms + runtimes_draw(g->history, limit, elapsed > 0 ? elapsed : 0,
                             mix(seed + mix((uint64_t)g->job)));
}

static int64_t joins_ms(const struct forecast_run *s, const struct slot *c)
{
    const struct offer *o = s->p->node_class[c->node_class].offer;
    int64_t at = c->open_ms + offer_boot_ms(o) * (s->latest ? 2 : 1);
    if (at > s->t_ms)
        return at;
    return s->t_ms + (s->latest ? o->pool->row.boot_timeout_ms : offer_boot_ms(o) / 2);
}

static void set_up(struct forecast_run *s, uint64_t seed)
{
    const struct forecast_snapshot *p = s->p;
    s->slots = copy(p->slots, s->n_slots = p->n_slots, sizeof *s->slots);
    s->runs = copy(p->runs, s->n_runs = p->n_runs, sizeof *s->runs);
    memcpy(s->demands, p->demands, sizeof s->demands);
    memcpy(s->groups, p->groups, sizeof s->groups);
    memcpy(s->licences, p->licences, sizeof s->licences);
    memcpy(s->recent_ends, p->recent_ends, sizeof s->recent_ends);
    s->n_recent_ends = p->n_recent_ends;
    s->n_reserved = p->n_reserved;
    s->all = model_capacity(p->m);
    for (size_t k = 0; k < racks_count(p->m);
         k++) /* of a large cluster a sample represents the whole */
        s->left_w[k] = rack_left(rack_at(p->m, k)) / (p->each > 1 ? p->each : 1);
    size_t n = 0;
    LIST_FOREACH (model_pools(p->m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        struct capacity *capacity = GROW(s->capacity, n);
        *capacity = pool_limits(pool);
        /* whether and when its next machine joins is unknown */
        if (pool_boots_fail(pool))
            capacity->nodes = 0;
    }
    for (size_t k = 0; k < s->n_runs; k++)
        *GROW(s->heap, s->n_heap) =
            (struct due){end_of(s, &p->running[k], &s->runs[k], seed), (int32_t)k};
    for (size_t k = s->n_heap / 2; k-- > 0;)
        sift_down(s, k);
    for (size_t k = 0; k < p->n_slots; k++) {
        struct slot *c = &s->slots[k];
        if (!c->node)
            run_schedule(s, (int32_t)k, c->open_ms = joins_ms(s, c));
        else if (c->first == NO_INDEX && run_elastic(s, c))
            run_schedule(s, (int32_t)k, c->idle_ms + run_elastic(s, c)->idle_timeout_ms);
    }
    if (s->demands[p->mine].from_ms > s->t_ms)
        run_schedule(s, NO_INDEX, s->demands[p->mine].from_ms);
}

/* Ends of reservations for maintenance. */
static void schedule_maintenance(struct forecast_run *s)
{
    struct maintenance *const *all = maintenance_all(s->p->m);
    for (size_t k = 0; s->p->is_maintained && k < MAINTENANCES_MAX; k++)
        for (int times = 0; all[k] && times < (all[k]->row.is_weekly ? WEEKS_MAX : 1); times++)
            run_schedule(
                s, NO_INDEX, maintenance_until(&all[k]->row).ms + times * MAINTENANCE_WEEK_MS);
}

struct forecast_result forecast_run(
    const struct forecast_snapshot *p, bool latest, uint64_t seed, int64_t work_max)
{
    struct forecast_run s = {
        .p = p, .latest = latest, .t_ms = p->now.wall.ms, .epoch = 1, .done = {.at_ms = NEVER_MS}};
    prng_init(&s.prng, seed);
    set_up(&s, seed);
    schedule_maintenance(&s);
    run_launch_all(&s);
    reserve_gangs(&s);
    while (!s.is_done && s.work < work_max && s.n_heap > 0 && s.heap[0].at_ms < NEVER_MS)
        process_due(&s, heap_pop(&s));
    if (!s.is_done && s.work >= work_max)
        s.done.at_ms = extrapolate(&s);
    s.done.work = s.work + 1;
    free(s.slots);
    free(s.runs);
    free(s.heap);
    free(s.capacity);
    return s.done;
}
