/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that save but start over after each restore: their attempts report progress from before
 * the restored checkpoint. Such a job could be reclaimed and requeued forever, and paid for each
 * time. Successive attempts of this kind are counted until one exceeds all earlier progress. Each
 * is in the history. After model_options.no_progress_max of them the job is held when it would be
 * requeued; the running attempt may still finish.
 *
 * Invariants.
 *  1. An attempt counts at most once, and only if it was restored from a checkpoint with known
 *     progress: jobs without progress reports are not judged.
 *  2. The highest progress is stored with other changes, at saves and at the end of an attempt:
 *     progress reports alone are too frequent.
 *  3. A job that never reports less than its checkpoint has is not counted, however often its node
 *     is taken.
 */
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/no_progress.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/state.h"

#include <inttypes.h>

void no_progress_update(
    struct model *m, struct attempt *a, int64_t first, int64_t most, struct stamp now)
{
    struct job_row *j = &a->job->row;
    const struct attempt_row *r = &a->row;
    bool behind = r->restored.attempt > 0 && r->restored_progress != PROGRESS_NONE &&
                  first != PROGRESS_NONE && first < r->restored_progress;
    if (behind && j->no_progress_last < r->attempt) {
        j->no_progress_last = r->attempt;
        j->no_progress++;
        touch_job(m, a->job);
        history(m, now, "in-vain",
            (struct history_of){.attempt = a, .a = first, .b = j->no_progress},
            "it is at step %" PRId64 ", and its checkpoint %" PRId64 ".%" PRId64
            " was of step %" PRId64 ": it has started over",
            first, r->restored.attempt, r->restored.sequence, r->restored_progress);
    }
    if (j->no_progress == 0 || most <= j->best_progress)
        return;
    j->no_progress = 0;
    j->best_progress = most;
    touch_job(m, a->job);
}

void no_progress_kept(struct job_row *j)
{
    if (j->progress > j->best_progress) /* PROGRESS_NONE is below all values */
        j->best_progress = j->progress;
}

bool no_progress_is_held(const struct model *m, const struct job_row *j)
{
    return m->options.no_progress_max > 0 && j->no_progress >= m->options.no_progress_max;
}

void no_progress_from_scratch(struct model *m, struct job *j)
{
    struct job_row *r = &j->row;
    r->from_attempt = r->attempts + 1;
    r->last_good = (struct ckpt_ref){0};
    r->last_good_progress = r->progress = PROGRESS_NONE;
    r->last_good_at = WALL_NONE;
    r->done_ms = 0;
    r->no_progress = 0;
    touch_job(m, j);
}

void no_progress_requeued(struct model *m, struct job *j, struct stamp now)
{
    if (!no_progress_is_held(m, &j->row) || j->row.hold != HOLD_NONE)
        return;
    j->row.hold = HOLD_USER;
    touch_job(m, j);
    history(m, now, "held", (struct history_of){.job = j},
        "held: %" PRId32 " times in a row it restarted from before its checkpoint, and never got "
        "beyond step %" PRId64,
        j->row.no_progress, j->row.best_progress);
}
