/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job is expected to go on: it is played to its end, some times, on a chain of the market,
 * doing at each step what its rule says: by a table what that says is cheapest and the net allows.
 * PURE, and the same each time it is asked; some milliseconds.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H

#include "scheduler/core/deadline/deadline.h"

struct finish_outlook {
    /* from now to the end: half of the times it is done by the one, 95 of 100 by the other */
    int64_t median_ms, late_ms;
    double cost; /* mean, in steps on demand */
};

enum finish_mode { FINISH_IDLE, FINISH_ON_SPOT, FINISH_ON_SURE };

/* market: the class of the market, or of what it is on; price: of spot there, on-demand is 1. */
void finish_outlook(const struct finish_policy *p, const struct finish_chain *c,
    const struct finish_job *job, double price, enum finish_mode mode, uint16_t market,
    struct finish_outlook *ret_outlook);

#endif
