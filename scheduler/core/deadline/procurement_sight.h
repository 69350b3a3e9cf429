/* SPDX-License-Identifier: Apache-2.0
 *
 * Possible places of a deadline job: spot and on-demand offers that fit it within its maximum
 * price, and its current or future place. Input of deadline.h (procurement.c).
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_SIGHT_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_SIGHT_H

#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/model/model.h"

#define SURE_MAX 64 /* on-demand offers examined per job */

/* Spot offers come first, then sure ones. */
struct sight {
    const struct offer *of[DEADLINE_OFFERS_MAX + SURE_MAX];
    struct deadline_offer offers[DEADLINE_OFFERS_MAX + SURE_MAX];
    int64_t ids[DEADLINE_OFFERS_MAX]; /* of the spot offers, ascending */
    size_t n, n_spot, on;
    /* The spot offer whose machine it may move to from on-demand, and the time until that is up; or
     * DEADLINE_NOWHERE. */
    size_t moving_to;
    int64_t coming_ms;
    int64_t starting_since_ms; /* since when it is on the way to its place; 0: it is not */
    bool is_booted;            /* the machine is up, and the job is placed on it */
    /* Of the slowest sure offer: a boot, as expected and at worst, and a failed one. */
    int64_t boot_ms, boot_worst_ms, failed_ms;
    int64_t sure_uusd_h, spot_uusd_h; /* lowest prices; 0: no such offers */
    /* Lowest on-demand cost above its maximum price; 0: none. */
    int64_t too_dear_uusd_h;
};

/* Current offers, whether or not it waits; at most the maximum number of each type. */
void procurement_sight(
    const struct model *m, const struct job *j, struct stamp now, struct sight *s);

#endif
