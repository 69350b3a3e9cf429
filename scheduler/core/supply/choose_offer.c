/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the offer to launch for uncovered demand: one large machine that several shapes share, or
 * several small ones.
 *
 * A single shape gets the offer with the lowest rank, then with the lowest effective price
 * (offers.c) per job that a machine serves at once. This is its reference. A launch is made for the
 * oldest demand, in queue order. For each offer of the reference's rank that fits it, a machine is
 * filled in simulation with the waiting jobs in queue order, and the rest is covered shape by shape
 * with each one's reference; shapes with the same reference share machines. The offer with the
 * lowest sum is launched, or the reference if sums are equal. A larger machine is thus chosen if it
 * costs less than the smaller ones that it replaces for the jobs waiting now.
 *
 * It deliberately looks one launch ahead only, and at the EXAMINED_MAX oldest shapes, so the cost
 * of a launch does not depend on the queue length. Shapes with a reference of another rank are not
 * in the sums, though they may use remaining capacity: the pool's order of markets has precedence
 * over savings.
 */
#include "scheduler/core/planner.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/supply/offers.h"

#define EXAMINED_MAX 64

__extension__ typedef __int128 uusd_sum; /* of many machines at any price */

/* An offer for jobs of one shape, and how many of them one machine serves at once. */
struct choice {
    const struct offer *offer;
    int64_t serves, uusd_h;
};

/* Simulated demand of one shape. */
struct simulated_demand {
    const struct demand *d;
    struct choice alone;
    int64_t left, taken; /* taken: by the machine that was just filled */
};

/* ---- a single shape ---- */

bool offer_is_open(struct work *w, const struct offer *o)
{
    struct mono until = o->row.avoid_until;
    if (o->row.rank == OFFER_WITHDRAWN || capacity_lacks(&w->p->capacity[o->pool->index], o) ||
        capacity_lacks(&w->p->all, o))
        return false;
    if (!mono_is_set(until) || until.ms <= w->now.mono.ms)
        return true;
    limit_validity(w, until.ms);
    return false;
}

static int64_t spread_cost(const struct work *w, const struct offer *o, int64_t uusd_h)
{
    int64_t in_offer = o->n_live + w->p->planned[o->row.id];
    int64_t in_pool = o->pool->used.nodes + w->p->planned_in[o->pool->index];
    return offer_spread_uusd_h(o, uusd_h, in_offer, in_pool);
}

/* Hourly cost of one machine of the offer for such jobs. Gangs have no premium for sharing an
 * offer: one reclaim stops the whole gang, so spreading gains nothing, and its own machines would
 * change the choice after each launch. */
static int64_t cost_of(const struct work *w, const struct offer *o, const struct demand *d)
{
    int64_t uusd_h = offer_effective_uusd_h(o, &d->job->row);
    return offer_hinted_uusd_h(o, d->shape->nodes > 1 ? uusd_h : spread_cost(w, o, uusd_h));
}

/* How many of these jobs on a machine of the offer there is rack power for. */
static int64_t jobs_with_power(
    const struct work *w, const struct offer *o, const struct demand *d, int64_t times)
{
    struct resources total = offer_total(o);
    const struct pool *p = o->pool;
    if (!p->rack)
        return times;
    if (d->together > 0)
        return d->together * rack_single_w(p->rack_kind, total, d->shape) <= d->left_w ? times : 0;
    return rack_times(p->rack_kind, &total, &total, d->shape, times, w->p->left_w[p->rack->index]);
}

/* How this offer, if it may be launched now, serves the demand; false if it cannot. */
static bool evaluate_offer(
    struct work *w, const struct offer *o, const struct demand *d, struct choice *ret_choice)
{
    struct resources total = offer_total(o);
    int64_t times = shape_is_exclusive(d->shape) ? resources_fit(&d->shape->need, &total)
                                                 : resources_times(&total, &d->shape->need);
    if (d->shape->constraints) {
        struct stock all = stock_of(&o->resources);
        int64_t most = stock_times(&all, &d->shape->constraints->resources);
        times = offer_suits(o, d->shape) ? (most < times ? most : times) : 0;
    }
    if (times == 0 || !shape_may_use(d->shape, o->pool, o->row.market) ||
        !shape_takes_offer(d->shape, o) || !offer_is_open(w, o) ||
        !maintenance_allows_machine(
            o->pool, d->shape, (struct wall){w->now.wall.ms + offer_boot_ms(o)}))
        return false;
    if (!d->moves && !limits_allow(d->shape, o->pool, &total, o->row.price_uusd_h))
        return false; /* exceeds what their user or team can still pay */
    int64_t most = d->shape->nodes > 1 ? 1 : d->n; /* a gang has one rank per machine */
    times = jobs_with_power(w, o, d, times < most ? times : most);
    if (times == 0)
        return false; /* there is no power for a job on it */
    *ret_choice = (struct choice){.offer = o, .serves = times, .uusd_h = cost_of(w, o, d)};
    /* each of its jobs reads its own input */
    ret_choice->uusd_h += ret_choice->serves * pool_input_uusd_h(o->pool, o, d->job);
    return true;
}

static bool pool_is_open(const struct work *w, const struct pool *p, const struct demand *d)
{
    return (!d->pool || d->pool == p) && pool_serves(p, d->shape) &&
           w->p->capacity[p->index].nodes > 0;
}

/* True if a is better. The order of the list decides between equals. */
static bool is_better(const struct choice *a, const struct choice *b)
{
    if (!b->offer || a->offer->row.rank != b->offer->row.rank)
        return !b->offer || a->offer->row.rank < b->offer->row.rank;
    return (uusd_sum)a->uusd_h * b->serves < (uusd_sum)b->uusd_h * a->serves;
}

static struct choice best_for_single(struct work *w, const struct demand *d, int64_t max_uusd_h)
{
    struct choice best = {0}, c;
    LIST_FOREACH (model_pools(w->m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!pool_is_open(w, p, d))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            if (evaluate_offer(w, LIST_ENTRY(lo, struct offer, in_pool), d, &c) &&
                c.uusd_h / c.serves <= max_uusd_h && is_better(&c, &best))
                best = c;
        }
    }
    return best;
}

const struct offer *choose_for_single(struct work *w, const struct demand *d, int64_t max_uusd_h)
{
    return best_for_single(w, d, max_uusd_h).offer;
}

const struct offer *choose_for_base(struct work *w, const struct pool *p)
{
    struct choice best = {0};
    LIST_FOREACH (&p->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        const struct choice c = {.offer = o,
            .serves = 1,
            .uusd_h = offer_hinted_uusd_h(o, spread_cost(w, o, core_offer_effective_uusd_h(o)))};
        if (offer_is_open(w, o) && rack_has_any(o) && is_better(&c, &best))
            best = c;
    }
    return best.offer;
}

/* ---- a shared machine ---- */

/* The first demand, and later ones that could get a machine of the same rank. */
static size_t simulate_demands(struct work *w, const struct demand *d, size_t n,
    struct simulated_demand simulated[EXAMINED_MAX])
{
    size_t n_lots = 0;
    for (size_t k = 0, examined = 0; k < n && examined < EXAMINED_MAX; k++) {
        if (d[k].n == 0)
            continue;
        examined++;
        struct choice c = best_for_single(w, &d[k], INT64_MAX);
        if (c.offer && (n_lots == 0 || c.offer->row.rank == simulated[0].alone.offer->row.rank))
            simulated[n_lots++] = (struct simulated_demand){.d = &d[k], .alone = c};
        if (n_lots == 0)
            return 0;
    }
    return n_lots;
}

/* Fills a machine with remaining demand. own: only with demand that has this reference. */
static void fill_machine(const struct work *w, const struct offer *o,
    struct simulated_demand *simulated, size_t n, bool own)
{
    /* for each of several machines as if it were the only one */
    int64_t left_w = o->pool->rack ? w->p->left_w[o->pool->rack->index] : 0;
    struct bin b = bin_of(o, &left_w, w->now.wall);
    for (size_t k = 0; k < n; k++) {
        bool may =
            simulated[k].left > 0 && b.free.cpus > 0 && (!own || simulated[k].alone.offer == o);
        simulated[k].taken = may ? bin_fill(&b, simulated[k].d->shape, simulated[k].left) : 0;
    }
}

/* How many further machines will be filled identically. */
static int64_t identical_machines(const struct simulated_demand *simulated, size_t n)
{
    int64_t times = INT64_MAX;
    for (size_t k = 0; k < n; k++)
        if (simulated[k].taken > 0 && simulated[k].left / simulated[k].taken < times)
            times = simulated[k].left / simulated[k].taken;
    return times;
}

static void subtract_taken(struct simulated_demand *simulated, size_t n, int64_t times)
{
    for (size_t k = 0; k < n; k++)
        simulated[k].left -= times * simulated[k].taken;
}

/* Cost of covering the remaining demand shape by shape. */
static uusd_sum rest_uusd_h(const struct work *w, struct simulated_demand *simulated, size_t n)
{
    uusd_sum sum = 0;
    for (size_t k = 0; k < n; k++) {
        while (simulated[k].left > 0) {
            fill_machine(w, simulated[k].alone.offer, simulated, n, true);
            int64_t times = identical_machines(simulated, n);
            subtract_taken(simulated, n, times);
            sum += (uusd_sum)simulated[k].alone.uusd_h * times;
        }
    }
    return sum;
}

/* Total cost if the next launch is such a machine. */
static uusd_sum sum_uusd_h(
    const struct work *w, const struct choice *c, struct simulated_demand *simulated, size_t n)
{
    for (size_t k = 0; k < n; k++)
        simulated[k].left = simulated[k].d->n;
    fill_machine(w, c->offer, simulated, n, false);
    subtract_taken(simulated, n, 1);
    return c->uusd_h + rest_uusd_h(w, simulated, n);
}

const struct offer *choose_shared(struct work *w, const struct demand *d, size_t n)
{
    struct simulated_demand simulated[EXAMINED_MAX];
    size_t n_lots = simulate_demands(w, d, n, simulated);
    if (n_lots == 0)
        return NULL;
    struct choice best = simulated[0].alone, c;
    uusd_sum best_sum = sum_uusd_h(w, &best, simulated, n_lots);
    LIST_FOREACH (model_pools(w->m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!pool_is_open(w, p, d))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            if (!evaluate_offer(w, LIST_ENTRY(lo, struct offer, in_pool), d, &c) ||
                c.offer->row.rank != best.offer->row.rank)
                continue;
            uusd_sum sum = sum_uusd_h(w, &c, simulated, n_lots);
            if (sum < best_sum) {
                best = c;
                best_sum = sum;
            }
        }
    }
    return best.offer;
}
