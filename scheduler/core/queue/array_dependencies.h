/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays whose tasks wait for those of others.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_ARRAY_DEPENDENCIES_H
#define BELAY_SCHEDULER_CORE_QUEUE_ARRAY_DEPENDENCIES_H

#include "scheduler/core/model/model.h"

struct model;

bool array_follows(const struct job *j); /* its tasks wait for those of another */
/* As dependencies_check, of one AFTERCORR. */
int array_dependencies_check(
    const struct model *m, const struct event *submit, const struct depend_ask *a, struct err *e);
/* Takes it into account; true: there is something to wait for, or to give up. */
bool array_dependencies_attach(struct model *m, struct job *j, const struct depend_ask *a);
/* a task of it */
void array_dependencies_ended(
    struct model *m, struct job *array, int32_t index, bool succeeded, struct stamp now);
/* tasks that will not begin are no more in `left` */
void array_dependencies_dropped(struct model *m, struct job *array, struct stamp now);
/* all of it has ended */
void array_dependencies_over(struct model *m, struct job *array, struct stamp now);
/* nobody, or fewer, of it are to be given up, or are left at all */
void array_dependencies_settle(struct model *m, struct job *j);
/* all tasks are loaded, and their ends */
void array_dependencies_load(struct model *m, struct job *j);

#endif
