/* SPDX-License-Identifier: Apache-2.0
 *
 * What machines cost, and how many there may be.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_MARKET_H
#define BELAY_SCHEDULER_CORE_SUPPLY_MARKET_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct constraints;

int64_t offer_boot_ms(const struct offer *o); /* from the intent to the join, as observed */
/* What it costs once to read a job's input on nodes of the pool, and by the hour of one of them, as
 * often as the job is expected to start; o: its offer, NULL: it has none. */
int64_t pool_input_uusd(const struct pool *p, const struct constraints *x);
int64_t pool_input_uusd_h(const struct pool *p, const struct offer *o, const struct job *j);
/* Price, expected losses and egress for such a job on a machine of the offer, an hour. */
int64_t offer_effective_uusd_h(const struct offer *o, const struct job_row *j);
/* The same with the premium for having in_offer of the pool's in_pool machines in this one
 * offer. */
int64_t offer_spread_uusd_h(
    const struct offer *o, int64_t uusd_h, int64_t in_offer, int64_t in_pool);
/* The same, a little less where the provider expects to have machines, a little more where it does
 * not. */
int64_t offer_hinted_uusd_h(const struct offer *o, int64_t uusd_h);
struct room pool_room(const struct pool *p, struct mono now);
/* the same but for machines that do not join: what its limits leave */
struct room pool_limits(const struct pool *p);
/* of an elastic one: how many nodes it may have, and its rack has places for */
int64_t pool_places(const struct pool *p);
struct room model_room(const struct model *m);
/* A machine of it may be launched now for such jobs, in so much room of its pool and of all. */
bool offer_may_serve(const struct offer *o, const struct shape *s, const struct room *pool,
    const struct room *all, struct stamp now);
/* what one more would exceed; NULL: nothing */
const char *room_lacks(const struct room *r, const struct offer *o);
void room_take(struct room *r, const struct offer *o);
/* Adds the instance to what its pool, its offer and all pools have (1), or takes it off (-1). One
 * whose reclaim is announced does not count: its replacement may start before it is gone. */
void instance_count(struct model *m, const struct instance *i, int64_t sign);

#endif
