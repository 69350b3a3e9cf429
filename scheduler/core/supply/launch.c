/* SPDX-License-Identifier: Apache-2.0
 *
 * What to launch: demand that no node, up or coming, will serve. Counted by shape, never job by
 * job, and only after a relevant change.
 *
 * Demand is packed into bins in this order: free capacity of nodes (only for jobs that must move,
 * since pending ones were just found not to fit); coming instances, by id; machines planned here,
 * in the order of their future ids, so that a recount half-way gives the same result. The rest is
 * covered by new machines, one by one. Each is of the offer that choose_offer.c selects for the
 * oldest demand, and is filled with whatever fits, within the limits of its pool and of all pools.
 * Last are jobs on on-demand machines that could continue at a lower cost: they move to a node with
 * capacity; else a cheaper offer is launched for them, and a refusal does no harm.
 *
 * Bins are filled in queue order, each shape as often as it fits, because the machines will be
 * filled this way (plan.c). Packing by decreasing size would look better here but would not match
 * the actual placement.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/supply/launch.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/supply/prefetch.h"
#include <stdlib.h>
#include <string.h>

/* Highest hourly cost after a move: it must save at least a fifth of the current cost. */
#define MOVE_MAX_UUSD_H(now_uusd_h) ((now_uusd_h) / 5 * 4)

void launches_deinit(struct planner *p)
{
    free(p->launches);
    free(p->moves);
    free(p->prefetches);
    free(p->earmarked);
    free(p->settles);
    free(p->bins);
    free(p->capacity);
    free(p->planned);
    free(p->planned_in);
    free(p->headroom);
    free(p->demands);
    free(p->gangs);
}

bool pool_serves(const struct pool *p, const struct shape *s)
{
    return shape_allows_pool(s, p) && pool_may_criu(p, s->criu);
}

bool bin_admits(const struct bin *b, const struct shape *s)
{
    if (b->node && b->node->reserved_for && b->node->reserved_for != s)
        return false;
    bool can = b->node ? node_can_criu(b->node, s->criu) && !node_is_kept_from(b->node, s) &&
                             node_has_constraints(b->node, s) &&
                             maintenance_allows(b->node, s, b->ready_at)
                       : pool_may_criu(b->pool, s->criu) && offer_suits(b->offer, s) &&
                             maintenance_allows_machine(b->pool, s, b->ready_at);
    return can && shape_allows_pool(s, b->pool) && shape_may_use(s, b->pool, b->market);
}

/* ---- existing capacity ---- */

static void add_node(struct work *w, const struct node *n)
{
    struct bin *b = GROW(w->p->bins, w->p->n_bins);
    *b = (struct bin){.free = n->free,
        .total = n->row.total,
        .stock = n->stock,
        .pool = n->pool,
        .market = n->row.market,
        .uusd_h = n->row.price_uusd_h,
        .ready_at = w->now.wall,
        .node = n,
        .rack_kind = n->rack_kind,
        .left_w = n->rack ? &w->p->left_w[n->rack->index] : NULL};
}

struct bin bin_of(const struct offer *o, int64_t *left_w, struct wall now)
{
    struct resources total = offer_total(o);
    return (struct bin){.free = total,
        .total = total,
        .stock = stock_of(&o->resources),
        .offer = o,
        .pool = o->pool,
        .market = o->row.market,
        .uusd_h = o->row.price_uusd_h,
        .ready_at = {now.ms + offer_boot_ms(o)},
        .rack_kind = o->pool->rack_kind,
        .left_w = o->pool->rack ? left_w : NULL};
}

/* A coming or planned machine; its share of its rack's power is reserved. */
static struct bin bin_to_come(struct work *w, const struct offer *o)
{
    return bin_of(o, o->pool->rack ? &w->p->left_w[o->pool->rack->index] : NULL, w->now.wall);
}

/* True if a job must move, is moving, or could move to a lower cost. */
static bool may_have_movers(const struct model *m)
{
    return !list_is_empty(nodes_noticed(m)) || !list_is_empty(&m->supply.costly);
}

/* Pending jobs were just found not to fit on any node: only jobs that must move, or could, are
 * tried there. Full nodes are skipped. */
static void gather_bins(struct work *w)
{
    w->p->n_bins = 0;
    if (may_have_movers(w->m) || queue_n_gangs(w->m) > 0) {
        LIST_FOREACH (nodes_by_growth(w->m), l)
            if (LIST_ENTRY(l, struct node, by_growth)->free.cpus > 0)
                add_node(w, LIST_ENTRY(l, struct node, by_growth));
    }
    w->n_up = w->p->n_bins;
    LIST_FOREACH (model_instances(w->m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (instance_is_coming(i) && i->offer)
            *GROW(w->p->bins, w->p->n_bins) = bin_to_come(w, i->offer);
    }
}

int64_t bin_times(const struct bin *b, const struct shape *s)
{
    if (shape_is_exclusive(s) && b->free.cpus < b->total.cpus)
        return 0;
    int64_t k = shape_is_exclusive(s) ? resources_fit(&s->need, &b->free)
                                      : resources_times(&b->free, &s->need);
    int64_t most = k > 0 && s->constraints ? stock_times(&b->stock, &s->constraints->resources) : k;
    most = most < k ? most : k;
    return b->left_w ? rack_times(b->rack_kind, &b->total, &b->free, s, most, *b->left_w) : most;
}

void bin_take_power(const struct bin *b, const struct shape *s, int64_t times)
{
    if (b->left_w)
        *b->left_w -= rack_adds(b->rack_kind, &b->total, &b->free, s, times);
}

int64_t bin_fill(struct bin *b, const struct shape *s, int64_t n)
{
    if (!bin_admits(b, s))
        return 0;
    int64_t k = bin_times(b, s);
    k = k < n ? k : n;
    if (k <= 0)
        return 0;
    bin_take_power(b, s, k);
    if (s->constraints)
        stock_add(&b->stock, &s->constraints->resources, -k);
    if (shape_is_exclusive(s)) {
        b->free = (struct resources){0};
        return k;
    }
    struct resources taken = {
        .cpus = (int32_t)(k * s->need.cpus),
        .gpus = (int32_t)(k * s->need.gpus),
        .memory_mib = k * s->need.memory_mib,
    };
    resources_take(&b->free, &taken);
    return k;
}

static void gather_capacity(struct work *w)
{
    struct planner *p = w->p;
    p->n_capacity = 0;
    for (size_t i = 0; i < licences_count(w->m); i++)
        p->left[i] = licence_at(w->m, i)->what.n - licence_at(w->m, i)->used;
    for (size_t i = 0; i < racks_count(w->m); i++)
        p->left_w[i] = rack_left(rack_at(w->m, i));
    p->all = model_capacity(w->m);
    LIST_FOREACH (model_pools(w->m), l) { /* the list is in the order of the index */
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        *GROW(p->capacity, p->n_capacity) = pool_capacity(pool, w->now.mono);
        if (pool_boots_fail(pool) && mono_is_set(pool->probe_at) &&
            pool->probe_at.ms > w->now.mono.ms)
            limit_validity(w, pool->probe_at.ms);
    }
    if (p->planned_max < model_next_ids(w->m)->next_offer) {
        p->planned_max = model_next_ids(w->m)->next_offer;
        p->planned = mem_resize(p->planned, (size_t)p->planned_max, sizeof *p->planned);
    }
    memset(p->planned, 0, (size_t)p->planned_max * sizeof *p->planned);
    p->planned_in = mem_resize(p->planned_in, p->n_capacity + 1, sizeof *p->planned_in);
    memset(p->planned_in, 0, (p->n_capacity + 1) * sizeof *p->planned_in);
}

static bool may_grow(const struct planner *p)
{
    for (size_t k = 0; k < p->n_capacity; k++)
        if (p->capacity[k].nodes > 0 && p->all.nodes > 0)
            return true;
    return false;
}

void limit_validity(struct work *w, int64_t mono_ms)
{
    if (!mono_is_set(w->p->valid_until) || mono_ms < w->p->valid_until.ms)
        w->p->valid_until.ms = mono_ms;
}

/* ---- demand ---- */

static void add_moving_job(struct planner *p, struct map *indices, const struct job *j)
{
    size_t at = (size_t)(intptr_t)map_get(indices, j->shape->id);
    if (at == 0) {
        *GROW(p->demands, p->n_demands) =
            (struct demand){.shape = j->shape, .job = j, .moves = true};
        at = p->n_demands;
        map_put(indices, j->shape->id, (void *)(intptr_t)at);
    }
    p->demands[at - 1].n++;
}

static bool is_moving(const struct attempt *a)
{
    return a->job->row.spec.nodes == 1 && a->row.state == ATTEMPT_STOPPING &&
           a->row.stop_reason == END_EVICTED && a->job->row.state == JOB_RUNNING;
}

/* Jobs on nodes that are about to go, or moving to lower cost. Cancelled ones do not return. */
static void gather_movers(struct work *w)
{
    struct map indices = {0}; /* shape id -> index in demands + 1 */
    LIST_FOREACH (nodes_noticed(w->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct job *j = LIST_ENTRY(la, struct attempt, on_node)->job;
            if (j->row.state == JOB_RUNNING && j->row.spec.nodes == 1)
                add_moving_job(w->p, &indices, j);
        }
    }
    LIST_FOREACH (&w->m->supply.costly, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, costly);
        if (is_moving(a) && a->node->row.state != NODE_NOTICED)
            add_moving_job(w->p, &indices, a->job);
    }
    map_deinit(&indices);
    w->n_movers = w->p->n_demands;
}

static void gather_demands(struct work *w)
{
    struct planner *p = w->p;
    queue_walk_begin(&p->walk, w->m);
    for (const struct shape *s; (s = queue_walk_next(&p->walk)) != NULL;) {
        p->n_gathered++;
        int64_t n = s->nodes == 1 ? cover_licences(w, s, headroom_jobs(w, s, s->n_wanted)) : 0;
        if (n == 0)
            continue;
        headroom_take(w, s, n, 1);
        *GROW(p->demands, p->n_demands) =
            (struct demand){.shape = s, .job = model_job(w->m, s->head), .n = n};
    }
}

int64_t cover_licences(struct work *w, const struct shape *s, int64_t n)
{
    const struct counts *need = s->constraints ? &s->constraints->licences : NULL;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *l = licence_named(w->m, need->v[i].name);
        int64_t left = l ? w->p->left[licence_index(l, w->m)] / need->v[i].n : 0;
        n = left < n ? left : n;
    }
    n = n > 0 ? n : 0;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *l = licence_named(w->m, need->v[i].name);
        if (l)
            w->p->left[licence_index(l, w->m)] -= n * need->v[i].n;
    }
    return n;
}

/* ---- covering ---- */

struct bin *plan_launch(struct work *w, const struct offer *o)
{
    struct planner *p = w->p;
    *GROW(p->launches, p->n_launches) = o->row.id;
    capacity_take(&p->capacity[o->pool->index], o);
    capacity_take(&p->all, o);
    p->planned[o->row.id]++;
    p->planned_in[o->pool->index]++;
    struct bin *b = GROW(p->bins, p->n_bins);
    *b = bin_to_come(w, o);
    return b;
}

/* Returns how many jobs the bin takes. */
static int64_t cover_from(struct bin *b, struct demand *d)
{
    int64_t n = d->moves || limits_allow(d->shape, b->pool, &b->total, b->uusd_h)
                    ? bin_fill(b, d->shape, d->n)
                    : 0;
    d->n -= n;
    return n;
}

/* Fills bins one by one, as planned ones are: bins of a rack share its power, and in another order
 * a recount half-way would give it to other demand. */
static void cover_from_bins(struct work *w)
{
    struct planner *p = w->p;
    for (size_t b = 0; b < p->n_bins; b++) {
        size_t n = b < w->n_up ? w->n_movers : p->n_demands;
        int64_t taken = 0;
        for (size_t k = 0; k < n && p->bins[b].free.cpus > 0; k++)
            if (p->demands[k].n > 0)
                taken += cover_from(&p->bins[b], &p->demands[k]);
        if (b < w->n_up && taken > 0)
            *GROW(p->earmarked, p->n_earmarked) = p->bins[b].node->row.id;
    }
}

static void cover_by_launches(struct work *w)
{
    struct planner *p = w->p;
    for (size_t k = 0; k < p->n_demands; k++) {
        const struct offer *o;
        while (p->demands[k].n > 0 && (o = choose_shared(w, &p->demands[k], p->n_demands - k))) {
            struct bin *b = plan_launch(w, o);
            for (size_t i = 0; i < p->n_demands && b->free.cpus > 0; i++)
                (void)cover_from(b, &p->demands[i]);
        }
    }
}

/* ---- moves to lower cost ---- */

bool attempt_can_move(const struct attempt *a)
{
    return a->job->row.spec.nodes == 1 && a->row.state == ATTEMPT_RUNNING &&
           a->job->row.state == JOB_RUNNING && a->row.sequence > 0 && !a->save_failed &&
           a->node->row.state == NODE_UP && retries_left(&a->job->row, RETRY_EVICTED) > 0;
}

static bool is_due(struct work *w, const struct attempt *a)
{
    int64_t stay_ms = a->node->pool->row.return_ms, left_ms;
    if (stay_ms == 0)
        return false;
    left_ms = a->row.assigned_at.ms + stay_ms - w->now.wall.ms;
    if (left_ms > 0)
        limit_validity(w, w->now.mono.ms + left_ms);
    return left_ms <= 0;
}

/* Hourly cost of the job in the bin: its share, plus reading its input there. */
static int64_t cost_in_bin(const struct bin *b, const struct job *j)
{
    const struct instance *i = b->node ? b->node->instance : NULL;
    return resources_share(shape_takes(j->shape, &b->total), &b->total, b->uusd_h) +
           pool_input_uusd_h(b->pool, i ? i->offer : b->offer, j);
}

static bool is_prefetched_for_other(
    const struct work *w, const struct bin *b, const struct attempt *a)
{
    return b->node && prefetch_is_of_other(b->node, a, w->m, w->now.mono);
}

/* The first bin where it pays enough less; the node that fetches its checkpoint before others. */
static struct bin *cheaper_bin(struct work *w, const struct attempt *a, int64_t pays)
{
    const struct shape *s = a->job->shape;
    struct bin *first = NULL;
    for (size_t k = 0; k < w->p->n_bins; k++) {
        struct bin *b = &w->p->bins[k];
        bool is_own = b->node && b->node->row.id == a->prefetch.node;
        if ((first && !is_own) || !bin_admits(b, s) || b->market >= a->node->row.market ||
            bin_times(b, s) == 0 || cost_in_bin(b, a->job) > MOVE_MAX_UUSD_H(pays) ||
            is_prefetched_for_other(w, b, a))
            continue;
        if (is_own || a->prefetch.node == CORE_ID_NONE)
            return b;
        first = b;
    }
    return first;
}

static void prefetch(struct work *w, const struct attempt *a, const struct node *to)
{
    *GROW(w->p->prefetches, w->p->n_prefetches) =
        (struct prefetch_pair){a->row.job, a->row.attempt, to->row.id};
}

/* Moves to a node that is up: at once, or when it has the newest checkpoint. */
static void move_to(struct work *w, const struct attempt *a, const struct node *to)
{
    struct planner *p = w->p;
    struct mono until;
    enum prefetch_step step = prefetch_step(a, to, w->now.mono, &until);
    if (step == PREFETCH_MOVE)
        *GROW(p->moves, p->n_moves) = a->job->row.id;
    else if (step == PREFETCH_ASK)
        prefetch(w, a, to);
    else
        limit_validity(w, until.ms);
    *GROW(p->earmarked, p->n_earmarked) = to->row.id; /* it may have been idle for long */
}

/* Moves to an up node; to a coming machine, or one launched for it, when that is up. */
static void cover_return(struct work *w, const struct attempt *a)
{
    const struct shape *s = a->job->shape;
    int64_t pays = resources_share(&a->allocated, &a->node->row.total, a->node->row.price_uusd_h);
    struct bin *b = cheaper_bin(w, a, pays);
    if (b) {
        bin_fill(b, s, 1);
        if (b->node)
            move_to(w, a, b->node);
        return;
    }
    const struct demand d = {.shape = s, .job = a->job, .n = 1, .moves = true};
    const struct offer *o = choose_for_single(w, &d, MOVE_MAX_UUSD_H(pays));
    if (o && o->row.market < a->node->row.market)
        bin_fill(plan_launch(w, o), s, 1);
}

static bool may_return(struct work *w, const struct attempt *a)
{
    return a->job->row.spec.market == WISH_ANY && attempt_can_move(a) &&
           (a->job->row.procurement == PROCURE_FREE ? is_due(w, a)
                                                    : a->job->row.procurement == PROCURE_SPOT);
}

static bool any_may_return(struct work *w)
{
    bool may = false;
    LIST_FOREACH (&w->m->supply.costly, l)
        /* evaluates all, for the time of the next one */
        may |= may_return(w, LIST_ENTRY(l, struct attempt, costly));
    return may;
}

static void cover_returns(struct work *w)
{
    struct planner *p = w->p;
    p->n_offered = 0;
    LIST_FOREACH (&w->m->supply.costly, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, costly);
        if (may_return(w, a))
            *GROW(p->offered, p->n_offered) = (struct victim){.job = a->job,
                .saves = true,
                .unsaved = preemption_victims_unsaved(a->job, w->now.wall)};
    }
    /* if not all can move, those with the least to lose do */
    preemption_victims_sort(p->offered, p->n_offered);
    for (size_t k = 0; k < p->n_offered; k++)
        cover_return(w, job_attempt(p->offered[k].job));
}

/* An empty node that the job may be placed on when its own is gone. */
static const struct node *refuge_of(struct work *w, const struct attempt *a)
{
    const struct shape *s = a->job->shape;
    for (size_t k = 0; k < w->n_up; k++) {
        const struct bin *b = &w->p->bins[k];
        if (bin_admits(b, s) && resources_fit(&s->need, &b->total) &&
            !is_prefetched_for_other(w, b, a) && prefetch_is_of_use(a, b->node, w->now.mono))
            return b->node;
    }
    return NULL;
}

/* Jobs on nodes that are about to go wait for nothing, but their checkpoints can be on the way. */
static void prefetch_for_noticed(struct work *w)
{
    LIST_FOREACH (nodes_noticed(w->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            const struct node *to = a->job->row.state == JOB_RUNNING ? refuge_of(w, a) : NULL;
            if (to)
                prefetch(w, a, to);
        }
    }
}

/* ---- all together ---- */

/* Some offer may be launched. */
static bool can_launch(struct work *w)
{
    bool can = false;
    LIST_FOREACH (model_pools(w->m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        if (w->p->capacity[pool->index].nodes <= 0 || w->p->all.nodes <= 0)
            continue;
        LIST_FOREACH (&pool->offers, lo)
            /* evaluates all, for the time of the next one */
            can |= offer_is_open(w, LIST_ENTRY(lo, struct offer, in_pool));
    }
    return can;
}

/* A gang may be about to lose a node, wait for machines to be earmarked for it, or settle for
 * less. */
static bool gangs_may_change(const struct model *m)
{
    return queue_n_gangs(m) > 0 && (m->supply.used.nodes > 0 || !list_is_empty(nodes_noticed(m)) ||
                                       !list_is_empty(gang_resizing(m)));
}

/* Some gang uses licences, limits or budgets that single-node jobs may exhaust. */
static bool gangs_share(const struct model *m)
{
    LIST_FOREACH (queue_gangs(m), l) {
        const struct shape *s = LIST_ENTRY(l, struct shape, in_gangs);
        const struct account *a = s->account;
        if (s->in_budgets || a->allowance.is_limited || a->team->allowance.is_limited ||
            (s->constraints && s->constraints->licences.n > 0))
            return true;
    }
    return false;
}

/* If nothing can be launched, moved, earmarked or given up, the queue is not walked, so that a long
 * queue is not searched at every change. If only gangs may have such actions, only gangs are
 * visited. */
static void compute(struct planner *p, const struct model *m, struct stamp now)
{
    struct work w = {.p = p, .m = m, .now = now};
    p->n_launches = p->n_moves = p->n_prefetches = p->n_earmarked = p->n_settles = p->n_demands = 0;
    p->change = model_versions(m)->change;
    p->base = model_versions(m)->launches;
    p->valid_until = MONO_NONE;
    if (queue_n_pending(m) == 0 && !may_have_movers(m) && !base_load_lacks(m))
        return;
    gather_capacity(&w);
    bool launches = can_launch(&w), returns = any_may_return(&w);
    gather_movers(&w);
    if (!launches && !returns && w.n_movers == 0 && !gangs_may_change(m))
        return;
    headroom_compute(&w);
    gather_bins(&w);
    if (p->n_bins == 0 && !may_grow(p))
        return;
    if (launches || returns || gangs_share(m))
        gather_demands(&w);
    cover_gangs(&w);
    if (!launches && !returns && w.n_movers == 0)
        return;
    cover_from_bins(&w);
    cover_by_launches(&w);
    if (launches)
        cover_base_load(&w);
    cover_returns(&w);
    prefetch_for_noticed(&w);
}

static void recompute(struct planner *p, const struct model *m, struct stamp now)
{
    bool expired = mono_is_set(p->valid_until) && p->valid_until.ms <= now.mono.ms;
    if (p->change != model_versions(m)->change || model_versions(m)->launches < p->base || expired)
        compute(p, m, now);
}

void earmarks_refresh(struct planner *p, const struct model *m, struct stamp now)
{
    if (queue_n_gangs(m) > 0 || may_have_movers(m))
        recompute(p, m, now);
}

bool prefetch_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    recompute(p, m, now);
    if (p->n_prefetches == 0)
        return false;
    const struct prefetch_pair *x = &p->prefetches[0];
    *ret_event = (struct event){.type = EV_PREFETCH,
        .prefetch = {.job = x->job, .node = x->node, .ref.attempt = x->attempt}};
    return true;
}

bool moves_next(struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    recompute(p, m, now);
    if (p->n_moves == 0)
        return false;
    const struct attempt *a = job_attempt(model_job(m, p->moves[0]));
    *ret_event =
        (struct event){.type = EV_MOVE, .move = {.job = a->row.job, .attempt = a->row.attempt}};
    text_format(ret_event->move.text, sizeof ret_event->move.text,
        "there is capacity at a lower cost than on-demand on %s", a->node->row.name);
    return true;
}

bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer)
{
    recompute(p, m, now);
    size_t done = (size_t)(model_versions(m)->launches - p->base);
    if (done >= p->n_launches)
        return false;
    *ret_offer = p->launches[done];
    return true;
}
