/* SPDX-License-Identifier: Apache-2.0
 *
 * Requeues by users (belay requeue): a running job is saved, then stopped. It is queued again as
 * after every end (requeue.h).
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_USER_REQUEUE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_USER_REQUEUE_H

#include "scheduler/core/model/model.h"

struct model;

/* Asks for a checkpoint of a running job that can be saved, and stops it when one is durable. */
void user_requeue_begin(struct model *m, struct job *j, struct stamp now);
/* Drops that request, if there is one; the job continues. */
void user_requeue_cancel(struct model *m, struct job *j);
void user_requeue_saved(struct model *m, struct job *j); /* one of its checkpoints became durable */
void user_requeue_save_failed(struct model *m, struct job *j, struct stamp now, const char *text);
/* It stops for any reason, or has ended. */
void user_requeue_attempt_stops(struct model *m, struct attempt *a);
void user_requeue_attempt_loaded(struct model *m, struct attempt *a);
/* When the next save before a requeue times out, with the event; MONO_NONE: never. */
struct mono user_requeue_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
