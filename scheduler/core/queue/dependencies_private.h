/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by dependencies.c, eligible.c and namesakes.c.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H

#include "scheduler/core/model/state.h"

/* ---- dependencies.c ---- */

/* Adds a dependency that the job does not have yet. */
void dependency_attach(struct model *m, struct job *j, const struct dependency_row *r);

/* The caller handles the consequences for its job. */
void dependency_move(struct model *m, struct dependency *d, enum depend_state to);

/* As dependency_move; the job enters the queue if it has no other open dependency. */
void dependency_ends(struct model *m, struct dependency *d, enum depend_state as, struct stamp now);

/* For jobs, not only task by task for those of another array. */
bool dependencies_wait_for_jobs(const struct job *j);

/* ---- eligible.c ---- */

/* Removes it from the waiting jobs. */
void dependencies_stop_waiting(struct model *m, struct job *j);

/* ---- namesakes.c ---- */

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
