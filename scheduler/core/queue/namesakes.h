/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with the same user and name, and those of them that wait for all earlier ones (singleton).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_NAMESAKES_H
#define BELAY_SCHEDULER_CORE_QUEUE_NAMESAKES_H

#include "scheduler/core/model/model.h"

bool job_waits_for_name(const struct job *j); /* SINGLETON with earlier jobs that have not ended */
/* Renames a job; dependencies by name become as if it had always had the new name. A job that
 * job_waits_for_name must not be among the waiting jobs. */
void dependencies_rename(struct model *m, struct job *j, const char *name, struct stamp now);
void dependencies_adopt(struct model *m, struct job *j); /* adds a new job by its name */
/* The job leaves the model or changes its name. */
void namesakes_disown(struct model *m, struct job *j);
/* How many dependencies namesakes_attach would add for a job with this row and id. */
int64_t namesakes_before(const struct model *m, const struct job_row *r, int64_t id);
/* Number of its dependencies on jobs of its name. */
int64_t namesakes_waited_for(const struct job *j);
/* Makes it wait for all earlier jobs of its name; it must not wait for any yet. */
void namesakes_attach(struct model *m, struct job *j);
/* Jobs that waited for others only through this one, which no longer does, wait for them
 * directly. */
void namesakes_pass_on(struct model *m, struct job *j);
void namesakes_destroy_all(struct model *m); /* call before jobs are destroyed */

#endif
