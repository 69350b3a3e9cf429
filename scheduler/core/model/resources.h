/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs take of machines, and what a shape may have.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_RESOURCES_H
#define BELAY_SCHEDULER_CORE_MODEL_RESOURCES_H

#include "scheduler/core/model/model.h"

struct shape;

bool resources_fit(const struct resources *need, const struct resources *room);
void resources_take(struct resources *room, const struct resources *need);
void resources_give(struct resources *room, const struct resources *need);
/* how often need fits */
int64_t resources_times(const struct resources *room, const struct resources *need);
/* value * share of total that need takes up by its dominant resource, rounded down; at most
 * value. */
int64_t resources_share(const struct resources *need, const struct resources *total, int64_t value);
/* Its jobs have their nodes for themselves. Then what one takes depends on where it runs: it is all
 * that there is. So it is never owed a place by its team's quota, and whether its user or team may
 * have so much is looked at node by node (limits_afford). */
bool shape_is_exclusive(const struct shape *s);
/* What a job of the shape takes of a machine that has so much: all, or what it needs. One of the
 * two that are given. */
const struct resources *shape_takes(const struct shape *s, const struct resources *total);
int64_t attempt_mcpu(const struct attempt *a); /* that it takes of its node */
int64_t job_mcpu(const struct job *j);         /* of all of its nodes, while it runs */
bool wish_allows(enum market_wish wish, enum market market);
/* The wish allows the market, and the pool the job (certificates.c, labels.c); whichever of its
 * machines it is. */
bool shape_allows_pool(const struct shape *s, const struct pool *p); /* as job_pools_allow has it */
bool shape_may_use(const struct shape *s, const struct pool *p, enum market market);
/* likewise of an offer, when a machine is to be launched */
bool shape_takes_offer(const struct shape *s, const struct offer *o);
/* What a machine of this offer can be counted on to have. */
struct resources offer_total(const struct offer *o);

#endif
