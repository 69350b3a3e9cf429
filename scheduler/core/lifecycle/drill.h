/* SPDX-License-Identifier: Apache-2.0
 *
 * Drills.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_DRILL_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_DRILL_H

#include "scheduler/core/model/model.h"

struct model;

#define DRILLS_LIVE_MAX 16
void drill_attempt_started(struct model *m, struct attempt *a, struct stamp now);
void drill_attempt_loaded(struct model *m, struct attempt *a);
void drill_attempt_stops(struct attempt *a); /* for whatever reason */
/* The attempt has ended with its last rank, a, after its ledger rows; as: what all of it counts as.
 * lost_ms: of work that is to be done again. goes_on: the job is. */
void drill_attempt_ended(struct model *m, struct attempt *a, struct stamp now, enum end_kind as,
    int64_t lost_ms, bool goes_on);
void drill_saved(struct model *m, struct attempt *a, struct stamp now);
/* no_progress.c. An attempt has told, or saved at, this progress: what it told first, and most.
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

void drill_progressed(struct model *m, struct attempt *a, struct stamp now, int64_t first);
void drill_job_ends(struct model *m, struct job *j, struct stamp now);
/* When the next drill is to be begun, or has waited for too long, and the event; MONO_NONE:
 * none. */
struct mono drill_next(const struct model *m, struct stamp now, struct event *ret_event);
void drills_destroy_all(struct model *m);

#endif
