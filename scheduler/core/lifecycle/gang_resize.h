/* SPDX-License-Identifier: Apache-2.0
 *
 * Gangs between their attempts.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_GANG_RESIZE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_GANG_RESIZE_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

bool node_is_kept_from(const struct node *n, const struct shape *s); /* kept for another job */
/* A rank has left its node, which is kept for the job's next attempt, if there will be one. */
void gang_keep(struct model *m, struct job *j, struct node *n);
void gang_release(struct model *m, struct job *j);      /* its kept nodes; no-op for other jobs */
void gang_node_leaves(struct model *m, struct node *n); /* it accepts no work any more */
/* The job is about to enter the queue after an attempt with the end in its row: sets how many nodes
 * it waits for, and until when. */
void gang_queued(struct model *m, struct job *j, struct stamp now);
/* It runs or left the queue: releases its kept nodes and its wait. */
void gang_stop_waiting(struct model *m, struct job *j);
/* When the next wait ends, with the event; MONO_NONE: never. */
struct mono gang_due(const struct model *m, struct stamp now, struct event *ret_event);
/* For a stored job, by the wall clock: the original end, but at most the full time from now. */
struct mono gang_until(const struct job_row *r, struct stamp now);
/* Before it enters the queue, after its kept nodes. */
void gang_load(struct model *m, struct job *j);
/* After its job; ERR_CORRUPT. */
int gang_load_kept(struct model *m, struct node *n, struct err *e);

#endif
