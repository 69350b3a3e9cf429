/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one job row for all tasks that have not begun.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ARRAYS_H
#define BELAY_SCHEDULER_CORE_QUEUE_ARRAYS_H

#include "scheduler/core/model/model.h"

struct model;

/* Places that it could use at once in the queue: 1, or the number for an array. */
int64_t job_width(const struct job *j);
bool array_is_full(const struct job *j); /* an array with its maximum number of live tasks */
/* An array of which no task may begin now: full, or all tasks wait for dependencies. */
bool array_is_kept(const struct job *j);
int64_t array_left(const struct array *a); /* tasks that have not begun and are not given up */
bool array_has_left(const struct array *a, int32_t index); /* the task is one of array_left */
/* ERR_NOT_FOUND if the array never had one of these tasks. */
int array_check_tasks(const struct job *j, const struct ranges *tasks, struct err *e);
/* Whether all of these tasks have ended. */
bool array_all_ended(const struct job *j, const struct ranges *tasks);
void array_attach(struct model *m, struct job *j, const struct event *submit);
/* Its first task that has not begun: PENDING, not in the queue. */
struct job *array_begin(struct model *m, struct job *j, struct stamp now);
void array_task_ended(struct model *m, struct job *task, struct stamp now);
/* Ends the tasks in a->never as END_DEPENDENCY. At most GIVE_UP_MAX of them get a row per call. */
void array_give_up(struct model *m, struct job *j, struct stamp now);
/* Ends those of these tasks (NULL: all) that have not begun, with this end. ERR_CONFLICT: the rest
 * would have too many ranges. */
int array_drop(struct model *m, struct job *j, const struct ranges *tasks, enum end_kind end,
    struct stamp now, struct err *e);
/* A task that has begun and not ended, or NULL. */
struct job *array_task(const struct job *parent, int32_t index);
/* Call after any of the above: moves the array to the state that follows; ends it with its last
 * task. */
void array_advance(struct model *m, struct job *j, struct stamp now);
/* PENDING: sets the maximum number of running tasks. */
void array_throttle(struct model *m, struct job *j, int32_t at_once, struct stamp now);
void array_adopt(struct job *parent, struct job *task);
void array_load_begun(struct job *j, int32_t index); /* one of its tasks has a row */
void array_free(struct job *j);

#endif
