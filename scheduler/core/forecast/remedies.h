/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that would let a waiting job start.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_REMEDIES_H
#define BELAY_SCHEDULER_CORE_FORECAST_REMEDIES_H

#include "scheduler/core/forecast/explain.h"

#define REMEDIES_MAX 8

/* Changes each of which alone lets the job start at once, or has a machine launched for it at once,
 * according to the planner's own code for the changed job. Cheapest first: the job's own options,
 * then machines by price, then changes by an administrator. Returns the count, at most max; 0 also
 * if it starts now anyway. */
size_t core_remedies(
    const struct model *m, struct stamp now, int64_t job, struct reason *out, size_t max);

#endif
