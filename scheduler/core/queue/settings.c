/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that change while the model lives (EV_SETTINGS): those that are read where they are used,
 * and the policy, which decides the shape and the demand class of every job. All jobs leave their
 * shapes before the policy changes and enter the queue anew, so that none is in it by the former
 * limits: O(jobs), as at a restart, and with the same result.
 *
 * Running jobs beyond a new limit continue, and no job is added, as after a restart.
 */
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>

static void set_policy(struct model *m, const struct queue_policy *policy)
{
    const struct queue_policy *former = model_policy(m);
    int64_t *ids;
    size_t n = model_jobs_between(m, 1, INT64_MAX, &ids);
    bool *is_queued = mem_array(n, sizeof *is_queued);
    assert(policy->n_qos == former->n_qos);
    assert(policy->gpu_mcpu == former->gpu_mcpu && policy->gib_mcpu == former->gib_mcpu);
    for (size_t i = 0; i < n; i++) {
        struct job *j = model_job(m, ids[i]);
        is_queued[i] = tree_has(&j->in_shape);
        queue_disown(m, j);
    }
    m->options.policy = policy;
    for (size_t k = 0; k < policy->n_qos; k++)
        m->queue.qos[k].policy = &policy->qos[k];
    accounts_renew(m);
    for (size_t i = 0; i < n; i++) {
        struct job *j = model_job(m, ids[i]);
        queue_adopt(m, j);
        if (is_queued[i])
            queue_add(m, j);
    }
    free(is_queued);
    free(ids);
    model_note_rewind(m);
    model_note_retry_all(m);
}

int apply_settings(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct model_settings *s = ev->settings;
    (void)e;
    m->options.no_progress_max = s->no_progress_max;
    m->options.node_failures = s->node_failures;
    m->options.retention_ms = s->retention_ms;
    m->options.retries = s->retries;
    if (s->policy)
        set_policy(m, s->policy);
    ret_outcome->id = CORE_ID_NONE;
    return 0;
}
