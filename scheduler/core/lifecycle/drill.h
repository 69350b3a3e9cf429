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
void drill_attempt_stops(struct attempt *a); /* for any reason */
/* The attempt ended with its last rank, a, after its ledger rows are written. as: what the attempt
 * counts as. lost_ms: work to be repeated. goes_on: the job continues. */
void drill_attempt_ended(struct model *m, struct attempt *a, struct stamp now, enum end_kind as,
    int64_t lost_ms, bool goes_on);
void drill_saved(struct model *m, struct attempt *a, struct stamp now);

void drill_progressed(struct model *m, struct attempt *a, struct stamp now, int64_t first);
void drill_job_ends(struct model *m, struct job *j, struct stamp now);
/* When the next drill must start or has timed out, with the event; MONO_NONE: never. */
struct mono drill_next(const struct model *m, struct stamp now, struct event *ret_event);
void drills_destroy_all(struct model *m);

#endif
