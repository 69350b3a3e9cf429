/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that are to have ended by some moment (--deadline).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_EXPIRY_H
#define BELAY_SCHEDULER_CORE_QUEUE_EXPIRY_H

#include "scheduler/core/model/model.h"

struct model;

/* at a submit: ERR_INVALID, it could not */
int expiry_check(const struct job_row *r, struct wall now, struct err *e);
/* it is PENDING, in the queue or waiting; harmless when it has none */
void expiry_watch(struct model *m, struct job *j);
void expiry_leave(struct model *m, struct job *j); /* it is not; harmless likewise */
struct mono expiry_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
