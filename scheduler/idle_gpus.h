/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the core when all GPUs that an attempt has on a node become idle, or one becomes busy
 * again, where their pool has a policy for that (core/lifecycle/idle_gpus.h). Judged by the minutes
 * that nodes report. A minute is not judged if a GPU of the attempt is not in it, reports no
 * utilisation (slices do not), or was observed for less than half of it.
 *
 * It has no state: what was reported before is in the model, so a restart changes nothing.
 */
#ifndef BELAY_SCHEDULER_IDLE_GPUS_H
#define BELAY_SCHEDULER_IDLE_GPUS_H

#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/tick.h"

/* Call with each status of a node. Loads with numbers up to `above` were processed before. */
void idle_gpus_take(
    struct tick *t, int64_t node, const struct wire_status *st, int64_t above, struct wall now);

#endif
