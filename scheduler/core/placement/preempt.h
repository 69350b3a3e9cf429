/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of teams, and preemption by QOS.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_PREEMPT_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_PREEMPT_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct demand_class;
struct qos;

/* The next job of the shape is within its team's quota, or has a claim because of that. */
bool quota_owes(const struct shape *s);
bool team_may_be_owed(const struct team *t); /* quota_owes may be true for some of its shapes */

bool qos_preempts(const struct qos *q); /* preempts others; q may be NULL */
bool shape_preempts(const struct shape *s, const struct shape *other); /* jobs of this one */

#endif
