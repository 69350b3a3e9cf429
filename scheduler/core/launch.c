/* SPDX-License-Identifier: Apache-2.0
 *
 * What to launch: demand that no node up or on its way will serve. Counted by shape, never job by job, and
 * only when something changed on which it depends.
 *
 * Demand is put into bins in this order: the room left on nodes (only jobs on noticed nodes look there:
 * pending ones were just found not to fit); instances on their way, by id; and what is planned here already,
 * in the order in which it will get its ids, so that counting again half-way comes to the same. What is left
 * is covered by the offer of the lowest rank, then the lowest price per job that it serves at once, as far as
 * its pool may grow.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* One computation. */
struct work {
    struct planner *p;
    const struct model *m;
    struct stamp now;
    size_t n_up;        /* bins of nodes: the first ones */
    int64_t total_room; /* of all pools */
};

void launches_deinit(struct planner *p)
{
    free(p->launches);
    free(p->bins);
    free(p->room);
    free(p->movers);
}

static bool pool_serves(const struct pool *p, const struct shape *s)
{
    return !s->pool[0] || strcmp(s->pool, p->row.name) == 0;
}

static void add_bin(
    struct planner *p, const struct resources *free_now, const struct pool *pool, enum market market)
{
    struct bin *b = GROW(p->bins, p->n_bins);
    *b = (struct bin){.free = *free_now, .pool = pool, .market = market};
}

static void gather_bins(struct work *w)
{
    w->p->n_bins = 0;
    if (!list_is_empty(&w->m->noticed)) {
        LIST_FOREACH (&w->m->by_growth, l) {
            const struct node *n = LIST_ENTRY(l, struct node, by_growth);
            add_bin(w->p, &n->free, n->pool, n->row.market);
        }
    }
    w->n_up = w->p->n_bins;
    LIST_FOREACH (&w->m->all_instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        const struct offer *o = instance_is_coming(i) ? model_offer_of(w->m, i) : NULL;
        if (!o)
            continue;
        struct resources total = offer_total(o);
        add_bin(w->p, &total, i->pool, i->row.market);
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
    w->p->n_room = 0;
    LIST_FOREACH (&w->m->all_pools, l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        int64_t room = p->row.elastic ? p->row.max_nodes - p->n_nodes : 0;
        int64_t *r =
            GROW(w->p->room, w->p->n_room); /* in the order of the list, which is that of the index */
        *r = room > 0 ? room : 0;
        w->total_room += *r;
    }
}

/* May be launched now? An avoided one bounds for how long what is computed here stays true. */
static bool offer_is_open(struct work *w, const struct offer *o)
{
    struct mono until = o->row.avoid_until;
    if (o->row.rank == OFFER_WITHDRAWN)
        return false;
    if (!mono_is_set(until) || until.ms <= w->now.mono.ms)
        return true;
    if (!mono_is_set(w->p->valid_until) || until.ms < w->p->valid_until.ms)
        w->p->valid_until = until;
    return false;
}

/* True if a is the better one for n jobs. The order of the list decides between equals. */
static bool is_better(const struct offer *a, int64_t a_serves, const struct offer *b, int64_t b_serves)
{
    if (a->row.rank != b->row.rank)
        return a->row.rank < b->row.rank;
    return (__extension__(__int128) a->row.price_uusd_h) * b_serves <
           (__extension__(__int128) b->row.price_uusd_h) * a_serves;
}

static struct offer *best_offer(struct work *w, const struct shape *s, int64_t n)
{
    struct offer *best = NULL;
    int64_t best_serves = 0;
    LIST_FOREACH (&w->m->all_pools, lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!pool_serves(p, s) || w->p->room[p->index] == 0)
            continue;
        LIST_FOREACH (&p->offers, lo) {
            struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            int64_t serves = resources_times(&total, &s->need);
            if (serves == 0 || !wish_allows(s->wish, o->row.market) || !offer_is_open(w, o))
                continue;
            serves = serves < n ? serves : n;
            if (!best || is_better(o, serves, best, best_serves)) {
                best = o;
                best_serves = serves;
            }
        }
    }
    return best;
}

/* Covers n jobs of this shape. from: the first bin to look into. */
static void cover(struct work *w, const struct shape *s, int64_t n, size_t from)
{
    struct planner *p = w->p;
    for (size_t k = from; k < p->n_bins && n > 0; k++)
        if (pool_serves(p->bins[k].pool, s) && wish_allows(s->wish, p->bins[k].market))
            n -= fill(&p->bins[k], s, n);
    while (n > 0) {
        const struct offer *o = best_offer(w, s, n);
        if (!o)
            return;
        struct resources total = offer_total(o);
        *GROW(p->launches, p->n_launches) = o->row.id;
        p->room[o->pool->index]--;
        w->total_room--;
        add_bin(p, &total, o->pool, o->row.market);
        n -= fill(&p->bins[p->n_bins - 1], s, n);
    }
}

/* The cancelled ones will not come back. */
static void gather_movers(struct work *w)
{
    struct map places = {0}; /* shape id -> where in movers, one up */
    w->p->n_movers = 0;
    LIST_FOREACH (&w->m->noticed, ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct job *j = LIST_ENTRY(la, struct attempt, on_node)->job;
            if (j->row.state != JOB_RUNNING)
                continue;
            size_t at = (size_t)(intptr_t)map_get(&places, j->shape->id);
            if (at == 0) {
                GROW(w->p->movers, w->p->n_movers)->shape = j->shape;
                at = w->p->n_movers;
                map_put(&places, j->shape->id, (void *)(intptr_t)at);
            }
            w->p->movers[at - 1].n++;
        }
    }
    map_deinit(&places);
}

static void compute(struct planner *p, const struct model *m, struct stamp now)
{
    struct work w = {.p = p, .m = m, .now = now};
    p->n_launches = 0;
    p->change = m->change;
    p->base = m->launches;
    p->valid_until = MONO_NONE;
    gather_room(&w);
    if (w.total_room == 0 || (m->n_pending == 0 && list_is_empty(&m->noticed)))
        return;
    gather_bins(&w);
    gather_movers(&w);
    for (size_t k = 0; k < p->n_movers; k++)
        cover(&w, p->movers[k].shape, p->movers[k].n, 0);
    for (const struct shape *s = queue_first(m); s && w.total_room > 0; s = queue_next(s))
        cover(&w, s, (int64_t)s->pending.n, w.n_up);
}

bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer)
{
    bool expired = mono_is_set(p->valid_until) && p->valid_until.ms <= now.mono.ms;
    if (p->change != m->change || m->launches < p->base || expired)
        compute(p, m, now);
    size_t done = (size_t)(m->launches - p->base);
    if (done >= p->n_launches)
        return false;
    *ret_offer = p->launches[done];
    return true;
}
