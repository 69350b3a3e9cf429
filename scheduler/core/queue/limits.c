/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of users and teams: jobs that have not ended, running jobs, their GPUs, and their hourly
 * cost. A job counts for its user in its team and for the team.
 *
 * Invariants.
 *  1. No placement exceeds a limit. Only a restart with lower limits or rising prices make running
 *     jobs exceed one; they continue, and no job is added.
 *  2. A shape that would exceed a limit on any node is throttled, by a decision, when the planner
 *     reaches it: it is not in the queue, has no launches or reservations, and is not examined
 * until the exceeded usage falls. Then the first UNTHROTTLE_MAX shapes that may run return to the
 *     queue, and more after these were tried. The cost of a job's end is thus independent of the
 *     number of throttled shapes.
 *  3. The cost of a job depends on its node, as do the resources of an exclusive job. A shape that
 *     can afford some nodes stays in the queue, and other nodes are excluded for it. On machines
 *     without cost it runs regardless of the cost of others.
 */
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"

#include <inttypes.h>

#define UNTHROTTLE_MAX 16

static bool is_limited(const struct allowance *w, enum limit_kind kind)
{
    return w->max[kind] != LIMIT_NONE;
}

/* No job may be added, except perhaps ones without cost. */
static bool is_used_up(const struct allowance *w)
{
    return w->used[LIMIT_RUNNING] >= w->max[LIMIT_RUNNING] ||
           w->used[LIMIT_UUSD_H] >= w->max[LIMIT_UUSD_H];
}

void allowance_init_hypothetical(
    const struct model *m, struct allowance *w, const char *team, const char *user)
{
    for (int k = 0; k < LIMIT_KINDS; k++) {
        w->max[k] = policy_limit(model_policy(m), team, user, (enum limit_kind)k);
        w->is_limited |= k != LIMIT_SUBMITTED && is_limited(w, (enum limit_kind)k);
    }
    w->was_used_up = is_used_up(w);
}

void allowance_init(struct model *m, struct allowance *w, const char *team, const char *user)
{
    w->index = m->queue.n_allowances++;
    allowance_init_hypothetical(m, w, team, user);
    m->queue.n_limited += w->is_limited;
}

void allowance_renew(struct model *m, struct allowance *w, const char *team, const char *user)
{
    m->queue.n_limited -= w->is_limited;
    w->is_limited = false;
    allowance_init_hypothetical(m, w, team, user);
    m->queue.n_limited += w->is_limited;
}

/* ---- submits ---- */

int64_t job_submitted(const struct job *j)
{
    return j->array ? array_left(j->array) : 1;
}

void limits_submitted(struct account *a, int64_t n)
{
    a->allowance.used[LIMIT_SUBMITTED] += n;
    a->team->allowance.used[LIMIT_SUBMITTED] += n;
}

static int check_submit(
    const struct allowance *w, const char *whose, const char *name, int64_t n, struct err *e)
{
    int64_t most = w->max[LIMIT_SUBMITTED], used = w->used[LIMIT_SUBMITTED];
    if (most == LIMIT_NONE || n <= most - used)
        return 0;
    return err_set(e, ERR_CONFLICT,
        "%s%s may have %" PRId64 " jobs that have not ended (max_submitted) and has %" PRId64
        "; this would be %" PRId64
        " more: wait for some to end, cancel some, or raise the limit in belayd's configuration",
        whose, name, most, used, n);
}

int limits_check_submit(const struct account *a, int64_t n, struct err *e)
{
    int rc = check_submit(&a->allowance, "", a->row.user, n, e);
    return rc ? rc : check_submit(&a->team->allowance, "team ", a->team->name, n, e);
}

/* ---- throttling ---- */

static bool has_free_machine(const struct model *m, const struct shape *s)
{
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!shape_allows_pool(s, p))
            continue;
        if (!p->row.elastic && p->row.usd_per_hour_uusd == 0)
            return true;
        LIST_FOREACH (&p->offers, lo)
            if (LIST_ENTRY(lo, struct offer, in_pool)->row.price_uusd_h == 0)
                return true;
    }
    return false;
}

static bool allowance_stops(const struct model *m, const struct allowance *w, const struct shape *s,
    int32_t nodes, enum limit_kind kind)
{
    int64_t gpus = (int64_t)nodes * s->need.gpus;
    switch (kind) {
    case LIMIT_RUNNING:
        return w->used[kind] >= w->max[kind];
    case LIMIT_GPUS:
        return gpus > 0 && gpus > w->max[kind] - w->used[kind];
    case LIMIT_UUSD_H:
        return w->used[kind] >= w->max[kind] && !has_free_machine(m, s);
    case LIMIT_MCPU:
        return nodes * s->mcpu > w->max[kind] - w->used[kind];
    case LIMIT_SUBMITTED:
    case LIMIT_KINDS:
        break;
    }
    return false;
}

bool limits_stop(
    const struct model *m, const struct allowance *w, const struct shape *s, enum limit_kind kind)
{
    return allowance_stops(m, w, s, s->least, kind);
}

static bool exceeds(const struct model *m, const struct allowance *w, const struct shape *s,
    int32_t nodes, enum limit_kind *ret_kind)
{
    if (!w->is_limited)
        return false;
    for (int kind = 0; kind < LIMIT_SUBMITTED; kind++) {
        *ret_kind = (enum limit_kind)kind;
        if (allowance_stops(m, w, s, nodes, *ret_kind))
            return true;
    }
    return false;
}

bool limits_used_up(const struct model *m, const struct shape *s)
{
    if (m->queue.n_limited == 0)
        return false;
    const struct allowance *const of[] = {&s->account->allowance, &s->account->team->allowance};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        if (of[k]->was_used_up && (allowance_stops(m, of[k], s, s->least, LIMIT_RUNNING) ||
                                      allowance_stops(m, of[k], s, s->least, LIMIT_UUSD_H)))
            return true;
    return false;
}

struct allowance *limits_exceeded(
    const struct model *m, const struct shape *s, int32_t nodes, enum limit_kind *ret_kind)
{
    if (exceeds(m, &s->account->allowance, s, nodes, ret_kind))
        return &s->account->allowance;
    return exceeds(m, &s->account->team->allowance, s, nodes, ret_kind)
               ? &s->account->team->allowance
               : NULL;
}

/* What one placement would add. */
struct load {
    int64_t uusd_h, gpus, mcpu;
};

static void add_load(
    struct load *sum, const struct shape *s, const struct resources *total, int64_t uusd_h)
{
    const struct resources *takes = shape_takes(s, total);
    sum->uusd_h += resources_share(takes, total, uusd_h);
    sum->gpus += takes->gpus;
    sum->mcpu += priority_mcpu(s->policy, takes);
}

static bool has_left(const struct allowance *w, enum limit_kind kind, int64_t each, int32_t times)
{
    return each == 0 || !is_limited(w, kind) || each <= (w->max[kind] - w->used[kind]) / times;
}

/* Whether this load fits `times` times. GPUs and cpus of non-exclusive shapes do not depend on the
 * node and were checked before (allowance_stops). */
static bool allowance_affords(
    const struct allowance *w, const struct shape *s, const struct load *each, int32_t times)
{
    return has_left(w, LIMIT_UUSD_H, each->uusd_h, times) &&
           (!shape_is_exclusive(s) || (has_left(w, LIMIT_GPUS, each->gpus, times) &&
                                          has_left(w, LIMIT_MCPU, each->mcpu, times)));
}

bool limits_afford(const struct shape *s, const struct resources *total, int64_t uusd_h)
{
    const struct account *a = s->account;
    struct load each = {0};
    if (!a->allowance.is_limited && !a->team->allowance.is_limited)
        return true;
    add_load(&each, s, total, uusd_h);
    return allowance_affords(&a->allowance, s, &each, s->least) &&
           allowance_affords(&a->team->allowance, s, &each, s->least);
}

bool limits_allow(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h)
{
    return (!shape_pays(s) ||
               budgets_afford(
                   s, p, s->least * resources_share(shape_takes(s, total), total, uusd_h))) &&
           limits_afford(s, total, uusd_h);
}

int32_t limits_count_allowed(
    const struct model *m, const struct shape *s, const int64_t *nodes, int32_t n)
{
    const struct account *a = s->account;
    enum limit_kind kind;
    struct load sum = {0};
    for (int32_t k = 0; k < n; k++) {
        const struct node *node = model_node(m, nodes[k]);
        add_load(&sum, s, &node->row.total, node->row.price_uusd_h);
        if (limits_exceeded(m, s, k + 1, &kind) || !allowance_affords(&a->allowance, s, &sum, 1) ||
            !allowance_affords(&a->team->allowance, s, &sum, 1) ||
            (shape_pays(s) && !budgets_afford(s, node->pool, sum.uusd_h)))
            return k;
    }
    return n;
}

/* ---- usage ---- */

static void count_qos(const struct job *j, int64_t more)
{
    if (j->shape->qos)
        j->shape->qos->running += more;
}

static void count(struct account *a, enum limit_kind kind, int64_t more)
{
    a->allowance.used[kind] += more;
    a->team->allowance.used[kind] += more;
}

static bool reservation_is_affordable(const struct model *m, const struct shape *s)
{
    enum limit_kind kind;
    if (limits_exceeded(m, s, s->least, &kind))
        return false;
    LIST_FOREACH (&s->reserved, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_reserved);
        if (!limits_allow(s, n->pool, &n->row.total, n->row.price_uusd_h))
            return false;
    }
    return true;
}

static void retry_all_classes(struct model *m)
{
    model_note_rewind(m);
    model_note_retry_all(m);
}

static void note_used_up(struct model *m, struct allowance *w)
{
    bool used_up = is_used_up(w);
    if (used_up && !w->was_used_up)
        retry_all_classes(m); /* also jobs that did not fit must be throttled */
    w->was_used_up = used_up;
}

/* Drops reservations for jobs that may not run there any more. */
static void usage_rose(struct model *m, struct account *a)
{
    if (!a->allowance.is_limited && !a->team->allowance.is_limited)
        return;
    note_used_up(m, &a->allowance);
    note_used_up(m, &a->team->allowance);
    LIST_FOREACH (reserve_shapes(m), l) {
        struct shape *s = LIST_ENTRY(l, struct shape, by_reserve);
        if (s->account->team == a->team && !reservation_is_affordable(m, s))
            reserve_drop(m, s);
    }
}

static void unthrottle(struct model *m, struct allowance *w)
{
    enum limit_kind kind;
    int taken = 0;
    link_remove(&w->may_return);
    if (w->used[LIMIT_RUNNING] >= w->max[LIMIT_RUNNING])
        return;
    for (struct shape *s = queue_first_throttled(w), *next; s; s = next) {
        next = queue_next_throttled(s);
        if (exceeds(m, w, s, s->least, &kind))
            continue;
        if (taken++ == UNTHROTTLE_MAX) {
            list_push_back(&m->queue.may_return, &w->may_return);
            return;
        }
        queue_unthrottle(m, s);
    }
}

/* Jobs that did not fit because of their cost, or because an exclusive job would take too large a
 * node, may fit now although no node's free resources grew. */
static void usage_fell(struct model *m, struct allowance *w, bool costs_less)
{
    w->was_used_up = is_used_up(w);
    bool has_more =
        m->queue.n_exclusive > 0 && (is_limited(w, LIMIT_GPUS) || is_limited(w, LIMIT_MCPU));
    if (has_more || (costs_less && is_limited(w, LIMIT_UUSD_H))) {
        w->freed_version = model_note_growth(m);
        retry_all_classes(m);
    }
    if (w->is_limited)
        unthrottle(m, w);
}

void limits_less_owed(struct model *m, struct team *t)
{
    if (t->quota_mcpu == 0)
        return;
    LIST_FOREACH (reserve_shapes(m), l) {
        const struct shape *s = LIST_ENTRY(l, struct shape, by_reserve);
        if (s->account->team != t || s->claims > 0)
            continue;
        LIST_FOREACH (&s->reserved, ln)
            reserve_may_yield(m, LIST_ENTRY(ln, struct node, in_reserved));
    }
}

void limits_more_owed(struct model *m, struct team *t)
{
    if (t->allowance.used[LIMIT_MCPU] + t->claimed_mcpu >= t->quota_mcpu ||
        list_is_empty(reserve_shapes(m)))
        return;
    t->allowance.freed_version = model_note_owed(m);
    model_note_rewind(m);
}

void limits_owed_now(struct model *m, const struct shape *s)
{
    s->account->allowance.freed_version = model_note_owed(m);
    model_note_rewind(m);
}

void limits_take(struct model *m, struct attempt *a)
{
    const struct job *j = a->job;
    bool is_first = list_first(&j->ranks) == list_last(&j->ranks);
    a->uusd_h = resources_share(&a->allocated, &a->node->row.total, a->node->row.price_uusd_h);
    count(j->account, LIMIT_RUNNING, is_first);
    count_qos(j, is_first);
    count(j->account, LIMIT_GPUS, a->allocated.gpus);
    count(j->account, LIMIT_UUSD_H, a->uusd_h);
    count(j->account, LIMIT_MCPU, attempt_mcpu(a));
    usage_rose(m, j->account);
    limits_less_owed(m, j->account->team);
}

void limits_give(struct model *m, struct attempt *a)
{
    const struct job *j = a->job;
    count(j->account, LIMIT_RUNNING, list_is_empty(&j->ranks) ? -1 : 0);
    count_qos(j, list_is_empty(&j->ranks) ? -1 : 0);
    count(j->account, LIMIT_GPUS, -a->allocated.gpus);
    count(j->account, LIMIT_UUSD_H, -a->uusd_h);
    count(j->account, LIMIT_MCPU, -attempt_mcpu(a));
    limits_more_owed(m, j->account->team);
    usage_fell(m, &j->account->allowance, a->uusd_h > 0);
    usage_fell(m, &j->account->team->allowance, a->uusd_h > 0);
}

void limits_repriced(struct model *m, struct node *n)
{
    if (m->queue.n_limited > 0 || m->queue.n_paying > 0)
        node_refresh(m, n, true); /* jobs that could not afford it may now */
    LIST_FOREACH (&n->attempts, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        int64_t before = a->uusd_h;
        a->uusd_h = resources_share(&a->allocated, &n->row.total, n->row.price_uusd_h);
        count(a->job->account, LIMIT_UUSD_H, a->uusd_h - before);
        if (a->uusd_h != before)
            budgets_repriced(m, a);
        if (a->uusd_h > before) {
            usage_rose(m, a->job->account);
        } else if (a->uusd_h < before) {
            usage_fell(m, &a->job->account->allowance, true);
            usage_fell(m, &a->job->account->team->allowance, true);
        }
    }
}

void limits_recheck_costs(struct model *m)
{
    if (m->queue.n_limited == 0)
        return;
    LIST_FOREACH (&m->queue.all_teams, lt) {
        struct team *t = LIST_ENTRY(lt, struct team, in_all);
        usage_fell(m, &t->allowance, true);
        LIST_FOREACH (&t->accounts, la)
            usage_fell(m, &LIST_ENTRY(la, struct account, in_team)->allowance, true);
    }
}

/* ---- decisions ---- */

int64_t limits_next_unthrottled(const struct model *m)
{
    LIST_FOREACH (&m->queue.may_return, l) {
        const struct shape *s = queue_first_throttled(LIST_ENTRY(l, struct allowance, may_return));
        if (s)
            return s->head;
    }
    return CORE_ID_NONE;
}

int apply_throttle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = model_job(m, ev->throttle.job);
    struct shape *s = j && tree_has(&j->in_shape) ? j->shape : NULL;
    enum limit_kind kind;
    struct allowance *w = s && !s->throttled_by ? limits_exceeded(m, s, s->least, &kind) : NULL;
    if (!w)
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " does not exceed a limit (any more)",
            ev->throttle.job);
    queue_throttle(m, s, w);
    ret_outcome->id = j->row.id;
    return 0;
}

int apply_unthrottle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = model_job(m, ev->unthrottle.job);
    struct allowance *w = j && tree_has(&j->in_shape) ? j->shape->throttled_by : NULL;
    if (!w || !link_is_in(&w->may_return))
        return err_set(e, ERR_CONFLICT, "job %" PRId64 " does not wait for a limit (any more)",
            ev->unthrottle.job);
    unthrottle(m, w);
    ret_outcome->id = j->row.id;
    return 0;
}
