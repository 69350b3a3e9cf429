/* SPDX-License-Identifier: Apache-2.0
 *
 * Effective price of machines, and how many there may be.
 *
 *   effective price = price * (1 + reclaims per hour * (boot + restore + save))           (a)
 *                   + egress price * size of a checkpoint * restores per hour              (b)
 *                   + cost of reading the job's input * starts per hour                    (c)
 *   and for spot, times (1 + spread * share)                                               (d)
 *   and with a score s of 1 .. 10 from the provider, times (1 + 5 % * (5.5 - s) / 9)       (e)
 *
 *   (a) the cost of a reclaim: the replacement boots and restores, and the old machine saves
 *   (b) if the store is in another region
 *   (c) if the input is in another region
 *   (d) correlated loss: all machines of a pool in one offer may be reclaimed at once
 *   (e) of offers with nearly equal cost, the more available one is tried first
 *
 * Rates are observed per offer, with a prior that fades with observations. A score is not an
 * observation: it decides between neighbours and weighs at most 5 % of the price. As a factor it
 * keeps the order transitive, which "equal within 5 %" would not. An offer without a score counts
 * as the middle.
 */
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"

#include <math.h>

#define HOUR_MS 3600000
/* The prior weighs as much as observations of this many hours. */
#define PRIOR_HOURS 20.0
#define PRIOR_BOOT_MS SECONDS_MS(90)
#define PRIOR_BOOT_PART 6 /* at most this fraction of the boot timeout */
/* The standard deviation of boots before any was observed, relative to their mean; it weighs as
 * much as so many boots. */
#define PRIOR_BOOT_DEVIATION (2.0 / 3)
#define PRIOR_SPREAD 2.0
#define WORST_DEVIATIONS 3
#define SAVE_UNKNOWN_MS SECONDS_MS(5)
/* Approximate time within which a recommendation is followed by a reclaim. */
#define REBALANCE_HOURS (10.0 / 60)
/* Difference between the worst and the best score, in percent of the price. */
#define SCORE_PCT 5

static double reclaims_per_hour(const struct offer *o)
{
    double hours = (double)o->row.up_ms / HOUR_MS;
    return ((double)o->row.reclaims + PRIOR_RECLAIMS_PER_HOUR * PRIOR_HOURS) /
           (hours + PRIOR_HOURS);
}

/* Chance that a rebalance recommendation for this offer is followed by a reclaim, by Laplace's rule
 * of succession; a half without data. */
static double rebalance_precision(const struct offer *o)
{
    return ((double)o->row.rebalances_true + 1) / ((double)o->row.rebalances + 2);
}

double core_reclaims_per_hour(const struct node *n)
{
    const struct instance *i = n->instance;
    if (!i || !i->offer)
        return PRIOR_RECLAIMS_PER_HOUR;
    double rate = reclaims_per_hour(i->offer);
    return i->row.rebalanced ? rate + rebalance_precision(i->offer) / REBALANCE_HOURS : rate;
}

double core_job_reclaims_per_hour(const struct job *j)
{
    double sum = 0;
    LIST_FOREACH (&j->ranks, l)
        sum += core_reclaims_per_hour(LIST_ENTRY(l, struct attempt, in_job)->node);
    return sum;
}

/* Counts as one boot. */
static int64_t prior_boot_ms(const struct offer *o)
{
    int64_t given = o->pool->row.boot_timeout_ms / PRIOR_BOOT_PART;
    return given > 0 && given < PRIOR_BOOT_MS ? given : PRIOR_BOOT_MS;
}

int64_t offer_boot_ms(const struct offer *o)
{
    return (o->row.boot_ms + prior_boot_ms(o)) / (o->row.boots + 1);
}

int64_t offer_boot_worst_ms(const struct offer *o)
{
    const double n = (double)o->row.boots + 1, prior = (double)prior_boot_ms(o),
                 mean = (double)offer_boot_ms(o), unknown = mean * PRIOR_BOOT_DEVIATION;
    const double spread = fmax((double)o->row.boot_ms2 + prior * prior - n * mean * mean, 0);
    return (int64_t)(mean + WORST_DEVIATIONS * sqrt((spread + (PRIOR_SPREAD * unknown * unknown)) /
                                                    (n - 1 + PRIOR_SPREAD)));
}

int64_t offer_effective_uusd_h(const struct offer *o, const struct job_row *j)
{
    if (o->pool->row.by_price)
        return o->row.price_uusd_h;
    double price = (double)o->row.price_uusd_h, rate = 0;
    double gib = (double)j->ckpt_bytes / (1 << 30);
    if (o->row.market == MARKET_SPOT) {
        int64_t save_ms = j->save_ms > 0 ? j->save_ms : SAVE_UNKNOWN_MS;
        rate = reclaims_per_hour(o);
        price *= 1 + rate * (double)(offer_boot_ms(o) + 2 * save_ms) / HOUR_MS;
    }
    double restores = rate + (j->last_good.attempt ? 1 : 0); /* the first restore within the hour */
    return (int64_t)(price + (double)o->pool->row.egress_uusd_gib * gib * restores);
}

int64_t pool_input_uusd(const struct pool *p, const struct constraints *x)
{
    const struct input *in = x ? &x->input : NULL;
    if (!in || in->bytes == 0)
        return 0;
    /* otherwise the pool's setting for the store applies */
    bool is_known = p->row.elastic && in->provider[0];
    return core_bytes_uusd(in->bytes, is_known ? egress_uusd_gib(&in->egress, in->provider,
                                                     in->region, p->row.provider, p->row.region)
                                               : p->row.egress_uusd_gib);
}

/* Expected run time per start, as far as its user gave one. */
static int64_t expected_run_ms(const struct job_row *j)
{
    int64_t ms = j->spec.work_ms > 0 ? j->spec.work_ms : j->spec.time_limit_ms;
    return ms > 0 ? ms : HOUR_MS;
}

int64_t pool_input_uusd_h(const struct pool *p, const struct offer *o, const struct job *j)
{
    int64_t once = p->row.by_price ? 0 : pool_input_uusd(p, j->shape->constraints);
    double starts = (double)HOUR_MS / (double)expected_run_ms(&j->row) +
                    (o ? core_offer_reclaims_per_hour(o) : 0);
    double uusd_h = (double)once * starts / j->shape->nodes; /* each of its nodes reads its part */
    return uusd_h < 1e15 ? (int64_t)uusd_h : (int64_t)1e15;
}

double core_offer_reclaims_per_hour(const struct offer *o)
{
    return o->row.market == MARKET_SPOT ? reclaims_per_hour(o) : 0;
}

int64_t core_offer_effective_uusd_h(const struct offer *o)
{
    return offer_effective_uusd_h(o, &(struct job_row){0});
}

int64_t offer_spread_uusd_h(
    const struct offer *o, int64_t uusd_h, int64_t in_offer, int64_t in_pool)
{
    if (o->row.market != MARKET_SPOT || in_pool <= 0 || o->pool->row.by_price)
        return uusd_h;
    return uusd_h + (int64_t)((double)uusd_h * o->pool->row.spread_pct / 100 * (double)in_offer /
                              (double)in_pool);
}

int64_t offer_hinted_uusd_h(const struct offer *o, int64_t uusd_h)
{
    if (o->score == OFFER_SCORE_NONE || o->pool->row.by_price)
        return uusd_h;
    int from_middle = OFFER_SCORE_MAX + 1 - 2 * o->score; /* in halves of a score: 9 .. -9 */
    return uusd_h +
           (int64_t)((double)uusd_h * SCORE_PCT / 100 * from_middle / (2 * (OFFER_SCORE_MAX - 1)));
}

/* ---- limits ---- */

static int64_t remaining(int64_t max, int64_t used)
{
    if (max == 0)
        return INT64_MAX;
    return max > used ? max - used : 0;
}

int64_t pool_nodes_max(const struct pool *p)
{
    int64_t most = p->row.max_nodes;
    return p->rack_kind && p->rack_kind->n < most ? p->rack_kind->n : most;
}

struct capacity pool_limits(const struct pool *p)
{
    struct capacity r = {.nodes = p->row.elastic && pool_nodes_max(p) > p->used.nodes
                                      ? pool_nodes_max(p) - p->used.nodes
                                      : 0,
        .gpus = remaining(p->row.max_gpus, p->used.gpus),
        .uusd_h = remaining(p->row.max_uusd_h, p->used.uusd_h)};
    return r;
}

struct capacity pool_capacity(const struct pool *p, struct mono now)
{
    struct capacity r = pool_limits(p);
    int64_t most = !pool_boots_fail(p) ? r.nodes : pool_may_probe(p, now);
    r.nodes = most < r.nodes ? most : r.nodes;
    return r;
}

struct capacity model_used(const struct model *m)
{
    return m->supply.used;
}

struct capacity model_capacity(const struct model *m)
{
    return (struct capacity){.nodes = remaining(m->options.max_nodes, m->supply.used.nodes),
        .gpus = remaining(m->options.max_gpus, m->supply.used.gpus),
        .uusd_h = remaining(m->options.max_uusd_h, m->supply.used.uusd_h)};
}

const char *capacity_lacks(const struct capacity *r, const struct offer *o)
{
    if (r->nodes < 1)
        return "nodes";
    if (r->gpus < o->row.total.gpus)
        return "GPUs";
    return r->uusd_h < o->row.price_uusd_h ? "dollars an hour" : NULL;
}

void capacity_take(struct capacity *r, const struct offer *o)
{
    r->nodes -= r->nodes == INT64_MAX ? 0 : 1;
    r->gpus -= r->gpus == INT64_MAX ? 0 : o->row.total.gpus;
    r->uusd_h -= r->uusd_h == INT64_MAX ? 0 : o->row.price_uusd_h;
}

static void add_instance(struct capacity *used, const struct instance *i, int64_t sign)
{
    used->nodes += sign;
    used->gpus += sign * i->gpus;
    used->uusd_h += sign * i->row.price_uusd_h;
}

bool offer_may_serve(const struct offer *o, const struct shape *s, const struct capacity *pool,
    const struct capacity *all, struct stamp now)
{
    struct resources total = offer_total(o);
    struct mono until = o->row.avoid_until;
    return o->row.rank != OFFER_WITHDRAWN && shape_allows_pool(s, o->pool) &&
           shape_may_use(s, o->pool, o->row.market) && shape_takes_offer(s, o) &&
           resources_fit(&s->need, &total) && offer_suits(o, s) && !capacity_lacks(pool, o) &&
           !capacity_lacks(all, o) && rack_has_power(o, s, 1) &&
           (!mono_is_set(until) || until.ms <= now.mono.ms) &&
           maintenance_allows_machine(o->pool, s, (struct wall){now.wall.ms + offer_boot_ms(o)});
}

void instance_count(struct model *m, const struct instance *i, int64_t sign)
{
    model_note_reserve(m);
    if (i->row.reclaimed)
        return;
    add_instance(&i->pool->used, i, sign);
    add_instance(&m->supply.used, i, sign);
    if (i->offer)
        i->offer->n_live += sign;
}
