/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides where a deadline job runs next (deadline.h).
 *
 * 1. An action is excluded if it would make the net, time left - worst work left - worst restart -
 *    one failed launch, negative before the next examination.
 * 2. Running on spot costs no slack, so it may continue at any slack >= 0. A start costs a restart
 *    of slack, a move from on-demand its switch, and waiting the time to the next examination.
 * 3. A start on spot is excluded if all recent spells of the offer ended before it would pay back.
 * 4. An action is excluded if it might exceed the cap relative to the baseline. All are excluded
 *    only if the baseline's own action is unavailable to the job or does not keep the cap, or after
 *    more interruptions than assumed. Then the job no longer waits until it has caught up with the
 *    baseline, while that is affordable; after that it follows the baseline. If that is impossible
 *    too, all actions are considered.
 * 5. If the net is negative already, a job without a machine takes on-demand; one on spot stays
 *    until the last examination at which on-demand meets the deadline (rescue).
 */
#include "scheduler/core/deadline/deadline.h"

#include "base/minmax.h"
#include "scheduler/core/deadline/baseline.h"
#include <assert.h>
#include <math.h>

#define HOUR_MS 3600000.0
/* An expected gain from which on what the baseline may still gain counts in full. */
#define GAIN_USUAL 0.2

/* Time left beyond the worst-case work and the net. */
int64_t deadline_slack_ms(const struct deadline_job *job)
{
    return job->left_ms - job->work_worst_ms - job->restart_worst_ms - job->failed_launch_ms;
}

bool deadline_admits_start(const struct deadline_job *job)
{
    return deadline_slack_ms(job) >=
           max_i64(job->restart_worst_ms - job->loss_worst_ms, job->failed_launch_ms);
}

static size_t cheapest_sure(const struct deadline_offer *offers, size_t n)
{
    size_t best = DEADLINE_NOWHERE;

    for (size_t i = 0; i < n; i++)
        if (offers[i].is_sure &&
            (best == DEADLINE_NOWHERE || offers[i].price_uusd_h < offers[best].price_uusd_h))
            best = i;
    assert(best != DEADLINE_NOWHERE);
    return best;
}

static bool is_on_spot(const struct deadline_job *job, const struct deadline_offer *offers)
{
    return job->on != DEADLINE_NOWHERE && !offers[job->on].is_sure && offers[job->on].is_up;
}

static bool is_on_sure(const struct deadline_job *job, const struct deadline_offer *offers)
{
    return job->on != DEADLINE_NOWHERE && offers[job->on].is_sure;
}

bool deadline_moves(const struct deadline_job *job, const struct deadline_offer *offers)
{
    const bool is_certain = job->law && isinf(job->law->interruptions);

    return job->boot_ms > 0 && !is_certain && job->starting_ms == 0 && is_on_sure(job, offers);
}

static struct deadline_choice choose(size_t offer, enum deadline_why why)
{
    return (struct deadline_choice){.offer = offer,
        .why = why,
        .cost_uusd = INFINITY,
        .next_cost_uusd = INFINITY,
        .next_offer = DEADLINE_NOWHERE,
        .meant = DEADLINE_NOWHERE,
        .meant_cost_uusd = INFINITY};
}

/* The reference rules. */

static size_t pick_spot(const struct deadline_policy *p, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n)
{
    const size_t from = job->last == DEADLINE_NOWHERE ? n - 1 : job->last;
    size_t best = DEADLINE_NOWHERE;

    for (size_t step = 1; step <= n; step++) {
        const size_t i = (from + step) % n;
        if (offers[i].is_sure || !offers[i].is_up)
            continue;
        if (!p->takes_best)
            return i;
        if (best == DEADLINE_NOWHERE || offers[i].share > offers[best].share)
            best = i;
    }
    return best;
}

/* Whether less work is done than the straight line requires ahead_ms from now. */
static bool is_behind(const struct deadline_job *job, int64_t ahead_ms)
{
    const double done = (double)(job->whole_work_ms - job->work_ms);
    const double elapsed = (double)(job->whole_time_ms - job->left_ms + ahead_ms);

    return done < elapsed * (double)job->whole_work_ms / (double)job->whole_time_ms;
}

/* A job on on-demand stays there while it is behind the line as it will be two restarts later. */
enum hysteresis {
    AGAINST_WAITING = 1, /* if there is no spot */
    AGAINST_SPOT = 2,    /* if there is */
    NEVER_WAITS = 4      /* without spot it stays, wherever the line is */
};

static const unsigned hysteresis_of[] = {[DEADLINE_UNIFORM] = AGAINST_WAITING,
    [DEADLINE_UNIFORM_STICKY] = AGAINST_WAITING | AGAINST_SPOT,
    [DEADLINE_RC_CR] = NEVER_WAITS | AGAINST_SPOT,
    [DEADLINE_RC_CR_PLAIN] = NEVER_WAITS,
    [DEADLINE_ON_DEMAND] = 0};

static size_t follow_rule(const struct deadline_policy *p, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n)
{
    const size_t sure = cheapest_sure(offers, n), spot = pick_spot(p, job, offers, n);
    const int64_t spare = deadline_slack_ms(job);
    const bool on_sure = is_on_sure(job, offers);
    const unsigned stays = on_sure ? hysteresis_of[p->rule] : 0;

    if (p->rule == DEADLINE_ON_DEMAND)
        return sure;
    if (is_on_spot(job, offers))
        return job->on;
    if (spare < max_i64(job->restart_worst_ms, job->failed_launch_ms) || spare < job->look_ms)
        return on_sure ? job->on : sure;
    if ((stays & AGAINST_SPOT) && is_behind(job, 2 * job->restart_ms))
        return job->on;
    if (spot != DEADLINE_NOWHERE)
        return spot;
    if (p->rule == DEADLINE_GREEDY)
        return DEADLINE_NOWHERE;
    if (stays & NEVER_WAITS)
        return job->on;
    if (stays & AGAINST_WAITING)
        return is_behind(job, 2 * job->restart_ms) ? job->on : DEADLINE_NOWHERE;
    return is_behind(job, 0) ? sure : DEADLINE_NOWHERE;
}

/* The planned rule. */

struct plan {
    const struct deadline_policy *p;
    const struct deadline_job *job;
    const struct deadline_offer *offers;
    size_t n, sure;
    uint16_t set_class;
    double longer_ms; /* how much longer a start takes than in the table */
    double unit_uusd; /* cost of an on-demand step */
    int64_t slack_ms;
    struct deadline_choice best;
    bool is_capped;
    /* The baseline at the next examination, if is_capped, and its place until then. */
    struct deadline_job baseline;
    size_t baseline_on;
    /* It does not wait, and the bound on its debt replaces the cap. */
    bool catches_up;
    double worth; /* weight, in 0 .. 1, of what the baseline may still gain from spot */
    /* Cost of the baseline's action, and the lowest cost that the cap excluded; INFINITY: none. */
    double followed_uusd, refused_uusd;
};

/* Sums of money may differ in their last digits: an action that may reach the cap is allowed. */
#define CAP_TOLERANCE_UUSD 1.0

static bool passes_cap(const struct plan *pl, size_t offer)
{
    struct deadline_job then = *pl->job;
    const double part = isinf(then.law->interruptions) ? 1 : then.law->part,
                 most_uusd = part * then.cap_uusd + CAP_TOLERANCE_UUSD;
    double owed_uusd, regret_uusd;

    baseline_go(&then, pl->offers, offer, then.look_ms);
    owed_uusd = baseline_owed(&then, &pl->baseline, pl->offers, pl->n, pl->sure);
    if (pl->catches_up)
        return owed_uusd > most_uusd;
    regret_uusd = baseline_regret(&then, &pl->baseline, pl->offers, pl->n, pl->sure);
    if (pl->worth < 1 && regret_uusd > owed_uusd)
        regret_uusd = owed_uusd + pl->worth * (regret_uusd - owed_uusd);
    return regret_uusd > most_uusd;
}

/* Of two spot offers with the same expected cost, the one with the higher share of time up; for a
 * last start, which a loss ends, the one with the lower loss rate. */
static bool is_better(const struct plan *pl, size_t offer, double uusd)
{
    const struct deadline_choice *best = &pl->best;
    const struct deadline_offer *a, *b;

    if (uusd < best->cost_uusd || offer == DEADLINE_NOWHERE || best->offer == DEADLINE_NOWHERE)
        return uusd < best->cost_uusd;
    a = &pl->offers[offer];
    b = &pl->offers[best->offer];
    if (a->is_sure || b->is_sure || uusd > best->cost_uusd)
        return false;
    return pl->job->is_last_start ? a->rate < b->rate : a->share > b->share;
}

static void consider(struct plan *pl, size_t offer, enum deadline_why why, double cost)
{
    const double uusd = cost * pl->unit_uusd;

    if (pl->is_capped && offer == pl->baseline_on)
        pl->followed_uusd = uusd;
    if (pl->is_capped && passes_cap(pl, offer)) {
        pl->refused_uusd = fmin(pl->refused_uusd, uusd);
        return;
    }
    if (offer != DEADLINE_NOWHERE && pl->offers[offer].is_meant &&
        uusd < pl->best.meant_cost_uusd) {
        pl->best.meant = offer;
        pl->best.meant_cost_uusd = uusd;
    }
    if (is_better(pl, offer, uusd)) {
        pl->best.next_cost_uusd = pl->best.cost_uusd;
        pl->best.next_offer = pl->best.offer;
        pl->best.cost_uusd = uusd;
        pl->best.offer = offer;
        pl->best.why = why;
    } else if (uusd < pl->best.next_cost_uusd) {
        pl->best.next_cost_uusd = uusd;
        pl->best.next_offer = offer;
    }
}

/* Costs of all actions, with part of a restart counted as additional work: the rest of the current
 * restart, or the time by which a start exceeds the table's. After a last start there is no slack:
 * on-demand is for good, and spot until it is lost. */
static void costs_of(
    const struct plan *pl, uint16_t class, double extra_ms, double ret_costs[DEADLINE_ACTS])
{
    const double slack_ms = pl->job->is_last_start ? 0 : (double)pl->slack_ms;

    deadline_table_costs(pl->p->table, ((double)pl->job->work_ms + extra_ms) / DEADLINE_STEP_MS,
        (slack_ms - extra_ms) / DEADLINE_STEP_MS, class, ret_costs);
}

/* Price of spot in the offer set: of the job's offer, or of the favourite. The table has one spot
 * price, for this offer. */
static double set_price(const struct plan *pl)
{
    const int64_t uusd_h = is_on_spot(pl->job, pl->offers) ? pl->offers[pl->job->on].price_uusd_h
                                                           : pl->p->price_uusd_h;

    return pl->p->price_uusd_h > 0 ? (double)uusd_h / (double)pl->offers[pl->sure].price_uusd_h
                                   : pl->p->table->price;
}

/* Additional cost of a more expensive offer over its expected life. Relative to the set's price:
 * relative to a lower one, such as the table's rounded one, waiting would look cheaper than any
 * spot again and again until no time is left. */
static double dearer(const struct plan *pl, const struct deadline_offer *o, double extra_ms)
{
    const struct deadline_table *t = pl->p->table;
    const double price = (double)o->price_uusd_h / (double)pl->offers[pl->sure].price_uusd_h;
    const double run = ((double)pl->job->work_ms + extra_ms) / DEADLINE_STEP_MS,
                 life = t->life[o->class];

    return (price - set_price(pl)) * (run < life ? run : life);
}

/* A spot offer is not left for one with the same price: a longer expected life is mostly estimation
 * noise, and the favourite stays until it is lost. */
static bool is_worth_leaving_for(const struct plan *pl, const struct deadline_offer *o)
{
    return !is_on_spot(pl->job, pl->offers) ||
           o->price_uusd_h < pl->offers[pl->job->on].price_uusd_h;
}

/* Whether a start pays back if the offer is lost when all its recent spells were: the work until
 * then costs less than on on-demand. Once the spell has outlived them, the offer has changed. The
 * table does not show this: its ages are whole steps. */
static bool may_gain(const struct plan *pl, const struct deadline_offer *o)
{
    const double up_ms = (double)o->record_ms, work_ms = up_ms - (double)pl->job->restart_ms;

    return up_ms <= 0 ||
           work_ms * (double)pl->offers[pl->sure].price_uusd_h > up_ms * (double)o->price_uusd_h;
}

/* While it boots nothing is lost: on-demand computes on. */
static bool admits_spot(const struct plan *pl)
{
    return deadline_moves(pl->job, pl->offers) ? pl->slack_ms >= pl->job->switch_worst_ms
                                               : deadline_admits_start(pl->job);
}

/* Cost of a start on spot, or of a move to it: each step of a boot more than in the table is one
 * more of on-demand, beside spot, and one less of spot. */
static double cost_of_start(const struct plan *pl, size_t offer)
{
    const struct deadline_job *job = pl->job;
    const struct deadline_offer *o = &pl->offers[offer];
    const struct deadline_starts *s = &pl->p->table->starts;
    const bool moves = deadline_moves(job, pl->offers);
    double costs[DEADLINE_ACTS];

    if (job->is_last_start) { /* without slack the table has no start */
        costs_of(pl, o->class, (double)(moves ? job->switch_ms : job->restart_ms), costs);
        return costs[DEADLINE_SPOT_STAY] + dearer(pl, o, (double)job->restart_ms) +
               (moves ? (double)job->boot_ms / DEADLINE_STEP_MS : 0);
    }
    if (!moves) {
        costs_of(pl, o->class, pl->longer_ms, costs);
        return costs[DEADLINE_SPOT_START] + dearer(pl, o, (double)job->restart_ms);
    }
    const double boot_ms = (double)(offer == job->moving_to ? job->coming_ms : job->boot_ms);
    costs_of(pl, o->class, (double)job->switch_ms - s->switching * DEADLINE_STEP_MS, costs);
    return costs[DEADLINE_SPOT_MOVE] + boot_ms / DEADLINE_STEP_MS - s->boot +
           dearer(pl, o, (double)job->switch_ms);
}

static void consider_spot(struct plan *pl, size_t i)
{
    const struct deadline_job *job = pl->job;
    const struct deadline_offer *o = &pl->offers[i];
    double costs[DEADLINE_ACTS];

    if (i == job->on && pl->slack_ms >= min_i64(job->look_ms, job->starting_ms)) {
        costs_of(pl, o->class, (double)job->starting_ms, costs);
        consider(pl, i, DEADLINE_WHY_KEEP,
            costs[DEADLINE_SPOT_STAY] + dearer(pl, o, (double)job->starting_ms));
    } else if (i != job->on && admits_spot(pl)) {
        const double cost = cost_of_start(pl, i);
        if (may_gain(pl, o) && is_worth_leaving_for(pl, o))
            consider(pl, i, DEADLINE_WHY_CHEAPEST, cost);
        else if (pl->is_capped && i == pl->baseline_on) /* only to follow the baseline */
            pl->followed_uusd = cost * pl->unit_uusd;
    }
}

static void consider_all(struct plan *pl)
{
    const struct deadline_job *job = pl->job;
    /* The offer set as seen by the job: its own offer is the favourite. */
    const uint16_t set_class =
        is_on_spot(job, pl->offers) ? pl->offers[job->on].class : pl->set_class;
    double costs[DEADLINE_ACTS];

    if (is_on_sure(job, pl->offers)) {
        costs_of(pl, set_class, (double)job->starting_ms, costs);
        consider(pl, job->on, DEADLINE_WHY_KEEP, costs[DEADLINE_ON_DEMAND_STAY]);
    } else {
        costs_of(pl, set_class, pl->longer_ms, costs);
        consider(pl, pl->sure, DEADLINE_WHY_CHEAPEST, costs[DEADLINE_ON_DEMAND_START]);
    }
    for (size_t i = 0; i < pl->n; i++)
        if (!pl->offers[i].is_sure && pl->offers[i].is_up)
            consider_spot(pl, i);
    if (pl->slack_ms < job->look_ms || pl->catches_up)
        return;
    costs_of(pl, set_class, pl->longer_ms, costs); /* the start after the wait takes as long */
    consider(pl, DEADLINE_NOWHERE,
        deadline_class_is_up(set_class) ? DEADLINE_WHY_BETTER_WAIT : DEADLINE_WHY_NOTHING_UP,
        costs[DEADLINE_WAIT]);
}

static bool is_none(const struct plan *pl)
{
    return isinf(pl->best.cost_uusd);
}

/* Expected gain of the baseline's rest under the best decisions, as a part of its cost on
 * on-demand. No rule gains more from the learned market. */
static double expected_gain(const struct plan *pl)
{
    const struct deadline_job *r = &pl->baseline;
    const struct deadline_table *t = pl->p->table;
    const bool is_placed = r->on != DEADLINE_NOWHERE, on_sure = is_on_sure(r, pl->offers);
    const uint16_t class = is_placed && !on_sure ? pl->offers[r->on].class : pl->set_class;
    const double step_ms = DEADLINE_STEP_MS, slack_ms = (double)deadline_slack_ms(r),
                 rest_ms = is_placed ? (double)r->starting_ms : 0;
    const double alone =
        ((double)r->work_ms + (on_sure ? rest_ms : (double)r->restart_ms)) / step_ms;
    double costs[DEADLINE_ACTS], least = alone;

    deadline_table_costs(t, ((double)r->work_ms + pl->longer_ms) / step_ms,
        (slack_ms - pl->longer_ms) / step_ms, class, costs);
    least = fmin(least, costs[DEADLINE_WAIT]);
    if (deadline_class_is_up(class))
        least = fmin(least, costs[DEADLINE_SPOT_START]);
    if (is_placed) {
        deadline_table_costs(t, ((double)r->work_ms + rest_ms) / step_ms,
            (slack_ms - rest_ms) / step_ms, class, costs);
        least = fmin(least, costs[on_sure ? DEADLINE_ON_DEMAND_STAY : DEADLINE_SPOT_STAY]);
    }
    return 1 - least / alone;
}

static void consider_under_cap(struct plan *pl)
{
    double followed_uusd;

    pl->baseline = baseline_job(pl->job->baseline, pl->job, pl->offers);
    const bool is_done = pl->baseline.work_ms == 0; /* it then uses nothing; not to be followed */
    pl->worth = 1;
    if (!is_done && !isinf(pl->job->law->interruptions))
        pl->worth = fmin(1, expected_gain(pl) / GAIN_USUAL);
    pl->baseline_on = baseline_look(pl->job->baseline, pl->job, pl->offers, pl->n);
    baseline_go(&pl->baseline, pl->offers, pl->baseline_on, pl->job->look_ms);
    pl->followed_uusd = pl->refused_uusd = INFINITY;
    pl->is_capped = true;
    consider_all(pl);
    followed_uusd = pl->followed_uusd;
    if (is_none(pl) && !isinf(pl->job->law->interruptions)) {
        pl->catches_up = true;
        consider_all(pl);
    }
    if (is_none(pl) && !isinf(followed_uusd) && !is_done) {
        pl->best.offer = pl->baseline_on;
        pl->best.cost_uusd = followed_uusd;
        pl->best.why = DEADLINE_WHY_CAP;
    } else if (is_none(pl)) {
        pl->is_capped = false;
        pl->catches_up = is_done;
        consider_all(pl);
        return;
    }
    if (pl->refused_uusd < pl->best.cost_uusd)
        pl->best.why = DEADLINE_WHY_CAP;
}

/* The net is violated. A job on spot stays: it is late only if it loses that and a launch of
 * on-demand fails, while one that leaves is late if that launch fails. It leaves at the last
 * examination at which on-demand meets the deadline. */
static size_t rescue(
    const struct deadline_job *job, const struct deadline_offer *offers, size_t sure)
{
    const int64_t spare_ms = job->left_ms - job->work_worst_ms - job->restart_worst_ms;

    if (is_on_sure(job, offers) ||
        (is_on_spot(job, offers) && (spare_ms < 0 || spare_ms >= job->look_ms)))
        return job->on;
    return sure;
}

void deadline_decide(const struct deadline_policy *p, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n, uint16_t set_class,
    struct deadline_choice *ret_choice)
{
    struct plan pl = {.p = p,
        .job = job,
        .offers = offers,
        .n = n,
        .set_class = set_class,
        .slack_ms = deadline_slack_ms(job)};

    assert(job->work_ms >= 0 && job->work_worst_ms >= job->work_ms && job->look_ms > 0);
    assert(job->on == DEADLINE_NOWHERE || job->on < n);
    pl.sure = cheapest_sure(offers, n);
    if (job->work_worst_ms == 0) {
        *ret_choice = choose(DEADLINE_NOWHERE, DEADLINE_WHY_DONE);
        return;
    }
    if (p->rule != DEADLINE_PLANNED) {
        *ret_choice = choose(follow_rule(p, job, offers, n), DEADLINE_WHY_RULE);
        return;
    }
    if (pl.slack_ms < 0) {
        *ret_choice = choose(rescue(job, offers, pl.sure), DEADLINE_WHY_NET);
        return;
    }
    pl.longer_ms = (double)job->restart_ms - p->table->starts.restart * DEADLINE_STEP_MS;
    pl.unit_uusd = (double)offers[pl.sure].price_uusd_h * DEADLINE_STEP_MS / HOUR_MS;
    pl.best = choose(pl.sure, DEADLINE_WHY_NET);
    if (job->baseline)
        consider_under_cap(&pl);
    else
        consider_all(&pl);
    *ret_choice = pl.best;
}
