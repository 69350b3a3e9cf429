/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue is stored by demand class, each with its shapes in order. Iteration over all shapes
 * merges the classes. A class is opened at the position of its first shape, so visiting the first
 * few shapes is cheap.
 */
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_walk.h"

#include "base/mem.h"
#include <stdlib.h>

static bool is_before(const struct shape *a, const struct shape *b)
{
    return queue_position_order(queue_position_of(a), queue_position_of(b)) < 0;
}

/* Restores heap order below i. */
static void sift_down(struct queue_walk *w, size_t i)
{
    const struct shape *s = w->open[i];
    for (size_t child; (child = 2 * i + 1) < w->n_open; i = child) {
        if (child + 1 < w->n_open && is_before(w->open[child + 1], w->open[child]))
            child++;
        if (is_before(s, w->open[child]))
            break;
        w->open[i] = w->open[child];
    }
    w->open[i] = s;
}

/* Adds a shape that is before all open ones. */
static void push_first(struct queue_walk *w, const struct shape *s)
{
    if (w->n_open == w->n_max) {
        w->n_max = w->n_max ? 2 * w->n_max : 16;
        w->open = mem_resize(w->open, w->n_max, sizeof *w->open);
    }
    size_t i = w->n_open++;
    for (; i > 0; i = (i - 1) / 2)
        w->open[i] = w->open[(i - 1) / 2];
    w->open[0] = s;
}

void queue_walk_begin(struct queue_walk *w, const struct model *m)
{
    w->n_open = 0;
    w->closed = queue_class_at_least(m, (struct queue_position){INT64_MIN, INT64_MIN});
}

const struct shape *queue_walk_next(struct queue_walk *w)
{
    if (w->closed && (w->n_open == 0 || is_before(w->closed->first, w->open[0]))) {
        push_first(w, w->closed->first);
        w->closed = queue_next_class(w->closed);
    }
    if (w->n_open == 0)
        return NULL;
    const struct shape *s = w->open[0], *next = queue_next_in_class(s);
    w->open[0] = next ? next : w->open[--w->n_open];
    if (w->n_open > 0)
        sift_down(w, 0);
    return s;
}

void queue_walk_end(struct queue_walk *w)
{
    free(w->open);
    *w = (struct queue_walk){0};
}
