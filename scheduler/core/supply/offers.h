/* SPDX-License-Identifier: Apache-2.0
 *
 * Cost of machines, and limits on their number.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_OFFERS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_OFFERS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct constraints;

int64_t offer_boot_ms(const struct offer *o); /* from intent to join, as observed */
/* Upper estimate of that time: the mean plus three standard deviations of the observed boots.
 * Before the first one, three times the assumed mean. */
int64_t offer_boot_worst_ms(const struct offer *o);
/* Cost of reading a job's input once on nodes of the pool; and per node-hour, by the expected
 * number of starts. o is its offer, or NULL if it has none. */
int64_t pool_input_uusd(const struct pool *p, const struct constraints *x);
int64_t pool_input_uusd_h(const struct pool *p, const struct offer *o, const struct job *j);
/* Hourly price, expected losses and egress of such a job on a machine of the offer. */
int64_t offer_effective_uusd_h(const struct offer *o, const struct job_row *j);
/* The same plus the premium for having in_offer of the pool's in_pool machines in this offer. */
int64_t offer_spread_uusd_h(
    const struct offer *o, int64_t uusd_h, int64_t in_offer, int64_t in_pool);
/* uusd_h adjusted by the provider's score: less for likely availability, more for unlikely. */
int64_t offer_hinted_uusd_h(const struct offer *o, int64_t uusd_h);
struct capacity pool_capacity(const struct pool *p, struct mono now);
/* as pool_capacity, without the restriction after failed boots */
struct capacity pool_limits(const struct pool *p);
/* Elastic pools: maximum number of nodes, limited by the machines that its rack takes. */
int64_t pool_nodes_max(const struct pool *p);
struct capacity model_capacity(const struct model *m);
/* A machine of it may be launched now for such jobs, within the remaining capacity of its pool and
 * of all pools. */
bool offer_may_serve(const struct offer *o, const struct shape *s, const struct capacity *pool,
    const struct capacity *all, struct stamp now);
/* The limit that one more would exceed; NULL if none. */
const char *capacity_lacks(const struct capacity *r, const struct offer *o);
void capacity_take(struct capacity *r, const struct offer *o);
/* Adds (1) or removes (-1) the instance in the counts of its pool, its offer and all pools.
 * Instances under a reclaim notice do not count, so that the replacement can start early. */
void instance_count(struct model *m, const struct instance *i, int64_t sign);

#endif
