/* SPDX-License-Identifier: Apache-2.0
 *
 * Base load: machines that an elastic pool keeps whether or not jobs need them, by hour of the
 * week. `min_nodes` counts all machines, `warm_nodes` those without a job.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_BASE_LOAD_H
#define BELAY_SCHEDULER_CORE_SUPPLY_BASE_LOAD_H

#include "scheduler/core/model/model.h"

struct model;

/* ERR_INVALID: windows out of form or range, or in a zone that this machine does not have. */
int base_load_check(const struct model *m, const struct pool_row *r, struct err *e);
/* The pool's row is new or has changed. */
void base_load_configure(const struct model *m, struct pool *p);
/* The expected boot time of its machines changed. */
void base_load_boot_changed(struct pool *p);
struct mono base_load_due(const struct model *m, struct stamp now, struct event *ret_event);
int apply_base_load(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
/* How many idle nodes of the pool may end; INT64_MAX without a base load. */
int64_t base_load_spare(const struct pool *p);
/* Some pool has fewer machines than its base load, counting those that are coming. */
bool base_load_lacks(const struct model *m);
/* The base load of the pool by the calendar: now, and after the next change. Borrowed from it. */
void core_base_load(const struct pool *p, struct wall now, struct base_view *ret_view);

#endif
