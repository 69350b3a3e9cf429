/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that start over without progress: a job is held after too many in a row.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NO_PROGRESS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NO_PROGRESS_H

#include "scheduler/core/model/model.h"

/* An attempt reported, or saved at, this progress: its first and its highest value. PROGRESS_NONE:
 * unknown. */
void no_progress_update(
    struct model *m, struct attempt *a, int64_t first, int64_t most, struct stamp now);
/* The user discards the job's work: existing checkpoints are not used any more. */
void no_progress_from_scratch(struct model *m, struct job *j);
/* Call before the row is stored: updates best_progress. */
void no_progress_kept(struct job_row *j);
/* call before it enters the queue */
void no_progress_requeued(struct model *m, struct job *j, struct stamp now);
/* It had so many attempts without progress that it is held. */
bool no_progress_is_held(const struct model *m, const struct job_row *j);

#endif
