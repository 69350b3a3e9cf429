/* SPDX-License-Identifier: Apache-2.0
 *
 * The option --deadline: a pending job expires when it can no longer end by its deadline. The
 * folder core/deadline/ is about another option, --finish-by.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_EXPIRY_H
#define BELAY_SCHEDULER_CORE_QUEUE_EXPIRY_H

#include "scheduler/core/model/model.h"

struct model;

/* Submit: ERR_INVALID if it could not end in time. */
int expiry_check(const struct job_row *r, struct wall now, struct err *e);
/* It is PENDING, queued or waiting; no-op without a deadline. */
void expiry_watch(struct model *m, struct job *j);
/* it is no longer pending; no-op without a deadline */
void expiry_leave(struct model *m, struct job *j);
struct mono expiry_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
