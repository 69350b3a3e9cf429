/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/procurement_sight.h"

#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/planner.h"

#include "base/minmax.h"
#include <stdlib.h>

static bool is_avoided(const struct offer *o, struct stamp now)
{
    if (pool_boots_fail(o->pool) && !pool_may_probe(o->pool, now.mono))
        return true;
    return mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > now.mono.ms;
}

static bool could_serve(const struct offer *o, const struct shape *shape)
{
    struct resources total = offer_total(o);
    return o->row.rank != OFFER_WITHDRAWN && resources_fit(&shape->need, &total) &&
           offer_suits(o, shape);
}

/* The job's current offer counts as up regardless of refusals since, unless it is under a reclaim
 * notice. */
static const struct offer *offer_under(const struct attempt *a)
{
    bool goes = a && (a->node->row.state == NODE_NOTICED || a->row.state == ATTEMPT_STOPPING);
    return a && !goes && a->node->instance ? a->node->instance->offer : NULL;
}

static int by_id(const void *a, const void *b)
{
    return tree_order(
        (*(const struct offer *const *)a)->row.id, (*(const struct offer *const *)b)->row.id);
}

static void add(struct sight *s, const struct offer *o, enum market market, size_t most)
{
    if (o->row.market == market && s->n < most)
        s->of[s->n++] = o;
}

/* Its hourly cost on machines of this offer. */
static int64_t pays_uusd_h(const struct shape *shape, const struct offer *o)
{
    struct resources total = offer_total(o);
    return shape->least * resources_share(shape_takes(shape, &total), &total, o->row.price_uusd_h);
}

static int64_t lesser_price(int64_t so_far, int64_t price)
{
    return so_far == 0 || price < so_far ? (price > 0 ? price : 1) : so_far;
}

static void add_all(const struct model *m, const struct shape *shape, const struct offer *under,
    enum market market, size_t most, struct sight *s)
{
    LIST_FOREACH (model_pools(m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || !pool_serves(p, shape))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            if (o == under || o->row.market != market || !could_serve(o, shape))
                continue;
            if (!budgets_exceed_price(shape, pays_uusd_h(shape, o)))
                add(s, o, market, most);
            else if (market == MARKET_ON_DEMAND)
                s->too_dear_uusd_h = lesser_price(s->too_dear_uusd_h, pays_uusd_h(shape, o));
        }
    }
}

static void describe_sure(struct sight *s, const struct offer *o)
{
    s->boot_ms = max_i64(s->boot_ms, offer_boot_ms(o));
    s->boot_worst_ms = max_i64(s->boot_worst_ms, offer_boot_worst_ms(o));
    s->failed_ms = max_i64(s->failed_ms, o->pool->row.boot_timeout_ms);
    s->sure_uusd_h = lesser_price(s->sure_uusd_h, o->row.price_uusd_h);
}

/* A machine on which the job, which waits, may be meant to start. */
struct prospect {
    int64_t since_ms; /* since when it is on the way to it; 0: there is none */
    bool is_booted;
};

/* The job is placed on an empty machine at once, unless something else keeps it away. */
static int64_t empty_since(
    const struct model *m, const struct job *j, const struct node *n, struct stamp now)
{
    int64_t waits_ms = now.mono.ms - max_i64(j->row.queued_mono.ms, n->idle_since.ms);
    bool is_for_it = node_takes_work(n) && list_is_empty(&n->attempts);
    return is_for_it && waits_ms < m->deadline.options.look_ms ? now.wall.ms - waits_ms : 0;
}

static struct prospect prospect_of(
    const struct model *m, const struct job *j, const struct offer *o, struct stamp now)
{
    struct prospect p = {0};
    if (j->row.state != JOB_PENDING || !procurement_allows(j->row.procurement, o->row.market))
        return p;
    LIST_FOREACH (&o->instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, of_offer);
        int64_t since_ms = i->node ? empty_since(m, j, i->node, now) : 0;
        if (since_ms > 0)
            return (struct prospect){since_ms, true};
        if (p.since_ms == 0 && instance_is_coming(i) && !i->row.reclaimed &&
            !pool_boots_fail(o->pool))
            p.since_ms = i->row.intended_at.ms;
    }
    return p;
}

/* Time until a machine is up to which the job, which runs on on-demand, may be meant to move; -1:
 * there is none. */
static int64_t coming_ms(
    const struct job *j, const struct attempt *a, const struct offer *o, struct wall now)
{
    int64_t least_ms = -1;
    if (!a || a->row.state != ATTEMPT_RUNNING || a->node->row.market != MARKET_ON_DEMAND ||
        j->row.procurement != PROCURE_SPOT || o->row.market != MARKET_SPOT)
        return -1;
    LIST_FOREACH (&o->instances, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, of_offer);
        if (!(i->node ? node_takes_work(i->node) && list_is_empty(&i->node->attempts)
                      : instance_is_coming(i) && !i->row.reclaimed && !pool_boots_fail(o->pool)))
            continue;
        int64_t in_ms =
            i->node ? 0 : max_i64(offer_boot_ms(o) - (now.ms - i->row.intended_at.ms), 1);
        least_ms = least_ms < 0 ? in_ms : min_i64(in_ms, least_ms);
    }
    return least_ms;
}

void procurement_sight(
    const struct model *m, const struct job *j, struct stamp now, struct sight *s)
{
    const struct attempt *a = job_attempt(j);
    const struct offer *under = offer_under(a);
    *s = (struct sight){.on = DEADLINE_NOWHERE, .moving_to = DEADLINE_NOWHERE};
    if (under)
        add(s, under, MARKET_SPOT, DEADLINE_OFFERS_MAX);
    add_all(m, j->shape, under, MARKET_SPOT, DEADLINE_OFFERS_MAX, s);
    s->n_spot = s->n;
    if (s->n_spot > 0)
        qsort(s->of, s->n_spot, sizeof s->of[0], by_id);
    if (under)
        add(s, under, MARKET_ON_DEMAND, DEADLINE_OFFERS_MAX + SURE_MAX);
    add_all(m, j->shape, under, MARKET_ON_DEMAND, DEADLINE_OFFERS_MAX + SURE_MAX, s);
    for (size_t i = 0; i < s->n; i++) {
        const struct offer *o = s->of[i];
        const struct prospect p = a ? (struct prospect){0} : prospect_of(m, j, o, now);
        int64_t meant_in = coming_ms(j, a, o, now.wall);
        s->offers[i] = (struct deadline_offer){.is_sure = i >= s->n_spot,
            .is_up = o == under || p.since_ms > 0 || meant_in >= 0 || !is_avoided(o, now),
            .is_meant = meant_in >= 0,
            .price_uusd_h = o->row.price_uusd_h};
        if (i < s->n_spot)
            s->ids[i] = o->row.id;
        if (i < s->n_spot)
            s->spot_uusd_h = lesser_price(s->spot_uusd_h, o->row.price_uusd_h);
        else
            describe_sure(s, o);
        if (meant_in >= 0 && (s->moving_to == DEADLINE_NOWHERE || meant_in < s->coming_ms)) {
            s->moving_to = i;
            s->coming_ms = meant_in;
        }
        if (o == under)
            s->on = i;
        else if (p.since_ms > 0 && (s->on == DEADLINE_NOWHERE || (p.is_booted && !s->is_booted))) {
            s->on = i;
            s->starting_since_ms = p.since_ms;
            s->is_booted = p.is_booted;
        }
    }
    if (under && a->row.state == ATTEMPT_ASSIGNED) {
        s->starting_since_ms = a->row.assigned_at.ms;
        s->is_booted = true;
    }
}
