/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that may be answered from several offers.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_ALTERNATIVES_H
#define BELAY_SCHEDULER_CORE_SUPPLY_ALTERNATIVES_H

#include "scheduler/core/model/model.h"

struct model;

/* Other offers of first's pool and market whose machines serve as well and take no more of any
 * limit, the lowest effective price first; none that is avoided, none that costs half as much
 * again. Returns how many, at most max; 0 without `fleet`. */
size_t launch_alternatives(const struct model *m, const struct offer *first, struct stamp now,
    const struct offer **out, size_t max);
void instance_write_alternatives(
    const struct model *m, const struct offer *first, struct stamp now, struct instance_row *r);
/* The instance is one of o, as if that had been decided on, and costs since its launch what that
 * does. */
void instance_rebind(struct model *m, struct instance *i, struct offer *o);

#endif
