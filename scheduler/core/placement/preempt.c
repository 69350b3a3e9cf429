/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of teams: capacity that a team gets on demand. Unused quota is borrowed by others; when
 * the team needs it, borrowing jobs are saved and stopped.
 *
 * A job is within the quota while its team, including it, uses no more than its quota. Exclusive
 * jobs never are: their usage is unknown before placement, and their nodes would have to be
 * emptied. Jobs within the quota are placed first where they fit. Where none fits and no machine
 * can be launched, a decision makes a place: it names nodes, which are claimed from then on
 * (reserve.c), and the victims (preemption_victims.c), which are asked to save and stop. They are
 * requeued at their old position and resume.
 *
 * Places are made in the same way for jobs of a preempting QOS, wherever they could start after
 * stopping jobs of a QOS that it preempts.
 *
 * A preempted job was beyond its team's quota, so it cannot preempt in turn, and no QOS preempts
 * itself through others. QOS never preempts usage within a quota. So there are no preemption
 * cycles.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include <inttypes.h>
#include <stdlib.h>

#define EXAMINED_MAX 16 /* examined demand classes of a team, or shapes of a QOS */

static bool fits_quota(const struct shape *s)
{
    const struct team *t = s->account->team;
    return t->quota_mcpu > 0 && !shape_is_exclusive(s) &&
           t->allowance.used[LIMIT_MCPU] + t->claimed_mcpu + s->least * s->mcpu <= t->quota_mcpu;
}

bool team_may_be_owed(const struct team *t)
{
    return t->claimed_mcpu > 0 || t->allowance.used[LIMIT_MCPU] < t->quota_mcpu;
}

bool quota_owes(const struct shape *s)
{
    return s->claims > 0 || fits_quota(s);
}

bool qos_preempts(const struct qos *q)
{
    return q && bits_next(&q->policy->preempts, 0) < q->policy->preempts.n;
}

bool shape_preempts(const struct shape *s, const struct shape *other)
{
    return s->qos && other->qos && bits_has(&s->qos->policy->preempts, other->qos->index);
}

/* Usage of its jobs beyond its quota, in mcpu; at least 0. */
static int64_t quota_borrowed(const struct team *t)
{
    return t->allowance.used[LIMIT_MCPU] > t->quota_mcpu
               ? t->allowance.used[LIMIT_MCPU] - t->quota_mcpu
               : 0;
}

/* ---- decisions ---- */

static bool any_team_borrows(const struct model *m)
{
    LIST_FOREACH (share_teams(m), l)
        if (quota_borrowed(LIST_ENTRY(l, struct team, in_all)) > 0)
            return true;
    return false;
}

static bool launches_suffice(const struct model *m, const struct shape *s, struct stamp now)
{
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        if (shape_allows_pool(s, pool) && reserve_to_come(m, s, pool, now) >= s->least)
            return true;
    }
    return false;
}

/* Exclusive jobs wait until nodes are empty. */
static bool may_preempt_by_qos(const struct shape *s)
{
    return qos_preempts(s->qos) && !shape_is_exclusive(s);
}

static bool wants_place(const struct model *m, const struct shape *s, bool by_qos, struct stamp now)
{
    enum limit_kind kind;
    int64_t most = s->nodes > 1 ? 1 : s->n_wanted;
    return (by_qos ? may_preempt_by_qos(s) : fits_quota(s)) && s->claims < most &&
           !limits_exceeded(m, s, s->least, &kind) && !licences_lack(m, s->constraints) &&
           !launches_suffice(m, s, now);
}

static bool preempt_for(struct planner *p, const struct model *m, const struct shape *s,
    bool by_qos, struct stamp now, struct event *ret_event)
{
    if (!wants_place(m, s, by_qos, now) || !preemption_victims_choose(p, m, s, by_qos, now))
        return false;
    if (p->n_victims > p->evict_max) /* avoids further reallocations for the same request */
        p->evict = mem_resize(p->evict, p->evict_max = 2 * p->n_victims, sizeof *p->evict);
    for (size_t k = 0; k < p->n_victims; k++)
        p->evict[k] = p->victims[k].job->row.id;
    *ret_event = (struct event){.type = EV_PREEMPT,
        .preempt = {.job = s->head,
            .nodes = p->claim,
            .n_nodes = (size_t)s->least,
            .victims = p->evict,
            .n_victims = p->n_victims,
            .by_qos = by_qos}};
    return true;
}

/* For the first shape of the class that may run; shapes that exceed a limit are throttled. A gang
 * may be about to settle for less instead. */
static bool preempt_for_class(struct planner *p, const struct model *m,
    const struct demand_class *k, struct stamp now, struct event *ret_event)
{
    enum limit_kind kind;
    const struct shape *s = k->first;
    for (int examined = 0; s && limits_exceeded(m, s, s->least, &kind);
         s = queue_next_in_class(s)) {
        if (!link_is_in(&job_side(model_job(m, s->head))->gang_resizes)) {
            *ret_event = (struct event){.type = EV_THROTTLE, .throttle.job = s->head};
            return true;
        }
        if (++examined == EXAMINED_MAX)
            return false;
    }
    return s && preempt_for(p, m, s, false, now, ret_event);
}

static bool next_owed(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    if (list_is_empty(quota_teams(m)) || !any_team_borrows(m))
        return false;
    LIST_FOREACH (quota_teams(m), l) {
        const struct team *t = LIST_ENTRY(l, struct team, in_quotas);
        int examined = 0;
        const struct demand_class *first = team_may_be_owed(t) ? queue_first_of(t) : NULL;
        for (const struct demand_class *k = first; k && examined < EXAMINED_MAX;
             k = queue_next_of(k)) {
            if (!fits_quota(k->first))
                continue;
            if (preempt_for_class(p, m, k, now, ret_event))
                return true;
            examined += k->first->claims == 0; /* else the class may have all its places already */
        }
    }
    return false;
}

/* True if jobs of a QOS that it preempts are running. */
static bool may_preempt(const struct model *m, const struct qos *q)
{
    const struct bits *b = &q->policy->preempts;
    for (int32_t i = bits_next(b, 0); i < b->n; i = bits_next(b, i + 1))
        if (qos_at(m, i)->running > 0)
            return true;
    return false;
}

static bool next_preempting(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    for (size_t k = 0; k < model_policy(m)->n_qos; k++) {
        const struct qos *q = qos_at(m, k);
        int examined = 0;
        if (q->queue.n == 0 || !may_preempt(m, q))
            continue;
        for (const struct shape *s = queue_first_of_qos(q); s && examined < EXAMINED_MAX;
             s = queue_next_of_qos(s), examined++)
            if (preempt_for(p, m, s, true, now, ret_event))
                return true;
    }
    return false;
}

bool preempt_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    bool expired = mono_is_set(p->preempt_until) && p->preempt_until.ms <= now.mono.ms;
    if (p->preempt_change == model_versions(m)->change &&
        p->preempt_launches == model_versions(m)->launches && !expired)
        return false;
    p->preempt_change = -1;
    p->preempt_until = MONO_NONE;
    if (next_owed(p, m, now, ret_event) || next_preempting(p, m, now, ret_event))
        return true;
    p->preempt_change = model_versions(m)->change;
    /* a launch planned for one job may have served another */
    p->preempt_launches = model_versions(m)->launches;
    return false;
}

void preempt_deinit(struct planner *p)
{
    free(p->over);
    free(p->victims);
    free(p->offered);
    free(p->clearable);
    free(p->evict);
}

static bool is_preemption_legal(
    const struct model *m, const struct event *ev, const struct shape *s)
{
    bool by_qos = ev->preempt.by_qos,
         may = ev->preempt.n_nodes == (size_t)s->least && wants_place(m, s, by_qos, ev->now) &&
               reserve_may_take(m, s, ev->preempt.nodes, ev->preempt.n_nodes);
    for (size_t k = 0; may && k < ev->preempt.n_victims; k++) {
        const struct job *j = model_job(m, ev->preempt.victims[k]);
        may = j && j->row.state == JOB_RUNNING &&
              (by_qos ? shape_preempts(s, j->shape) : quota_borrowed(j->account->team) > 0);
    }
    return may;
}

static void evict(
    struct model *m, struct job *j, const struct shape *by, bool by_qos, struct stamp now)
{
    const struct attempt *a = job_attempt(j);
    job_stop(m, j, END_EVICTED, true);
    j->row.evicted_at = now.wall;
    touch_job(m, j);
    if (by_qos)
        history(m, now, "preempt", (struct history_of){.attempt = a},
            "QOS %s preempts QOS %s: this job's place is for job %s; "
            "this job continues elsewhere or later",
            by->qos->policy->name, j->row.spec.qos, job_ref_of(m, by->head).s);
    else
        history(m, now, "reclaim", (struct history_of){.attempt = a},
            "team %s claims its quota: this job's place is for job %s; "
            "this job continues elsewhere or later",
            by->account->team->name, job_ref_of(m, by->head).s);
}

int apply_preempt(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = model_job(m, ev->preempt.job);
    struct shape *s = j && tree_has(&j->in_shape) && !j->shape->throttled_by ? j->shape : NULL;
    if (!s || s->head != ev->preempt.job || !is_preemption_legal(m, ev, s))
        return err_set(e, ERR_CONFLICT, "no place can be made for job %" PRId64 " there (any more)",
            ev->preempt.job);
    if (s->claims == 0) {
        reserve_drop(m, s);
        if (ev->preempt.by_qos)
            limits_owed_now(m, s);
    }
    for (size_t k = 0; k < ev->preempt.n_victims; k++)
        evict(m, model_job(m, ev->preempt.victims[k]), s, ev->preempt.by_qos, ev->now);
    for (size_t k = 0; k < ev->preempt.n_nodes; k++)
        reserve_claim(m, s, model_node(m, ev->preempt.nodes[k]));
    reserve_claimed(m, s);
    ret_outcome->id = ev->preempt.job;
    return 0;
}
