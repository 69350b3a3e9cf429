/* SPDX-License-Identifier: Apache-2.0
 *
 * What limits of users and teams (limits.c) and budgets (budgets.c) leave during the computation of
 * launches: a hundred thousand jobs of a user who may run ten count as ten. The cost of a job is
 * not known yet: it is that on the cheapest machine that could be launched for it. Running jobs
 * that only move are not limited.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/supply/offers.h"
#include <string.h>

static int64_t *left_of(const struct work *w, const struct allowance *of)
{
    return &w->p->headroom[of->index * LIMIT_KINDS];
}

static void compute_left(struct work *w, const struct allowance *of)
{
    int64_t *left = left_of(w, of);
    for (int k = 0; k < LIMIT_KINDS; k++)
        left[k] = of->max[k] == LIMIT_NONE   ? INT64_MAX
                  : of->max[k] > of->used[k] ? of->max[k] - of->used[k]
                                             : 0;
}

void headroom_compute(struct work *w)
{
    for (size_t k = 0; k < budgets_count(w->m); k++)
        w->p->budget_left[k] = budgets_left(budgets_at(w->m, k));
    if (limits_n_limited(w->m) == 0)
        return;
    w->p->headroom = mem_resize(
        w->p->headroom, (size_t)limits_n_allowances(w->m) * LIMIT_KINDS, sizeof *w->p->headroom);
    LIST_FOREACH (share_teams(w->m), lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        compute_left(w, &t->allowance);
        LIST_FOREACH (&t->accounts, la)
            compute_left(w, &LIST_ENTRY(la, struct account, in_team)->allowance);
    }
}

static bool is_limited(const struct work *w, const struct shape *s)
{
    return limits_n_limited(w->m) > 0 &&
           (s->account->allowance.is_limited || s->account->team->allowance.is_limited);
}

static int64_t times(int64_t left, int64_t each, int64_t n)
{
    return each == 0 || left / each > n ? n : left / each;
}

/* What one job on this many nodes uses. */
struct headroom {
    int64_t gpus, uusd_h, mcpu;
    int64_t input_uusd;      /* their part of reading its input */
    const struct pool *pool; /* of that machine; NULL if there is none */
};

/* One node of the shape on the cheapest machine that could be launched now; without one its need at
 * no cost. Independent of what is planned, so that a recount half-way gives the same result. */
static struct headroom cheapest(struct work *w, const struct shape *s)
{
    const struct capacity any = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct headroom least = {.gpus = s->need.gpus, .mcpu = s->mcpu};
    LIST_FOREACH (model_pools(w->m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            if (mono_is_set(o->row.avoid_until) && o->row.avoid_until.ms > w->now.mono.ms)
                limit_validity(w, o->row.avoid_until.ms); /* it may be the cheapest then */
            if (!pool_serves(p, s) || !offer_may_serve(o, s, &any, &any, w->now) ||
                !limits_allow(s, p, &total, o->row.price_uusd_h))
                continue;
            const struct resources *takes = shape_takes(s, &total);
            int64_t uusd_h = resources_share(takes, &total, o->row.price_uusd_h);
            if (least.uusd_h == 0 || uusd_h < least.uusd_h)
                least = (struct headroom){.gpus = takes->gpus,
                    .uusd_h = uusd_h,
                    .mcpu = priority_mcpu(s->policy, takes),
                    .pool = p};
        }
    }
    return least;
}

static struct headroom headroom_of(struct work *w, const struct shape *s, int64_t nodes)
{
    bool pays = s->account->allowance.max[LIMIT_UUSD_H] != LIMIT_NONE ||
                s->account->team->allowance.max[LIMIT_UUSD_H] != LIMIT_NONE;
    struct headroom one = {.gpus = s->need.gpus, .mcpu = s->mcpu};
    if (pays || shape_is_exclusive(s) || s->in_budgets)
        one = cheapest(w, s);
    return (struct headroom){.gpus = nodes * one.gpus,
        .uusd_h = nodes * one.uusd_h,
        .mcpu = nodes * one.mcpu,
        .pool = one.pool,
        .input_uusd = one.pool ? pool_input_uusd(one.pool, s->constraints) / s->nodes * nodes : 0};
}

static int64_t jobs_of(
    const struct work *w, const struct allowance *of, const struct headroom *each, int64_t n)
{
    const int64_t *left = left_of(w, of);
    n = times(left[LIMIT_RUNNING], 1, n);
    n = times(left[LIMIT_GPUS], each->gpus, n);
    n = times(left[LIMIT_MCPU], each->mcpu, n);
    return times(left[LIMIT_UUSD_H], each->uusd_h, n);
}

/* What one job uses of the k-th budget; 0 if the job does not match it. */
static int64_t budget_use_of_job(
    const struct work *w, const struct shape *s, const struct headroom *each, size_t k)
{
    const struct budget *b = budgets_at(w->m, k);
    bool is_its = each->pool && (s->in_budgets >> k & 1) && w->p->budget_left[k] != INT64_MAX &&
                  (!b->options->pool[0] || strcmp(b->options->pool, each->pool->row.name) == 0);
    return is_its ? budgets_needs(b, s, each->uusd_h, each->input_uusd) : 0;
}

static int64_t in_budgets(
    const struct work *w, const struct shape *s, const struct headroom *each, int64_t n)
{
    for (size_t k = 0; s->in_budgets && k < budgets_count(w->m); k++)
        n = times(w->p->budget_left[k], budget_use_of_job(w, s, each, k), n);
    return n;
}

int64_t headroom_jobs(struct work *w, const struct shape *s, int64_t n)
{
    if (!is_limited(w, s) && !s->in_budgets)
        return n;
    const struct headroom each = headroom_of(w, s, 1);
    n = in_budgets(w, s, &each, n);
    if (!is_limited(w, s))
        return n;
    n = jobs_of(w, &s->account->allowance, &each, n);
    return jobs_of(w, &s->account->team->allowance, &each, n);
}

static int64_t nodes_of(
    const struct work *w, const struct allowance *of, const struct headroom *each, int64_t n)
{
    const int64_t *left = left_of(w, of);
    n = left[LIMIT_RUNNING] > 0 ? times(left[LIMIT_GPUS], each->gpus, n) : 0;
    n = times(left[LIMIT_MCPU], each->mcpu, n);
    return times(left[LIMIT_UUSD_H], each->uusd_h, n);
}

int32_t headroom_nodes(struct work *w, const struct shape *s, int32_t n)
{
    if (!is_limited(w, s) && !s->in_budgets)
        return n;
    const struct headroom each = headroom_of(w, s, 1);
    n = (int32_t)in_budgets(w, s, &each, n);
    if (!is_limited(w, s))
        return n;
    n = (int32_t)nodes_of(w, &s->account->allowance, &each, n);
    return (int32_t)nodes_of(w, &s->account->team->allowance, &each, n);
}

static void subtract_from(int64_t *left, int64_t n)
{
    if (*left != INT64_MAX)
        *left -= n < *left ? n : *left;
}

void headroom_take(struct work *w, const struct shape *s, int64_t jobs, int64_t nodes)
{
    if (!is_limited(w, s) && !s->in_budgets)
        return;
    const struct allowance *const of[] = {&s->account->allowance, &s->account->team->allowance};
    const struct headroom each = headroom_of(w, s, nodes);
    for (size_t k = 0; s->in_budgets && k < budgets_count(w->m); k++)
        subtract_from(&w->p->budget_left[k], jobs * budget_use_of_job(w, s, &each, k));
    for (size_t k = 0; is_limited(w, s) && k < sizeof of / sizeof of[0]; k++) {
        int64_t *left = left_of(w, of[k]);
        subtract_from(&left[LIMIT_RUNNING], jobs);
        subtract_from(&left[LIMIT_GPUS], jobs * each.gpus);
        subtract_from(&left[LIMIT_UUSD_H], jobs * each.uusd_h);
        subtract_from(&left[LIMIT_MCPU], jobs * each.mcpu);
    }
}
