/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies between jobs, and pending jobs that are not eligible.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_H
#define BELAY_SCHEDULER_CORE_QUEUE_DEPENDENCIES_H

#include "scheduler/core/model/model.h"

struct model;

/* Effect of an end on a dependency of this type: MET or NEVER. */
enum depend_state dependencies_judge(enum depend_kind kind, enum end_kind end);
/* ERR_CONFLICT, with the reason: the job could never run. ERR_NOT_FOUND: an unknown job. */
int dependencies_check(const struct model *m, const struct event *submit, struct err *e);
/* Limits memory, and the work at an end of a job: two for each job that a user may have without a
 * limit. A rename may add one for each job that waits for all of the new name. */
#define DEPENDENCIES_OF_ACCOUNT_MAX 400000
/* ERR_CONFLICT: the account would exceed DEPENDENCIES_OF_ACCOUNT_MAX. */
int dependencies_check_limit(
    const struct model *m, const struct account *a, const struct event *submit, struct err *e);
/* The same for a job that changes to this row and account, with the dependencies that `replaced`
 * asks for (NULL: unchanged, under the row's name). A job may always keep its current count. */
int dependencies_check_change(const struct model *m, const struct job *j, const struct account *to,
    const struct job_row *becomes, const struct event *replaced, struct err *e);
/* Adds n to the account's count of dependencies in WAITS. */
void dependencies_counted(struct account *a, int64_t n);
/* For a checked submit. */
void dependencies_attach(struct model *m, struct job *j, const struct event *submit);
/* Removes all dependencies of a PENDING job that is neither in the queue nor among the waiting
 * jobs. Jobs that waited for others through it wait for them directly. New dependencies can then be
 * attached. */
void dependencies_detach(struct model *m, struct job *j);
/* the job's first start */
void dependencies_started(struct model *m, struct job *j, struct stamp now);
/* the job leaves the model */
void dependencies_ended(struct model *m, struct job *j, struct stamp now);
/* Its dependencies are irrelevant: all remaining tasks have begun. */
void dependencies_no_more(struct model *m, struct job *j);
/* Tasks that will not begin were removed from `left`. */
void dependencies_dropped(struct model *m, struct job *array, struct stamp now);
/* Call when the answer to "can it, or some of its tasks, never run" may have changed. */
void dependencies_note_unmeetable(struct model *m, struct job *j);
/* The caller handles the consequences for its job. */
void dependencies_met(struct model *m, struct dependency *d);
struct depend_text {
    char s[64];
};
/* "afterok:42_7" */
struct depend_text depend_text(enum depend_kind kind, int64_t on, bool of_task, int32_t task);
/* When the next job becomes eligible or must be ended as unmeetable, with the event; MONO_NONE:
 * never. */
struct mono dependencies_due(const struct model *m, struct stamp now, struct event *ret_event);
void dependencies_destroy_all(struct model *m); /* call before jobs are destroyed */

#endif
