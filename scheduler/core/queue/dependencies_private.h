/* SPDX-License-Identifier: Apache-2.0
 *
 * What dependencies.c, eligible.c and namesakes.c share.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H
#define BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_PRIVATE_H

#include "scheduler/core/model/state.h"

/* ---- dependencies.c ---- */

/* One that the job has not. */
void dependency_attach(struct model *m, struct job *j, const struct dependency_row *r);

/* It is met, dropped or can never be; what follows for its job is the caller's. */
void dependency_move(struct model *m, struct dependency *d, enum depend_state to);

/* The same, and its job comes into the queue if it waits for nothing else. */
void dependency_ends(struct model *m, struct dependency *d, enum depend_state as, struct stamp now);

/* For something else than tasks of others do for its own. */
bool dependencies_wait_for_jobs(const struct job *j);

/* ---- eligible.c ---- */

/* It is not among those that wait any more. */
void dependencies_stop_waiting(struct model *m, struct job *j);

/* ---- namesakes.c ---- */

/* It leaves the model, or its name. */
void namesakes_disown(struct model *m, struct job *j);

/* So many namesakes_attach would find for a job of that row and number. */
int64_t namesakes_before(const struct model *m, const struct job_row *r, int64_t id);

/* So many it waits for. */
int64_t namesakes_waited_for(const struct job *j);

/* It waits for all before it from now on; it waits for none of its name yet. */
void namesakes_attach(struct model *m, struct job *j);

/* Who waits for others only by way of this one, which does not any more, does so itself. */
void namesakes_pass_on(struct model *m, struct job *j);

void namesakes_destroy_all(struct model *m); /* before the jobs */

#endif
