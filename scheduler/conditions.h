/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes tell by which something is decided: what holds their GPUs back, and what GPUs,
 * processors and memory draw, as far as they measure it. A node that is held back is given nothing
 * new until that has been over for a while; what it draws counts in its rack
 * (core/placement/rack.h).
 *
 * In memory only: a belayd that was started knows it again within a minute or two.
 */
#ifndef BELAY_SCHEDULER_CONDITIONS_H
#define BELAY_SCHEDULER_CONDITIONS_H

#include "scheduler/engine/sessions.h"
#include "scheduler/engine/tick.h"
#include "telemetry/diagnose.h"

#define CONDITION_STALE_MS 300000 /* what a node drew so long ago does not count any more */

struct conditions_options {
    struct tick *tick;
    struct timers *timers;
    /* a node is given nothing new for so long after it was held back; 0: it does not matter */
    int64_t throttled_ms;
    const struct diagnose_limits *limits; /* what counts as held back; borrowed */
};

struct conditions;
struct conditions *conditions_create(const struct conditions_options *o);
void conditions_destroy(struct conditions *c); /* NULL is fine */
/* With each status of a node, whatever it tells. Loads with numbers up to `above` were taken
 * before. */
void conditions_take(
    struct conditions *c, int64_t node, const struct wire_status *st, int64_t above);

#endif
