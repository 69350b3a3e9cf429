/* SPDX-License-Identifier: Apache-2.0
 *
 * See budgets.h and budget_options.h.
 *
 * Invariants.
 *  1. A running rank has a stake in each budget that its job and pool match, and in its job's own
 *     cap. Spent cost is the row's booked sum (ended ranks, and storage) plus the cost of its
 *     stakes until now. At the begin of a period the booked sum is negative by the cost so far of
 *     running ranks. Therefore nothing is stored while ranks run, and a restart computes the same
 *     sums.
 *  2. No job is placed unless what is left of each of its budgets suffices. `committed` is the cost
 *     of what ended plus the maximum cost of each stake, including the read of its input until it
 *     has started. It is recomputed when the budget is examined (EV_BUDGET), and updated in between
 *     as ranks start and end.
 *  3. The next examination is scheduled for the earliest of: the end of the period, the next
 *     threshold spent, the last moment to save the jobs to be parked, and the first stake to use up
 *     its reservation. Examinations are exact; the time of the next is extrapolated from the hourly
 *     cost, so the work does not grow with the number of running ranks.
 *  4. Each threshold is notified once per period: the row records it, in the same transaction as
 *     the notifications.
 */
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/budgets_private.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/offers.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>

#define HOUR_MS 3600000LL
#define EXPECT_MS HOUR_MS /* expected run time without any history */
/* Significant binary digits of expected run times, which bounds the number of demand classes. */
#define EXPECT_BITS 6
#define EXPECT_MAX_MS (366 * 24 * HOUR_MS)
#define RECOUNT_MIN_MS 60000LL  /* minimum interval between increases of the reservation */
#define RECOUNT_MAX_MS 600000LL /* maximum time that is extrapolated without an examination */

/* ---- matching jobs ---- */

static bool is_limiting(const struct budget *b)
{
    return b->is_open && b->at_limit != BUDGET_ALERT;
}

bool budget_is_of_pool(const struct budget *b, const struct pool *p)
{
    return !b->options || !b->options->pool[0] || str_eq(b->options->pool, p->row.name);
}

uint64_t budgets_of(const struct model *m, const struct job *j)
{
    uint64_t mask = 0;
    for (size_t k = 0; k < m->queue.n_budgets; k++) {
        const struct budget_options *o = m->queue.budgets[k].options;
        const struct labels *l = j->labels;
        uint64_t bit = 1ULL << k;
        bool team = !o->team[0] || (l && l->has_team ? (l->team_of & bit) != 0
                                                     : str_eq(o->team, j->row.spec.team));
        bool labels = o->n_labels == 0 || (l && (l->matches & bit));
        if (team && labels && (!o->user[0] || str_eq(o->user, j->row.user)) &&
            (!o->job[0] || str_eq(o->job, j->row.spec.name)))
            mask |= bit;
    }
    return mask;
}

/* It can be saved and stopped at any time, and resumed later. */
static bool can_park(const struct job_row *r)
{
    return r->spec.method != CKPT_NONE && !retries_are_none(r);
}

/* Expected maximum time from placement to end. */
static int64_t expected_ms(const struct model *m, const struct job *j)
{
    int64_t least_ms = 0, most_ms = 0;
    if (j->row.spec.time_limit_ms == 0)
        runtimes_range(runtimes_of(m, j), 0, &least_ms, &most_ms);
    else
        most_ms = j->row.spec.time_limit_ms;
    return most_ms <= 0 ? EXPECT_MS : most_ms < EXPECT_MAX_MS ? most_ms : EXPECT_MAX_MS;
}

bool shape_pays(const struct shape *s)
{
    return s->in_budgets || s->is_capped || s->max_uusd_h > 0;
}

void budgets_describe(const struct model *m, const struct job *j, struct shape *want)
{
    want->budgets = m->queue.budgets;
    want->in_budgets = budgets_of(m, j);
    want->max_uusd_h = j->row.spec.max_uusd_h;
    want->is_capped = j->row.spec.max_uusd > 0;
    if (want->is_capped)
        want->left_uusd =
            j->row.spec.max_uusd > j->row.cost_uusd ? j->row.spec.max_uusd - j->row.cost_uusd : 0;
    if (!want->in_budgets && !want->is_capped)
        return;
    want->can_park = can_park(&j->row);
    want->expect_ms = queue_round_up(expected_ms(m, j), EXPECT_BITS);
}

/* ---- admission ---- */

static int64_t slice_ms(const struct shape *s)
{
    return min_i64(s->expect_ms, BUDGET_SLICE_MS);
}

int64_t budgets_needs(
    const struct budget *b, const struct shape *s, int64_t uusd_h, int64_t input_uusd)
{
    int64_t period_ms = wall_is_set(b->row.since) && wall_is_set(b->row.until)
                            ? b->row.until.ms - b->row.since.ms
                            : INT64_MAX;
    int64_t ms = b->at_limit == BUDGET_PARK && s->can_park ? slice_ms(s) : s->expect_ms;
    return core_cost_uusd(min_i64(ms, period_ms), uusd_h) + input_uusd;
}

int64_t budgets_left(const struct budget *b)
{
    if (!is_limiting(b))
        return b->is_loaded ? INT64_MAX : 0;
    return !b->is_loaded || b->row.is_closed || b->committed >= b->cap_uusd
               ? 0
               : b->cap_uusd - b->committed;
}

const struct budget *budgets_lacking(const struct shape *s, const struct pool *p, int64_t uusd_h)
{
    int64_t input_uusd = pool_input_uusd(p, s->constraints);
    uint64_t mask = uusd_h > 0 || input_uusd > 0 ? s->in_budgets : 0;
    for (int k = 0; k < BUDGETS_MAX && mask >> k; k++) {
        const struct budget *b = &s->budgets[k];
        int64_t left = (mask >> k & 1) && budget_is_of_pool(b, p) ? budgets_left(b) : INT64_MAX;
        if (left != INT64_MAX && budgets_needs(b, s, uusd_h, input_uusd) > left)
            return b;
    }
    return NULL;
}

bool budgets_cap_lacks(const struct shape *s, const struct pool *p, int64_t uusd_h)
{
    return s->is_capped &&
           core_cost_uusd(slice_ms(s), uusd_h) + pool_input_uusd(p, s->constraints) > s->left_uusd;
}

bool budgets_exceed_price(const struct shape *s, int64_t uusd_h)
{
    return s->max_uusd_h > 0 && uusd_h > s->max_uusd_h;
}

bool budgets_afford(const struct shape *s, const struct pool *p, int64_t uusd_h)
{
    return !budgets_exceed_price(s, uusd_h) && !budgets_cap_lacks(s, p, uusd_h) &&
           !budgets_lacking(s, p, uusd_h);
}

/* ---- sums ---- */

/* Cost since its placement, up to a time. */
static int64_t cost_by(const struct attempt *a, struct wall at)
{
    int64_t uusd, unused;
    if (at.ms <= a->row.assigned_at.ms)
        return 0;
    core_cost_so_far(a, at, &uusd, &unused);
    return uusd;
}

static int64_t booked(const struct budget *b)
{
    return b->job ? b->job->row.cost_uusd : b->row.booked_uusd;
}

/* A job's own cap stops it even if it cannot be saved. */
static bool is_parked_by(const struct budget *b, const struct job *j)
{
    return b->at_limit == BUDGET_PARK && (b->job || can_park(&j->row));
}

/* For how long from now the cost of the rank is reserved. */
static int64_t reserved_ms(const struct model *m, const struct stake *s, struct wall now)
{
    const struct budget *b = s->budget;
    const struct job *j = s->attempt->job;
    int64_t ran_ms = now.ms - s->attempt->row.assigned_at.ms, ms = expected_ms(m, j) - ran_ms;
    if (ms < RECOUNT_MIN_MS)
        ms = j->row.spec.time_limit_ms > 0 ? RECOUNT_MIN_MS : BUDGET_SLICE_MS;
    if (is_parked_by(b, j))
        ms = min_i64(ms, BUDGET_SLICE_MS);
    return wall_is_set(b->row.until)
               ? min_i64(ms, b->row.until.ms > now.ms ? b->row.until.ms - now.ms : 0)
               : ms;
}

/* Recomputes the budget with all its stakes, as of now. */
static void count(struct model *m, struct budget *b, struct stake *s, struct wall now)
{
    const struct attempt *a = s->attempt;
    int64_t cost = cost_by(a, now), ms = reserved_ms(m, s, now);
    s->input_uusd = wall_is_set(a->row.started_at) ? 0 : ledger_input_uusd(a);
    s->most_uusd = cost + core_cost_uusd(ms, a->uusd_h) + s->input_uusd;
    b->spent += cost;
    b->uusd_h += a->uusd_h;
    b->committed += s->most_uusd;
    if (is_parked_by(b, a->job)) {
        b->reserved +=
            cost + core_cost_uusd(job_stop_lead_ms(&a->job->row), a->uusd_h) + s->input_uusd;
        b->reserved_uusd_h += a->uusd_h;
    } else {
        b->reserved += s->most_uusd;
    }
    int64_t recount_ms = now.ms + (ms > RECOUNT_MIN_MS ? ms : RECOUNT_MIN_MS);
    b->recount_at.ms = min_i64(b->recount_at.ms, recount_ms);
}

static void recount(struct model *m, struct budget *b, struct wall now)
{
    b->at = now;
    b->spent = b->reserved = b->committed = booked(b);
    b->uusd_h = b->reserved_uusd_h = 0;
    b->recount_at.ms = now.ms + RECOUNT_MAX_MS;
    LIST_FOREACH (&b->stakes, l)
        count(m, b, LIST_ENTRY(l, struct stake, in_budget), now);
}

static void advance(struct budget *b, struct wall now)
{
    int64_t ms = now.ms - b->at.ms;
    if (ms <= 0)
        return;
    b->spent += core_cost_uusd(ms, b->uusd_h);
    b->reserved += core_cost_uusd(ms, b->reserved_uusd_h);
    b->at = now;
}

/* ---- schedule of examinations ---- */

static int compare_due(const void *key, const struct tree_link *l)
{
    const struct budget *a = key, *b = TREE_ENTRY(l, struct budget, by_due);
    int c = tree_order(a->due.ms, b->due.ms);
    return c ? c
             : tree_order((a->job ? a->job->row.id : -1 - a->index),
                   (b->job ? b->job->row.id : -1 - b->index));
}

/* When this much more will be spent; at least one millisecond from now. */
static int64_t after_ms(struct wall now, int64_t more_uusd, int64_t uusd_h)
{
    if (uusd_h <= 0)
        return INT64_MAX;
    double ms = (double)more_uusd * (double)HOUR_MS / (double)uusd_h;
    return now.ms + 1 + (ms < 1e15 ? ms > 0 ? (int64_t)ms : 0 : (int64_t)1e15);
}

static int64_t part_of_cap(const struct budget *b, int32_t pct)
{
    return b->cap_uusd / 100 * pct + b->cap_uusd % 100 * pct / 100;
}

static bool is_alerted(const struct budget *b, size_t k)
{
    return b->row.alerted >> k & 1;
}

static void reschedule(struct model *m, struct budget *b)
{
    int64_t at = wall_is_set(b->row.until) ? b->row.until.ms : INT64_MAX;
    for (size_t k = 0; b->options && b->is_open && k < b->options->n_alerts; k++) {
        int64_t more = part_of_cap(b, b->options->alert_pct[k]) - b->spent;
        if (!is_alerted(b, k))
            at = min_i64(at, more <= 0 ? b->at.ms : after_ms(b->at, more, b->uusd_h));
    }
    if (is_limiting(b) && b->at_limit == BUDGET_PARK && !b->row.is_closed)
        at = min_i64(at, after_ms(b->at, b->cap_uusd - b->reserved, b->reserved_uusd_h));
    if (!list_is_empty(&b->stakes))
        at = min_i64(at, b->recount_at.ms);
    tree_remove(&m->queue.budgets_due, &b->by_due);
    b->due.ms = at;
    if (at != INT64_MAX)
        tree_add(&m->queue.budgets_due, &b->by_due, b, compare_due);
}

static void recount_soon(struct model *m, struct budget *b)
{
    b->recount_at.ms = 0;
    reschedule(m, b);
}

struct mono budgets_next(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->queue.budgets_due);
    if (!first)
        return MONO_NONE;
    const struct budget *b = TREE_ENTRY(first, struct budget, by_due);
    int64_t left = b->due.ms - now.wall.ms;
    *ret_event = (struct event){.type = EV_BUDGET,
        .budget = {.index = b->index, .job = b->job ? b->job->row.id : CORE_ID_NONE}};
    /* maximum interval between checks of the wall clock */
    return (struct mono){now.mono.ms + (left < 0 ? 0 : left > HOUR_MS ? HOUR_MS : left)};
}

/* More of the budget is left: jobs that lacked it may start now. */
static void note_amount_freed(struct model *m, struct budget *b)
{
    if (b->at_limit == BUDGET_ALERT)
        return;
    b->freed_version = model_note_growth(m);
    model_note_rewind(m);
    model_note_retry_all(m);
    model_note_change(m);
    model_note_reserve(m);
}

int64_t budgets_freed_version(const struct shape *s)
{
    int64_t freed_version = -1;
    uint64_t mask = s->in_budgets;
    for (int k = 0; k < BUDGETS_MAX && mask >> k; k++)
        if ((mask >> k & 1) && s->budgets[k].freed_version > freed_version)
            freed_version = s->budgets[k].freed_version;
    return freed_version;
}

/* ---- ranks ---- */

struct stake *budget_stake_new(struct budget *b, struct attempt *a)
{
    struct stake *s = mem_alloc(sizeof *s);
    s->budget = b;
    s->attempt = a;
    list_push_back(&b->stakes, &s->in_budget);
    list_push_back(&a->stakes, &s->of_attempt);
    return s;
}

static void stake_add(struct model *m, struct budget *b, struct attempt *a, struct wall now)
{
    struct stake *s = budget_stake_new(b, a);
    advance(b, now);
    count(m, b, s, now);
    reschedule(m, b);
}

static void stake_remove(struct model *m, struct stake *s, int64_t cost, struct wall now)
{
    struct budget *b = s->budget;
    const struct attempt *a = s->attempt;
    advance(b, now);
    if (b->options) {
        b->row.booked_uusd += cost;
        touch_budget(m, b);
    }
    b->uusd_h -= a->uusd_h;
    b->committed += cost - s->most_uusd;
    if (is_parked_by(b, a->job)) {
        b->reserved -= core_cost_uusd(job_stop_lead_ms(&a->job->row), a->uusd_h) + s->input_uusd;
        b->reserved_uusd_h -= a->uusd_h;
    } else {
        b->reserved += cost - s->most_uusd;
    }
    link_remove(&s->in_budget);
    link_remove(&s->of_attempt);
    if (cost < s->most_uusd && is_limiting(b) && !b->job)
        note_amount_freed(m, b);
    free(s);
    if (b->job)
        return;
    if (list_is_empty(&b->stakes))
        recount(m, b, now); /* exact and cheap here */
    reschedule(m, b);
}

static struct budget *cap_new(struct job *j)
{
    const struct budget cap = {.job = j,
        .index = -1,
        .cap_uusd = j->row.spec.max_uusd,
        .at_limit = BUDGET_PARK,
        .is_open = true,
        .is_loaded = true,
        .row = {.since = WALL_NONE, .until = WALL_NONE}};
    return mem_dup(&cap, sizeof cap);
}

static struct budget *job_cap(struct model *m, struct job *j, struct wall now)
{
    if (!job_side(j)->cap && j->row.spec.max_uusd > 0) {
        job_make_side(j)->cap = cap_new(j);
        recount(m, job_side(j)->cap, now);
    }
    return job_side(j)->cap;
}

static void cap_free(struct model *m, struct job *j)
{
    if (!job_side(j)->cap)
        return;
    tree_remove(&m->queue.budgets_due, &job_side(j)->cap->by_due);
    free(job_side(j)->cap);
    j->side->cap = NULL;
}

/* Adds a cost that is not part of a stake. */
static void book(struct model *m, struct budget *b, int64_t uusd)
{
    b->row.booked_uusd += uusd;
    b->spent += uusd;
    b->reserved += uusd;
    b->committed += uusd;
    touch_budget(m, b);
}

void budgets_placed(struct model *m, struct attempt *a, int64_t waited_uusd, struct wall now)
{
    struct job *j = a->job;
    uint64_t mask = j->shape->in_budgets;
    struct budget *cap = job_cap(m, j, now);
    for (size_t k = 0; k < m->queue.n_budgets; k++) {
        struct budget *b = &m->queue.budgets[k];
        if (!(mask >> k & 1) || !budget_is_of_pool(b, a->node->pool))
            continue;
        book(m, b, waited_uusd);
        stake_add(m, b, a, now);
    }
    if (cap)
        stake_add(m, cap, a, now);
}

void budgets_ended(struct model *m, struct attempt *a, int64_t cost, struct wall now)
{
    struct job *j = a->job;
    for (struct link *l; (l = list_first(&a->stakes)) != NULL;)
        stake_remove(m, LIST_ENTRY(l, struct stake, of_attempt), cost, now);
    if (job_side(j)->cap && list_is_empty(&job_side(j)->cap->stakes))
        cap_free(m, j);
    else if (job_side(j)->cap)
        recount_soon(m, job_side(j)->cap); /* the row now has its cost */
}

void budgets_stored(struct model *m, struct job *j, uint64_t budgets, int64_t uusd)
{
    for (size_t k = 0; k < m->queue.n_budgets; k++) {
        struct budget *b = &m->queue.budgets[k];
        if (!(budgets >> k & 1) || b->options->pool[0])
            continue;
        book(m, b, uusd);
        if (b->is_loaded) /* else it is examined at once */
            reschedule(m, b);
    }
    if (j && job_side(j)->cap)
        recount_soon(m, job_side(j)->cap);
}

void budgets_repriced(struct model *m, struct attempt *a)
{
    LIST_FOREACH (&a->stakes, l)
        recount_soon(m, LIST_ENTRY(l, struct stake, of_attempt)->budget);
}

void budgets_recapped(struct model *m, struct job *j, struct wall now)
{
    if (!job_side(j)->cap && j->row.spec.max_uusd > 0 && job_cap(m, j, now)) {
        LIST_FOREACH (&j->ranks, l)
            stake_add(m, job_side(j)->cap, LIST_ENTRY(l, struct attempt, in_job), now);
    }
    if (!job_side(j)->cap)
        return;
    job_side(j)->cap->cap_uusd = j->row.spec.max_uusd > 0 ? j->row.spec.max_uusd : INT64_MAX;
    job_side(j)->cap->row.is_closed = false;
    recount_soon(m, job_side(j)->cap);
}

void budgets_rejoin(struct model *m, struct job *j, struct wall now)
{
    uint64_t mask = budgets_of(m, j);
    LIST_FOREACH (&j->ranks, lr) {
        struct attempt *a = LIST_ENTRY(lr, struct attempt, in_job);
        uint64_t left = mask;
        LIST_FOREACH (&a->stakes, l) {
            struct stake *s = LIST_ENTRY(l, struct stake, of_attempt);
            if (s->budget->job)
                continue;
            if (!(mask >> s->budget->index & 1))
                stake_remove(m, s, cost_by(a, now), now);
            else
                left &= ~(1ULL << s->budget->index);
        }
        for (size_t k = 0; k < m->queue.n_budgets; k++) {
            struct budget *b = &m->queue.budgets[k];
            if (!(left >> k & 1) || !budget_is_of_pool(b, a->node->pool))
                continue;
            book(m, b, -cost_by(a, now)); /* does not count for this budget */
            stake_add(m, b, a, now);
        }
    }
}

/* ---- EV_BUDGET ---- */

/* Enters the period that contains now. The cost so far of running ranks is excluded. */
static void begin_period(struct model *m, struct budget *b, struct wall now)
{
    struct wall since, until, unused, until_then;
    b->is_open = budget_period_at(b->options, now, &since, &until);
    if (b->options->period == BUDGET_WINDOW && !wall_is_set(b->row.since) &&
        wall_is_set(b->row.until) &&
        budget_period_at(b->options, b->row.until, &unused, &until_then) &&
        until_then.ms == until.ms)
        since = b->row.until; /* when its window opened */
    b->row.since = b->is_open ? since : WALL_NONE;
    b->row.until = until;
    b->row.booked_uusd = 0;
    LIST_FOREACH (&b->stakes, l)
        b->row.booked_uusd -=
            cost_by(LIST_ENTRY(l, struct stake, in_budget)->attempt, b->is_open ? since : now);
    b->row.alerted = 0;
    b->row.is_closed = false;
    touch_budget(m, b);
}

static void notify_threshold(struct model *m, struct budget *b, size_t k, struct stamp now)
{
    int32_t pct = b->options->alert_pct[k];
    b->row.alerted |= 1 << k;
    touch_budget(m, b);
    history(m, now, "budget", (struct history_of){.a = pct, .b = b->spent},
        "budget %s: %" PRId32 " %% of $%.2f are spent in this %s", b->row.name, pct,
        (double)b->cap_uusd / 1e6, budget_period_names[b->options->period]);
    notify_budget(m, b->options, pct, b->spent, now);
}

static void notify_thresholds(struct model *m, struct budget *b, struct stamp now)
{
    for (size_t k = 0; k < b->options->n_alerts; k++) {
        int32_t pct = b->options->alert_pct[k];
        if (!is_alerted(b, k) &&
            (b->spent >= part_of_cap(b, pct) || (b->row.is_closed && pct <= 100)))
            notify_threshold(m, b, k, now);
    }
}

static void park(struct model *m, struct budget *b, struct stamp now)
{
    LIST_FOREACH (&b->stakes, l) {
        const struct stake *s = LIST_ENTRY(l, struct stake, in_budget);
        const struct attempt *a = s->attempt;
        struct job *j = a->job;
        if (j->row.state != JOB_RUNNING || a->row.state == ATTEMPT_STOPPING || a->uusd_h == 0 ||
            !is_parked_by(b, j))
            continue;
        window_leave(m, j);
        if (b->job)
            history(m, now, "park", (struct history_of){.attempt = a},
                "it has nearly used up its $%.2f (--max-usd): it is %s", (double)b->cap_uusd / 1e6,
                j->row.spec.method == CKPT_NONE ? "stopped"
                                                : "saved, and resumed when --max-usd is raised");
        else
            history(m, now, "park", (struct history_of){.attempt = a},
                "budget %s is used up: the job is saved, and resumed when the budget has money "
                "again",
                b->row.name);
        job_stop(m, j, END_BUDGET, j->row.spec.method != CKPT_NONE);
        model_note_change(m);
    }
}

/* Thresholds of the new cap are notified anew. */
static void reset_alerts(struct model *m, struct budget *b)
{
    b->is_recapped = false;
    for (size_t k = 0; k < b->options->n_alerts; k++)
        if (b->spent < part_of_cap(b, b->options->alert_pct[k]))
            b->row.alerted &= ~(1 << k);
    touch_budget(m, b);
}

int apply_budget(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = ev->budget.job != CORE_ID_NONE ? model_job(m, ev->budget.job) : NULL;
    bool is_known = ev->budget.job != CORE_ID_NONE
                        ? j && job_side(j)->cap
                        : ev->budget.index >= 0 && (size_t)ev->budget.index < m->queue.n_budgets;
    struct budget *b = !is_known ? NULL
                       : j       ? job_side(j)->cap
                                 : &m->queue.budgets[ev->budget.index];
    struct wall now = ev->now.wall;
    if (!b || !tree_has(&b->by_due) || b->due.ms > now.ms)
        return err_set(e, ERR_CONFLICT, "no decision on that budget is due (any more)");
    int64_t left = b->is_loaded ? budgets_left(b) : -1;
    if (b->options && (!b->is_loaded || (wall_is_set(b->row.until) && b->row.until.ms <= now.ms)))
        left = -1;
    if (b->options && left == -1 && (!wall_is_set(b->row.until) || b->row.until.ms <= now.ms))
        begin_period(m, b, now);
    recount(m, b, now);
    b->is_loaded = true;
    if (b->is_recapped)
        reset_alerts(m, b);
    if (is_limiting(b) && b->at_limit == BUDGET_PARK && !b->row.is_closed &&
        b->reserved >= b->cap_uusd && b->reserved_uusd_h > 0) {
        b->row.is_closed = true;
        touch_budget(m, b);
    }
    if (is_limiting(b) && b->row.is_closed)
        park(m, b, ev->now);
    if (b->options && b->is_open)
        notify_thresholds(m, b, ev->now);
    if (b->options && budgets_left(b) > left)
        note_amount_freed(m, b);
    reschedule(m, b);
    ret_outcome->id = b->job ? b->job->row.id : CORE_ID_NONE;
    return 0;
}

/* ---- load, attach, destroy ---- */

void budgets_init(struct model *m, const struct budget_options *options, size_t n)
{
    m->queue.n_budgets = n;
    m->queue.budgets = mem_array(n, sizeof *m->queue.budgets);
    for (size_t k = 0; k < n; k++) {
        struct budget *b = &m->queue.budgets[k];
        *b = (struct budget){.options = &options[k],
            .index = (int32_t)k,
            .cap_uusd = options[k].cap_uusd,
            .at_limit = options[k].at_limit,
            .row = {.since = WALL_NONE, .until = WALL_NONE, .cap_uusd = options[k].cap_uusd}};
        STR_COPY(b->row.name, options[k].name);
        budget_about(&options[k], b->row.about);
        tree_add(&m->queue.budgets_due, &b->by_due, b, compare_due);
    }
}

void budgets_destroy_all(struct model *m)
{
    struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;) {
        LIST_FOREACH (&j->ranks, lr)
            for (struct link *l;
                 (l = list_pop(&LIST_ENTRY(lr, struct attempt, in_job)->stakes)) != NULL;)
                free(LIST_ENTRY(l, struct stake, of_attempt));
        free(job_side(j)->cap);
    }
    free(m->queue.budgets);
    free(m->queue.dormant_budgets);
}

/* The stake is counted at the first examination, which is due at once; no job starts before. */
void budgets_attach(struct model *m, struct attempt *a)
{
    uint64_t mask = a->job->shape->in_budgets;
    for (size_t k = 0; k < m->queue.n_budgets; k++)
        if ((mask >> k & 1) && budget_is_of_pool(&m->queue.budgets[k], a->node->pool))
            budget_stake_new(&m->queue.budgets[k], a);
    if (a->job->row.spec.max_uusd == 0)
        return;
    if (!job_side(a->job)->cap)
        job_make_side(a->job)->cap = cap_new(a->job);
    budget_stake_new(job_side(a->job)->cap, a);
    recount_soon(m, job_side(a->job)->cap);
}

/* ---- views for users ---- */

size_t core_budgets(const struct model *m)
{
    return m->queue.n_budgets;
}

void core_budget(const struct model *m, size_t i, struct wall now, struct budget_view *ret_view)
{
    const struct budget *b = &m->queue.budgets[i];
    struct budget_view v = {.options = b->options,
        .is_open = b->is_open,
        .is_closed = b->row.is_closed,
        .since = b->row.since,
        .until = b->row.until,
        .uusd_h = b->is_open ? b->uusd_h : 0,
        .spent_uusd = b->is_open ? b->row.booked_uusd : 0};
    int64_t most = v.spent_uusd;
    LIST_FOREACH (&b->stakes, l) {
        const struct stake *s = LIST_ENTRY(l, struct stake, in_budget);
        const struct attempt *a = s->attempt;
        v.jobs += list_first(&a->job->ranks) == &a->in_job;
        v.spent_uusd += b->is_open ? cost_by(a, now) : 0;
        most += b->is_open ? s->most_uusd : 0;
    }
    v.reserved_uusd = most > v.spent_uusd ? most - v.spent_uusd : 0;
    for (size_t k = 0; k < b->options->n_alerts; k++)
        if (is_alerted(b, k))
            v.notified_pct = b->options->alert_pct[k];
    *ret_view = v;
}

int budgets_check(const struct model *m, struct err *e)
{
    const struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;) {
        if ((job_side(j)->cap != NULL) !=
            (job_side(j)->cap && !list_is_empty(&job_side(j)->cap->stakes)))
            return err_set(
                e, ERR_INTERNAL, "job %s has a cap of its own without stakes", job_ref(&j->row).s);
        LIST_FOREACH (&j->ranks, lr) {
            const struct attempt *a = LIST_ENTRY(lr, struct attempt, in_job);
            uint64_t mask = 0, want = 0;
            LIST_FOREACH (&a->stakes, l)
                mask |= LIST_ENTRY(l, struct stake, of_attempt)->budget->job
                            ? 0
                            : 1ULL << LIST_ENTRY(l, struct stake, of_attempt)->budget->index;
            for (size_t k = 0; k < m->queue.n_budgets; k++)
                want |= budgets_of(m, j) &
                        (budget_is_of_pool(&m->queue.budgets[k], a->node->pool) ? 1ULL << k : 0);
            if (mask != want)
                return err_set(e, ERR_INTERNAL,
                    "job %s has stakes in other budgets than those that match it",
                    job_ref(&j->row).s);
        }
    }
    return 0;
}
