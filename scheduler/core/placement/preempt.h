/* SPDX-License-Identifier: Apache-2.0
 *
 * What teams are owed, and what QOS classes have evicted.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_PREEMPT_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_PREEMPT_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct demand_class;
struct qos_class;

/* The next job of the shape is within its team's quota, or that is what a place is being made
 * for. */
bool quota_owes(const struct shape *s);
bool team_may_be_owed(const struct team *t); /* quota_owes may be true of some of its shapes */
struct demand_class *queue_first_of(
    const struct team *t); /* in the queue, of a team with a quota */
struct demand_class *queue_next_of(const struct demand_class *k);
/* it has claims, or none any more */
void queue_set_apart(struct model *m, struct shape *s, bool is_apart);
bool queue_is_in_its_class(const struct model *m, const struct shape *s); /* for model_check */

bool class_preempts(const struct qos_class *c); /* jobs of others; c may be NULL */
bool shape_preempts(const struct shape *s, const struct shape *other); /* jobs of this one */
/* in the queue, of one that preempts */
struct shape *queue_first_of_class(const struct qos_class *c);
struct shape *queue_next_of_class(const struct shape *s);

#endif
