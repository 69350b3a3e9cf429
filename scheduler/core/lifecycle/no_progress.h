/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that began again without progress: a job is held after too many in a row.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NO_PROGRESS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NO_PROGRESS_H

#include "scheduler/core/model/model.h"

/* An attempt has told, or saved at, this progress: what it told first, and most.
 * PROGRESS_NONE: not known. */
void no_progress_update(
    struct model *m, struct attempt *a, int64_t first, int64_t most, struct stamp now);
/* Somebody gives its work up: no checkpoint of an attempt so far is used any more. */
void no_progress_from_scratch(struct model *m, struct job *j);
/* its progress is what it is, and the row is going to be stored */
void no_progress_kept(struct job_row *j);
/* before it stands in the queue */
void no_progress_requeued(struct model *m, struct job *j, struct stamp now);
/* it was so often in vain that it is held */
bool no_progress_is_held(const struct model *m, const struct job_row *j);

#endif
