/* SPDX-License-Identifier: Apache-2.0
 *
 * Expected course of a job: it is simulated to its end several times on the Markov chain of its
 * offer set. At each step its rule decides: with a table, the cheapest action that the net allows.
 * PURE and deterministic; takes some milliseconds.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_OUTLOOK_H

#include "scheduler/core/deadline/deadline.h"

struct deadline_outlook {
    /* from now to the end: median and 95th percentile */
    int64_t median_ms, p95_ms;
    double cost; /* mean, in on-demand steps */
};

enum deadline_mode { DEADLINE_MODE_IDLE, DEADLINE_MODE_SPOT, DEADLINE_MODE_ON_DEMAND };

/* set_class: the class of the offer set, or of the job's offer; price: spot price relative to
 * on-demand. */
void deadline_outlook(const struct deadline_policy *p, const struct deadline_chain *c,
    const struct deadline_job *job, double price, enum deadline_mode mode, uint16_t set_class,
    struct deadline_outlook *ret_outlook);

#endif
