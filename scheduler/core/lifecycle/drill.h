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

void drill_progressed(struct model *m, struct attempt *a, struct stamp now, int64_t first);
void drill_job_ends(struct model *m, struct job *j, struct stamp now);
/* When the next drill is to be begun, or has waited for too long, and the event; MONO_NONE:
 * none. */
struct mono drill_next(const struct model *m, struct stamp now, struct event *ret_event);
void drills_destroy_all(struct model *m);

#endif
