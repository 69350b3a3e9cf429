/* SPDX-License-Identifier: Apache-2.0
 *
 * Single dependencies, for eligible.c and namesakes.c: defined in dependencies.c.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H

#include "scheduler/core/model/state.h"

/* Adds a dependency that the job does not have yet. */
void dependency_attach(struct model *m, struct job *j, const struct dependency_row *r);

/* The caller handles the consequences for its job. */
void dependency_move(struct model *m, struct dependency *d, enum depend_state to);

/* As dependency_move; the job enters the queue if it has no other open dependency. */
void dependency_ends(struct model *m, struct dependency *d, enum depend_state as, struct stamp now);

/* For jobs, not only task by task for those of another array. */
bool dependencies_wait_for_jobs(const struct job *j);

#endif
