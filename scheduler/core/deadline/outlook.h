/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job is expected to go on: it is played to its end, some times, on a chain of the market,
 * doing at each step what its rule says: by a table what that says is cheapest and the net allows.
 * PURE, and the same each time it is asked; some milliseconds.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H

#include "scheduler/core/deadline/deadline.h"

struct deadline_outlook {
    /* from now to the end: half of the times it is done by the one, 95 of 100 by the other */
    int64_t median_ms, late_ms;
    double cost; /* mean, in steps on demand */
};

enum deadline_mode { DEADLINE_MODE_IDLE, DEADLINE_MODE_SPOT, DEADLINE_MODE_ON_DEMAND };

/* market: the class of the market, or of what it is on; price: of spot there, on-demand is 1. */
void deadline_outlook(const struct deadline_policy *p, const struct deadline_chain *c,
    const struct deadline_job *job, double price, enum deadline_mode mode, uint16_t market,
    struct deadline_outlook *ret_outlook);

#endif
