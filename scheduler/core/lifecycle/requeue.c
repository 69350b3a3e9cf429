/* SPDX-License-Identifier: Apache-2.0
 *
 * See requeue.h. The only way from a run back to the queue: the lost work is counted, and a job
 * that would only fail again is held.
 */
#include "scheduler/core/lifecycle/requeue.h"

#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/lifecycle/retry_rules.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/windows.h"

#include <inttypes.h>

/* Work that the next attempt repeats, in the program's own steps if it reports them. */
static void count_lost_work(struct job_row *j, int64_t lost_ms)
{
    int64_t base = j->last_good.attempt ? j->last_good_progress : 0;
    no_progress_kept(j);
    j->lost_ms += lost_ms;
    if (j->progress != PROGRESS_NONE && base != PROGRESS_NONE && j->progress > base)
        j->lost_steps += j->progress - base;
    j->progress = j->last_good.attempt ? j->last_good_progress : PROGRESS_NONE;
}

/* Another attempt would meet the same store, or start from scratch: a user must act first. */
static void hold_for_store(struct model *m, struct job *j, struct stamp now)
{
    if (j->row.end != END_STORE || j->row.hold != HOLD_NONE)
        return;
    j->row.hold = HOLD_STORE;
    touch_job(m, j);
    history(m, now, "held", (struct history_of){.job = j},
        "held: attempt %" PRId64 " could not use the store of its checkpoints; after that is "
        "fixed, belay release %s lets it continue",
        j->row.attempts, job_ref(&j->row).s);
}

/* Retrying costs a node each time and cannot help: a job that is too large stays too large. */
static void hold_for_space(struct model *m, struct job *j, struct stamp now)
{
    if (!retry_is_held_for_space(&j->row) || j->row.hold != HOLD_NONE)
        return;
    j->row.hold = HOLD_USER;
    touch_job(m, j);
    history(m, now, "held", (struct history_of){.job = j},
        "held: no node could start it, %d times in a row (belay show %s says why); fix that or ask "
        "for less, then belay release %s",
        JOB_NO_SPACE_MAX, job_ref(&j->row).s, job_ref(&j->row).s);
}

void job_requeue(struct model *m, struct job *j, int64_t lost_ms, struct stamp now)
{
    char resume[CORE_TEXT_MAX];
    count_lost_work(&j->row, lost_ms);
    job_move(m, j, JOB_PENDING);
    no_progress_requeued(m, j, now);
    hold_for_store(m, j, now);
    hold_for_space(m, j, now);
    window_leave(m, j);
    j->row.queued_mono = now.mono;
    /* part of its --max-usd is now spent, and its run time may be better known; or it has used its
     * requeues after drains */
    if (shape_pays(j->shape) || j->shape->can_drain != job_can_drain(&j->row))
        queue_reshape(m, j);
    job_enqueue(m, j, now);
    model_note_rewind(m);
    text_origin(
        j->row.last_good, j->row.last_good_progress, "starts", "resumes", resume, sizeof resume);
    history(m, now, "requeued", (struct history_of){.job = j}, "queued again: %s", resume);
    notify_unwatch(m, j);
    idle_gpus_leave(m, j);
    j->row.warned = 0;
    notify(m, j, NOTIFY_REQUEUE, now);
}
