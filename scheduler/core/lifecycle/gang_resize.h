/* SPDX-License-Identifier: Apache-2.0
 *
 * Gangs between their attempts.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_GANG_RESIZE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_GANG_RESIZE_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

bool node_is_kept_from(const struct node *n, const struct shape *s); /* for another job */
/* A rank has left its node, which stays its job's until the next attempt, if there is one. */
void gang_keep(struct model *m, struct job *j, struct node *n);
void gang_release(struct model *m, struct job *j);      /* what is kept; harmless for any job */
void gang_node_leaves(struct model *m, struct node *n); /* it takes no work any more */
/* The job is about to enter the queue, after an attempt that ended as the row says: how many nodes
 * it waits for, and until when.
 */
void gang_queued(struct model *m, struct job *j, struct stamp now);
/* it runs, or is kept back: nothing is kept for it */
void gang_let_go(struct model *m, struct job *j);
/* When the next waits no longer, and the event; MONO_NONE: none. */
struct mono gang_due(const struct model *m, struct stamp now, struct event *ret_event);
/* Of a stored job, by the wall clock: as long as it would have been, and no longer than from now
 * on. */
struct mono gang_until(const struct job_row *r, struct stamp now);
/* which enters the queue; its kept nodes are known */
void gang_load(struct model *m, struct job *j);
/* its job is loaded; ERR_CORRUPT */
int gang_load_kept(struct model *m, struct node *n, struct err *e);

#endif
