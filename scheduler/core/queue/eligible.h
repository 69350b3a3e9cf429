/* SPDX-License-Identifier: Apache-2.0
 *
 * Pending jobs outside the queue, and how they enter it.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ELIGIBLE_H
#define BELAY_SCHEDULER_CORE_QUEUE_ELIGIBLE_H

#include "scheduler/core/model/model.h"

/* Puts a job that became PENDING into the queue, or among the waiting jobs until it is eligible. */
void job_enqueue(struct model *m, struct job *j, struct stamp now);
/* Takes a PENDING job out of the queue or out of the waiting jobs. */
void dependencies_withdraw(struct model *m, struct job *j);
/* Removes it from the waiting jobs. */
void dependencies_stop_waiting(struct model *m, struct job *j);
/* The job is no longer held. */
void dependencies_release(struct model *m, struct job *j, struct stamp now);
/* PENDING, after all that it depends on */
void dependencies_load(struct model *m, struct job *j);
bool dependencies_is_kept_back(const struct job *j); /* for another reason than its begin time */
/* Sets the earliest time to queue it; true if that is in the future. */
bool dependencies_set_not_before(struct model *m, struct job *j, struct wall now);
/* Its window may have other times. */
void dependencies_renew_window(struct model *m, struct job *j, struct wall now);
bool job_has_to_begin(const struct job *j); /* it is in by_begin */

#endif
