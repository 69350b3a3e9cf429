/* SPDX-License-Identifier: Apache-2.0
 *
 * What to launch: demand that no node up or on its way will serve. Counted by shape, never job by job, and
 * only when something changed on which it depends.
 *
 * Demand is put into bins in this order: the room left on nodes (only jobs that have to move look there: pending
 * ones were just found not to fit); instances on their way, by id; and what is planned here already, in the order in
 * which it will get its ids, so that counting again half-way comes to the same. What is left is covered by the offer
 * of the lowest rank, then the lowest effective price (market.c) per job that it serves at once, as far as its pool
 * and all pools together may grow. Last come the jobs that pay for on-demand and could go on for less: to a node
 * with room they move, and if there is none a cheaper offer is launched for them, which may refuse without harm.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* A move has to save at least a fifth of what the job pays now. */
#define MOVE_PAYS(now_uusd_h, then_uusd_h) ((then_uusd_h) <= (now_uusd_h) / 5 * 4)

/* One computation. */
struct work {
    struct planner *p;
    const struct model *m;
    struct stamp now;
    size_t n_up; /* bins of nodes: the first ones */
};

void launches_deinit(struct planner *p)
{
    free(p->launches);
    free(p->moves);
    free(p->bins);
    free(p->room);
    free(p->planned);
    free(p->planned_in);
    free(p->movers);
}

static bool pool_serves(const struct pool *p, const struct shape *s)
{
    return !s->pool[0] || strcmp(s->pool, p->row.name) == 0;
}

/* ---- what there is ---- */

static void add_node(struct work *w, const struct node *n)
{
    struct bin *b = GROW(w->p->bins, w->p->n_bins);
    *b = (struct bin){.free = n->free,
        .total = n->row.total,
        .pool = n->pool,
        .market = n->row.market,
        .uusd_h = n->row.price_uusd_h,
        .is_up = true};
}

static void add_machine(struct work *w, const struct offer *o)
{
    struct bin *b = GROW(w->p->bins, w->p->n_bins);
    struct resources total = offer_total(o);
    *b = (struct bin){.free = total,
        .total = total,
        .pool = o->pool,
        .market = o->row.market,
        .uusd_h = o->row.price_uusd_h};
}

/* Pending jobs were just found not to fit on any node: only those that have to move, or could, look there. */
static void gather_bins(struct work *w)
{
    w->p->n_bins = 0;
    if (!list_is_empty(&w->m->noticed) || !list_is_empty(&w->m->costly)) {
        LIST_FOREACH (&w->m->by_growth, l)
            add_node(w, LIST_ENTRY(l, struct node, by_growth));
    }
    w->n_up = w->p->n_bins;
    LIST_FOREACH (&w->m->all_instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (instance_is_coming(i) && i->offer)
            add_machine(w, i->offer);
    }
}

/* Puts up to n jobs of this shape into one bin; returns how many found room. */
static int64_t fill(struct bin *b, const struct shape *s, int64_t n)
{
    int64_t k = resources_times(&b->free, &s->need);
    k = k < n ? k : n;
    struct resources taken = {
        .cpus = (int32_t)(k * s->need.cpus),
        .gpus = (int32_t)(k * s->need.gpus),
        .memory_mib = k * s->need.memory_mib,
    };
    resources_take(&b->free, &taken);
    return k;
}

static void gather_room(struct work *w)
{
    struct planner *p = w->p;
    p->n_room = 0;
    p->all = model_room(w->m);
    LIST_FOREACH (&w->m->all_pools, l) /* in the order of the list, which is that of the index */
        *GROW(p->room, p->n_room) = pool_room(LIST_ENTRY(l, struct pool, in_all));
    if (p->planned_max < w->m->next.next_offer) {
        p->planned_max = w->m->next.next_offer;
        p->planned = mem_resize(p->planned, (size_t)p->planned_max, sizeof *p->planned);
    }
    memset(p->planned, 0, (size_t)p->planned_max * sizeof *p->planned);
    p->planned_in = mem_resize(p->planned_in, p->n_room + 1, sizeof *p->planned_in);
    memset(p->planned_in, 0, (p->n_room + 1) * sizeof *p->planned_in);
}

/* ---- what could be launched ---- */

/* Until then what is computed here stays true. */
static void valid_until(struct work *w, int64_t mono_ms)
{
    if (!mono_is_set(w->p->valid_until) || mono_ms < w->p->valid_until.ms)
        w->p->valid_until.ms = mono_ms;
}

/* May be launched now? */
static bool offer_is_open(struct work *w, const struct offer *o)
{
    struct mono until = o->row.avoid_until;
    if (o->row.rank == OFFER_WITHDRAWN || room_lacks(&w->p->room[o->pool->index], o) ||
        room_lacks(&w->p->all, o))
        return false;
    if (!mono_is_set(until) || until.ms <= w->now.mono.ms)
        return true;
    valid_until(w, until.ms);
    return false;
}

/* What one machine of the offer costs an hour when it is to run such jobs. */
static int64_t cost_of(const struct work *w, const struct offer *o, const struct job *j)
{
    int64_t in_offer = o->n_live + w->p->planned[o->row.id];
    int64_t in_pool = o->pool->used.nodes + w->p->planned_in[o->pool->index];
    return offer_hinted_uusd_h(
        o, offer_spread_uusd_h(o, offer_effective_uusd_h(o, &j->row), in_offer, in_pool));
}

/* An offer for n jobs: serves so many of them at once. */
struct choice {
    const struct offer *offer;
    int64_t serves, uusd_h;
};

/* True if a is the better one. The order of the list decides between equals. */
static bool is_better(const struct choice *a, const struct choice *b)
{
    if (!b->offer || a->offer->row.rank != b->offer->row.rank)
        return !b->offer || a->offer->row.rank < b->offer->row.rank;
    return (__extension__(__int128) a->uusd_h) * b->serves < (__extension__(__int128) b->uusd_h) * a->serves;
}

/* max_uusd_h: of each job's share; INT64_MAX: whatever it costs. */
static const struct offer *best_offer(
    struct work *w, const struct shape *s, const struct job *j, int64_t n, int64_t max_uusd_h)
{
    struct choice best = {0};
    LIST_FOREACH (&w->m->all_pools, lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!pool_serves(p, s) || w->p->room[p->index].nodes == 0)
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            struct choice c = {.offer = o, .serves = resources_times(&total, &s->need)};
            if (c.serves == 0 || !wish_allows(s->wish, o->row.market) || !offer_is_open(w, o))
                continue;
            c.serves = c.serves < n ? c.serves : n;
            c.uusd_h = cost_of(w, o, j);
            if (c.uusd_h / c.serves <= max_uusd_h && is_better(&c, &best))
                best = c;
        }
    }
    return best.offer;
}

static void plan_launch(struct work *w, const struct offer *o)
{
    struct planner *p = w->p;
    *GROW(p->launches, p->n_launches) = o->row.id;
    room_take(&p->room[o->pool->index], o);
    room_take(&p->all, o);
    p->planned[o->row.id]++;
    p->planned_in[o->pool->index]++;
    add_machine(w, o);
}

/* Covers n jobs of this shape, of which j is one. from: the first bin to look into. */
static void cover(struct work *w, const struct shape *s, const struct job *j, int64_t n, size_t from)
{
    struct planner *p = w->p;
    for (size_t k = from; k < p->n_bins && n > 0; k++)
        if (pool_serves(p->bins[k].pool, s) && wish_allows(s->wish, p->bins[k].market))
            n -= fill(&p->bins[k], s, n);
    while (n > 0) {
        const struct offer *o = best_offer(w, s, j, n, INT64_MAX);
        if (!o)
            return;
        plan_launch(w, o);
        n -= fill(&p->bins[p->n_bins - 1], s, n);
    }
}

/* ---- jobs that have to move ---- */

static void add_mover(struct planner *p, struct map *places, const struct job *j)
{
    size_t at = (size_t)(intptr_t)map_get(places, j->shape->id);
    if (at == 0) {
        *GROW(p->movers, p->n_movers) = (struct mover){.shape = j->shape, .job = j};
        at = p->n_movers;
        map_put(places, j->shape->id, (void *)(intptr_t)at);
    }
    p->movers[at - 1].n++;
}

static bool is_moving(const struct attempt *a)
{
    return a->row.state == ATTEMPT_STOPPING && a->row.stop_reason == END_EVICTED &&
           a->job->row.state == JOB_RUNNING;
}

/* On nodes that are about to go, and on their way to where it costs less. The cancelled ones will not come back. */
static void gather_movers(struct work *w)
{
    struct map places = {0}; /* shape id -> where in movers, one up */
    w->p->n_movers = 0;
    LIST_FOREACH (&w->m->noticed, ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct job *j = LIST_ENTRY(la, struct attempt, on_node)->job;
            if (j->row.state == JOB_RUNNING)
                add_mover(w->p, &places, j);
        }
    }
    LIST_FOREACH (&w->m->costly, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, costly);
        if (is_moving(a) && a->node->row.state != NODE_NOTICED)
            add_mover(w->p, &places, a->job);
    }
    map_deinit(&places);
}

/* ---- jobs that could move to where it costs less ---- */

/* It can be stopped without losing anything: it has saved here, and the last save worked. */
static bool can_move(const struct attempt *a)
{
    return a->row.state == ATTEMPT_RUNNING && a->job->row.state == JOB_RUNNING && a->row.sequence > 0 &&
           !a->save_failed && a->node->row.state == NODE_UP;
}

static bool is_due(struct work *w, const struct attempt *a)
{
    int64_t stay_ms = a->node->pool->row.return_ms, left_ms;
    if (stay_ms == 0)
        return false;
    left_ms = a->row.assigned_at.ms + stay_ms - w->now.wall.ms;
    if (left_ms > 0)
        valid_until(w, w->now.mono.ms + left_ms);
    return left_ms <= 0;
}

/* To a node that is up: at once. To a machine on its way, or to one that is launched for it: when that is up. */
static void cover_return(struct work *w, const struct attempt *a)
{
    struct planner *p = w->p;
    const struct shape *s = a->job->shape;
    int64_t pays = resources_share(&s->need, &a->node->row.total, a->node->row.price_uusd_h);
    for (size_t k = 0; k < p->n_bins; k++) {
        struct bin *b = &p->bins[k];
        if (!pool_serves(b->pool, s) || b->market >= a->node->row.market ||
            !wish_allows(s->wish, b->market) || !resources_fit(&s->need, &b->free) ||
            !MOVE_PAYS(pays, resources_share(&s->need, &b->total, b->uusd_h)))
            continue;
        fill(b, s, 1);
        if (b->is_up)
            *GROW(p->moves, p->n_moves) = a->job->row.id;
        return;
    }
    const struct offer *o = best_offer(w, s, a->job, 1, pays / 5 * 4);
    if (!o || o->row.market >= a->node->row.market)
        return;
    plan_launch(w, o);
    fill(&p->bins[p->n_bins - 1], s, 1);
}

static void cover_returns(struct work *w)
{
    LIST_FOREACH (&w->m->costly, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, costly);
        if (a->job->row.market == WISH_ANY && can_move(a) && is_due(w, a))
            cover_return(w, a);
    }
}

/* ---- all together ---- */

static void compute(struct planner *p, const struct model *m, struct stamp now)
{
    struct work w = {.p = p, .m = m, .now = now};
    p->n_launches = p->n_moves = 0;
    p->change = m->change;
    p->base = m->launches;
    p->valid_until = MONO_NONE;
    if (m->n_pending == 0 && list_is_empty(&m->noticed) && list_is_empty(&m->costly))
        return;
    gather_room(&w);
    gather_bins(&w);
    gather_movers(&w);
    for (size_t k = 0; k < p->n_movers; k++)
        cover(&w, p->movers[k].shape, p->movers[k].job, p->movers[k].n, 0);
    for (const struct shape *s = queue_first(m); s; s = queue_next(s))
        cover(&w, s, model_job(m, s->head), (int64_t)s->pending.n, w.n_up);
    cover_returns(&w);
}

static void recompute(struct planner *p, const struct model *m, struct stamp now)
{
    bool expired = mono_is_set(p->valid_until) && p->valid_until.ms <= now.mono.ms;
    if (p->change != m->change || m->launches < p->base || expired)
        compute(p, m, now);
}

bool moves_next(struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    recompute(p, m, now);
    if (p->n_moves == 0)
        return false;
    const struct attempt *a = model_job(m, p->moves[0])->attempt;
    *ret_event = (struct event){.type = EV_MOVE, .move = {.job = a->row.job, .attempt = a->row.attempt}};
    text_format(ret_event->move.text, sizeof ret_event->move.text,
        "there is room for it where it costs less than on-demand on %s", a->node->row.name);
    return true;
}

bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer)
{
    recompute(p, m, now);
    size_t done = (size_t)(m->launches - p->base);
    if (done >= p->n_launches)
        return false;
    *ret_offer = p->launches[done];
    return true;
}
