/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job that goes by a table is expected to go on: it is played to its end, some times, on the chain that the table was made of, doing
 * at each step what the table says is cheapest and the net allows. PURE, and the same each time it is asked; some milliseconds.
 */
#ifndef BELAY_CORE_FINISH_OUTLOOK_H
#define BELAY_CORE_FINISH_OUTLOOK_H

#include "scheduler/core/finish.h"

struct finish_outlook {
    int64_t median_ms, late_ms; /* from now to the end: half of the times it is done by the one, 95 of 100 by the other */
    double cost;                /* mean, in steps on demand */
};

enum finish_mode { FINISH_IDLE, FINISH_ON_SPOT, FINISH_ON_SURE };

/* market: the class of the market, or of what it is on. slack_ms: as finish.h counts it; below 0 counts as 0. */
void finish_outlook(const struct finish_table *t, const struct finish_chain *c, const struct finish_job *job, int64_t slack_ms,
    enum finish_mode mode, uint16_t market, struct finish_outlook *ret_outlook);

#endif
