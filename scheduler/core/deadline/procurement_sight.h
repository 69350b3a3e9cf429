/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a job that is to be done by some moment could run: the offers of spot and of on-demand that
 * suit it, at a price that it takes, and the one that it is on or on the way to. It is what
 * deadline.h decides among (procurement.c).
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_SIGHT_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_SIGHT_H

#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/model/model.h"

#define SURE_MAX 64 /* on-demand offers that are looked at for one job */

/* Spot comes first, then what is sure. */
struct sight {
    const struct offer *of[DEADLINE_OFFERS_MAX + SURE_MAX];
    struct deadline_offer offers[DEADLINE_OFFERS_MAX + SURE_MAX];
    int64_t ids[DEADLINE_OFFERS_MAX]; /* of the spot ones, ascending */
    size_t n, n_spot, on;
    int64_t starting_since_ms;        /* it is on the way to what it is on; 0: it is not */
    bool is_booted;                   /* which is there, and it is placed on it */
    int64_t boot_ms, failed_ms;       /* of the slowest of the sure ones */
    int64_t sure_uusd_h, spot_uusd_h; /* the least; 0: there are none */
    /* what it would pay on the cheapest on-demand that costs more than it takes; 0: there is
     * none */
    int64_t too_dear_uusd_h;
};

/* As it is now, whether or not it waits; at most so many of each. */
void procurement_sight(
    const struct model *m, const struct job *j, struct stamp now, struct sight *s);

#endif
