/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one job row for all tasks that have not begun.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ARRAYS_H
#define BELAY_SCHEDULER_CORE_QUEUE_ARRAYS_H

#include "scheduler/core/model/model.h"

struct model;

/* places that it could use at once if it were in the queue: 1, or an array's */
int64_t job_width(const struct job *j);
bool array_is_full(const struct job *j); /* it is an array, and as many of its tasks live as may */
/* it is an array of which no task may begin now: it is full, or all wait for others */
bool array_is_kept(const struct job *j);
int64_t array_left(const struct array *a); /* how many tasks have not begun, nor were given up */
bool array_has_left(const struct array *a, int32_t index); /* that is one of them */
void array_attach(struct model *m, struct job *j, const struct event *submit);
/* its first task that has not begun: PENDING, not in the queue */
struct job *array_begin(struct model *m, struct job *j, struct stamp now);
void array_task_ended(struct model *m, struct job *task, struct stamp now);
/* Tasks that never will begin, those in a->never: END_DEPENDENCY each. Not all at once if that
 * would be a great many rows. */
void array_give_up(struct model *m, struct job *j, struct stamp now);
/* Those of these (NULL: of all) that have not begun never will, and count as this end.
 * ERR_CONFLICT: the rest would be in too many pieces. */
int array_drop(struct model *m, struct job *j, const struct ranges *tasks, enum end_kind end,
    struct stamp now, struct err *e);
/* one that has begun and has not ended, or NULL */
struct job *array_task(const struct job *parent, int32_t index);
/* after something of the above */
void array_settle(struct model *m, struct job *j, struct stamp now);
/* PENDING: so many may run at once from now on */
void array_throttle(struct model *m, struct job *j, int32_t at_once, struct stamp now);
void array_adopt(struct job *parent, struct job *task);
void array_load_begun(struct job *j, int32_t index); /* one of its tasks has a row */
void array_free(struct job *j);

#endif
