/* SPDX-License-Identifier: Apache-2.0
 *
 * Requeues by users.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_REQUEUE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_REQUEUE_H

#include "scheduler/core/model/model.h"

struct model;

void requeue_saved(struct model *m, struct job *j); /* a checkpoint of it is durable */
void requeue_save_failed(struct model *m, struct job *j, struct stamp now, const char *text);
/* for whatever reason, or it has ended */
void requeue_attempt_stops(struct model *m, struct attempt *a);
void requeue_attempt_loaded(struct model *m, struct attempt *a);
/* When one has waited for too long, and the event; MONO_NONE: none waits. */
struct mono requeue_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
