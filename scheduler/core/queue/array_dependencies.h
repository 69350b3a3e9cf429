/* SPDX-License-Identifier: Apache-2.0
 *
 * Task-by-task dependencies between arrays (AFTERCORR).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ARRAY_DEPENDENCIES_H
#define BELAY_SCHEDULER_CORE_QUEUE_ARRAY_DEPENDENCIES_H

#include "scheduler/core/model/model.h"

struct model;

bool array_has_task_dependencies(const struct job *j); /* it has a task-by-task dependency */
/* As dependencies_check, for one AFTERCORR. */
int array_dependencies_check(
    const struct model *m, const struct event *submit, const struct depend_ask *a, struct err *e);
/* Adds a checked dependency. Returns true if tasks must wait or be given up. */
bool array_dependencies_attach(struct model *m, struct job *j, const struct depend_ask *a);
/* a task of the array ended */
void array_dependencies_ended(
    struct model *m, struct job *array, int32_t index, bool succeeded, struct stamp now);
/* Tasks that will not begin were removed from `left`. */
void array_dependencies_dropped(struct model *m, struct job *array, struct stamp now);
/* the whole array has ended */
void array_dependencies_over(struct model *m, struct job *array, struct stamp now);
/* Call after tasks were given up, began or were removed: drops the dependency when it has no effect
 * any more. */
void array_dependencies_prune(struct model *m, struct job *j);
/* Call when all tasks and their ends are loaded. */
void array_dependencies_load(struct model *m, struct job *j);

#endif
