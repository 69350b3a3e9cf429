/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue, shape by shape.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_QUEUE_WALK_H
#define BELAY_SCHEDULER_CORE_QUEUE_QUEUE_WALK_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct demand_class;

struct queue_walk {
    const struct demand_class
        *closed;               /* the first of which no shape was looked at yet; NULL: none */
    const struct shape **open; /* of each of the others the next shape: a heap by place */
    size_t n_open, n_max;
};
/* All shapes in the queue in its order: begin, next until it says NULL. w: zeroed before the first
 * time; each walk has the memory of the last, until queue_walk_end. A step takes the logarithm of
 * how many kinds were met, and the model must not change. */
void queue_walk_begin(struct queue_walk *w, const struct model *m);
const struct shape *queue_walk_next(struct queue_walk *w);
void queue_walk_end(struct queue_walk *w);

#endif
