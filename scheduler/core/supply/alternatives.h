/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches with alternative offers.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_ALTERNATIVES_H
#define BELAY_SCHEDULER_CORE_SUPPLY_ALTERNATIVES_H

#include "scheduler/core/model/model.h"

struct model;

/* Alternatives to `first`: offers of its pool and market that serve as well and use no more of any
 * limit, lowest effective price first. Excludes avoided offers and offers that cost more than half
 * as much again. Returns the count, at most max; 0 without `fleet`. */
size_t launch_alternatives(const struct model *m, const struct offer *first, struct stamp now,
    const struct offer **out, size_t max);
void instance_write_alternatives(
    const struct model *m, const struct offer *first, struct stamp now, struct instance_row *r);
/* Moves the instance to offer o, with o's cost since its launch. */
void instance_rebind(struct model *m, struct instance *i, struct offer *o);

#endif
