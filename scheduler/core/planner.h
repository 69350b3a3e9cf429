/* SPDX-License-Identifier: Apache-2.0
 *
 * What plan.c and launch.c share.
 */
#ifndef BELAY_CORE_PLANNER_H
#define BELAY_CORE_PLANNER_H

#include "scheduler/core/impl.h"
#include "scheduler/core/plan.h"

/* Room that demand may be put into when it is counted: a node, an instance on its way, or a launch just
 * planned. */
struct bin {
    struct resources free;
    const struct pool *pool;
    enum market market;
};

/* Jobs of one shape that will have to move: their nodes are about to go. */
struct mover {
    const struct shape *shape;
    int64_t n;
};

struct planner {
    struct map unfit; /* shape id -> growth count at which it fitted nowhere */
    int64_t rewind;   /* of the model, when the cursor was set back */
    int64_t cursor;   /* no shape with an older head fits */

    /* The launches called for when the model's change count was `change` and `base` launches had been made;
     * true until valid_until (when an avoided offer may be tried again; MONO_NONE: until something changes).
     */
    int64_t change, base;
    struct mono valid_until;
    int64_t *launches; /* offers */
    size_t n_launches;

    /* scratch of one computation, kept for its memory */
    struct bin *bins;
    size_t n_bins;
    int64_t *room; /* by the index of a pool: how many more instances it may have */
    size_t n_room;
    struct mover *movers;
    size_t n_movers;
};

/* The next offer to launch, or false: none. */
bool launches_next(struct planner *p, const struct model *m, struct stamp now, int64_t *ret_offer);
void launches_deinit(struct planner *p);

#endif
