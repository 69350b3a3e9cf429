/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects: what leaves belayd after a commit. Derived from the committed batch alone.
 */
#ifndef BELAY_SCHEDULER_ENGINE_EFFECTS_H
#define BELAY_SCHEDULER_ENGINE_EFFECTS_H

#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/cleaner.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/engine/provision.h"

/* Wakes agent sync for nodes whose desired state changed, provisioning for changed instances, the
 * cleaner and the outbox. */
void effects_release(const struct db_batch *committed, struct agent_sync *agent_sync,
    struct provision *provision, struct cleaner *cleaner, struct outbox *outbox);

#endif
