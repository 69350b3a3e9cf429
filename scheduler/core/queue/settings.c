/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that change while the model lives (EV_SETTINGS): those that are read where they are used,
 * and those that decide the shape and the demand class of jobs, such as the policy. For these all
 * jobs leave their shapes, the options change, and the jobs enter the queue anew, so that none is
 * in it by the former limits: O(jobs), as at a restart, and with the same result.
 *
 * Running jobs beyond a new limit continue, and no job is added, as after a restart.
 *
 * A shorter lease: agents learn of it with their next answer, and keep to the former one until
 * then. So it applies when all of them have heard of it, or are lost by the former lease.
 */
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/shares.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>

#define LEARN_LEASES 2 /* former leases after which every agent has heard of the new one */

struct mono lease_ends(const struct model *m, struct mono last_seen)
{
    struct mono end = {last_seen.ms + m->options.lease_ms};
    if (end.ms >= m->queue.former_lease_until.ms)
        return end;
    struct mono former = {last_seen.ms + m->queue.former_lease_ms};
    return former.ms < m->queue.former_lease_until.ms ? former : m->queue.former_lease_until;
}

static void set_lease(struct model *m, int64_t lease_ms, struct mono now)
{
    int64_t before_ms = m->options.lease_ms;
    bool is_learning = now.ms < m->queue.former_lease_until.ms;
    if (lease_ms == before_ms)
        return;
    m->options.lease_ms = lease_ms;
    if (is_learning && m->queue.former_lease_ms > before_ms)
        before_ms = m->queue.former_lease_ms;
    m->queue.former_lease_ms = before_ms;
    m->queue.former_lease_until.ms = before_ms > lease_ms ? now.ms + LEARN_LEASES * before_ms : 0;
}

/* ---- while no job is in a shape ---- */

static void set_policy(struct model *m, const struct queue_policy *policy)
{
    const struct queue_policy *former = model_policy(m);
    struct qos *former_qos = m->queue.qos;
    assert(policy->gpu_mcpu == former->gpu_mcpu && policy->gib_mcpu == former->gib_mcpu);
    m->queue.qos = mem_array(policy->n_qos, sizeof *m->queue.qos);
    for (size_t k = 0; k < policy->n_qos; k++) {
        const struct policy_qos *was = policy_qos(former, policy->qos[k].name);
        m->queue.qos[k] = (struct qos){.policy = &policy->qos[k],
            .index = (int32_t)k,
            .running = was ? former_qos[was - former->qos].running : 0};
    }
    free(former_qos);
    m->options.policy = policy;
    accounts_renew(m);
}

static int by_job(const void *key, const void *element)
{
    int64_t job = *(const int64_t *)key, other = ((const struct job_labels_text *)element)->job;
    return (job > other) - (job < other);
}

/* Labels of a job that is not stored yet are in the changes of this tick. */
static const char *labels_of(const struct model *m, const struct settings_tables *t, int64_t job)
{
    const struct changes *c = model_final_rows(m);
    const struct job_labels_text *l =
        t->n_labels > 0 ? bsearch(&job, t->labels, t->n_labels, sizeof *l, by_job) : NULL;
    for (size_t i = 0; !l && i < c->n_specs; i++)
        if (c->specs[i].job == job)
            return c->specs[i].labels_json;
    return l ? l->json : NULL;
}

static void set_budgets(
    struct model *m, const struct settings_tables *t, struct job *const *jobs, size_t n)
{
    if (!t->has_other_budgets) {
        budgets_move(m, t->to.budgets);
        return;
    }
    budgets_renew(m, t->to.budgets, t->to.n_budgets);
    for (size_t i = 0; i < n; i++)
        if (jobs[i]->labels)
            labels_renew(m, jobs[i], labels_of(m, t, jobs[i]->row.id));
}

/* ---- tables ---- */

static void set_tables(
    struct model *m, const struct settings_tables *t, struct job *const *jobs, size_t n)
{
    m->options.tables = t->to;
    crons_renew_calendars(m);
    set_budgets(m, t, jobs, n);
}

/* What looks at jobs in their shapes. */
static void look_again(struct model *m, const struct settings_tables *t, struct job *const *jobs,
    size_t n, struct stamp now)
{
    licences_renew(m, t->to.licences, t->to.n_licences);
    if (t->has_other_racks)
        racks_renew(m, t->to.racks, t->to.n_racks);
    else
        racks_move(m, t->to.racks);
    if (t->has_other_budgets)
        budgets_rejoin_all(m);
    for (size_t i = 0; i < n; i++) {
        notify_watch(m, jobs[i]);
        dependencies_renew_window(m, jobs[i], now.wall);
    }
}

static void renew_queue(struct model *m, const struct model_settings *s, struct stamp now)
{
    int64_t *ids;
    size_t n = model_jobs_between(m, 1, INT64_MAX, &ids);
    bool *is_queued = mem_array(n, sizeof *is_queued);
    struct job **jobs = mem_array(n, sizeof(struct job *));
    for (size_t i = 0; i < n; i++) {
        jobs[i] = model_job(m, ids[i]);
        is_queued[i] = tree_has(&jobs[i]->in_shape);
        queue_disown(m, jobs[i]);
    }
    if (s->policy)
        set_policy(m, s->policy);
    if (s->tables)
        set_tables(m, s->tables, jobs, n);
    for (size_t i = 0; i < n; i++) {
        queue_adopt(m, jobs[i]);
        if (is_queued[i])
            queue_add(m, jobs[i]);
    }
    if (s->tables)
        look_again(m, s->tables, jobs, n, now);
    free(jobs);
    free(is_queued);
    free(ids);
    model_note_rewind(m);
    model_note_retry_all(m);
    model_note_reserve(m);
    model_note_change(m);
}

int apply_settings(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct model_settings *s = ev->settings;
    int rc = core_check_settings(m, s, e);
    if (rc != 0)
        return rc;
    m->options.no_progress_max = s->no_progress_max;
    m->options.node_failures = s->node_failures;
    m->options.retention_ms = s->retention_ms;
    m->options.retries = s->retries;
    m->options.store_wait_ms = s->store_wait_ms;
    set_lease(m, s->lease_ms, ev->now.mono);
    if (s->policy || s->tables)
        renew_queue(m, s, ev->now);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}
