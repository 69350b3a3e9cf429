/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources that jobs take from machines, and the markets and pools that they may use.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_RESOURCES_H
#define BELAY_SCHEDULER_CORE_MODEL_RESOURCES_H

#include "scheduler/core/model/model.h"

struct shape;

bool resources_fit(const struct resources *need, const struct resources *available);
void resources_take(struct resources *available, const struct resources *need);
void resources_give(struct resources *available, const struct resources *need);
/* how many times need fits */
int64_t resources_times(const struct resources *available, const struct resources *need);
/* value * dominant share of need in total, rounded down; at most value. */
int64_t resources_share(const struct resources *need, const struct resources *total, int64_t value);
/* Its jobs use whole nodes. The amount depends on the node, so a team's quota never entitles it to
 * a place, and the limits of user and team are checked per node (limits_afford). */
bool shape_is_exclusive(const struct shape *s);
/* Resources that a job of the shape takes from a machine with this total: all of them if exclusive,
 * else its need. Returns one of the two arguments. */
const struct resources *shape_takes(const struct shape *s, const struct resources *total);
int64_t attempt_mcpu(const struct attempt *a); /* on its node */
int64_t job_mcpu(const struct job *j);         /* over all its nodes, while it runs */
bool market_wish_allows(enum market_wish wish, enum market market);
bool shape_allows_pool(const struct shape *s, const struct pool *p); /* see job_pools_allow */
/* Guaranteed minimum resources of a machine of this offer. */
struct resources offer_total(const struct offer *o);

#endif
