/* SPDX-License-Identifier: Apache-2.0
 *
 * Iteration over the queue, shape by shape.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_QUEUE_WALK_H
#define BELAY_SCHEDULER_CORE_QUEUE_QUEUE_WALK_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct demand_class;

struct queue_walk {
    const struct demand_class *closed; /* first class without a visited shape; may be NULL */
    const struct shape **open;         /* next shape of each visited class: a heap by position */
    size_t n_open, n_max;
};
/* Iterates all queued shapes in order: begin, then next until it returns NULL. w is zeroed before
 * its first use; its memory is reused until queue_walk_end. A step costs O(log visited classes).
 * The model must not change during a walk. */
void queue_walk_begin(struct queue_walk *w, const struct model *m);
const struct shape *queue_walk_next(struct queue_walk *w);
void queue_walk_end(struct queue_walk *w);

#endif
