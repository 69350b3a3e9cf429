/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of nodes that decisions depend on: what throttles their GPUs, and the draw of GPUs,
 * processors and memory, as far as they measure it. A throttled node gets no new job until the
 * throttling has been over for a while; its draw counts in its rack (core/placement/racks.h).
 *
 * In memory only: a restarted belayd has it again within a minute or two.
 */
#ifndef BELAY_SCHEDULER_CONDITIONS_H
#define BELAY_SCHEDULER_CONDITIONS_H

#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/tick.h"
#include "telemetry/diagnose.h"

#define CONDITION_STALE_MS 300000 /* a draw measured this long ago no longer counts */

struct conditions_options {
    struct tick *tick;
    struct timers *timers;
    /* how long a node gets no new job after it was throttled; 0 = no restriction */
    int64_t throttled_ms;
    const struct diagnose_limits *limits; /* the limits for throttling; borrowed */
};

struct conditions;
struct conditions *conditions_create(const struct conditions_options *o);
void conditions_set_throttled(struct conditions *c, int64_t throttled_ms);
void conditions_destroy(struct conditions *c); /* c may be NULL */
/* Call with each status of a node, whatever its contents. Loads with numbers up to `above` were
 * processed before. */
void conditions_take(
    struct conditions *c, int64_t node, const struct wire_status *st, int64_t above);

#endif
