/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: times when jobs may run.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_WINDOWS_H
#define BELAY_SCHEDULER_CORE_QUEUE_WINDOWS_H

#include "scheduler/core/model/model.h"

struct model;

#define WALL_NEVER ((struct wall){INT64_MAX / 4})
/* Earliest time to queue the job, by begin_at and its window; in the past: now. */
struct wall window_not_before(const struct model *m, const struct job_row *r, struct wall now);
/* The job was queued, placed, saved or loaded. */
void window_watch(struct model *m, struct job *j, struct wall now);
/* It is neither queued nor running. */
void window_leave(struct model *m, struct job *j);
struct mono windows_due(const struct model *m, struct stamp now, struct event *ret_event);
/* How long a stop of the job takes, with a save as long as its last one; 0 if it is not saved. */
int64_t job_stop_lead_ms(const struct job_row *r);

#endif
