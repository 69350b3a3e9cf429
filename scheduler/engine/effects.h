/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects: what leaves after a commit, derived from what was committed and from nothing else.
 */
#ifndef BELAY_SCHEDULER_ENGINE_EFFECTS_H
#define BELAY_SCHEDULER_ENGINE_EFFECTS_H

#include "scheduler/engine/cleaner.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/engine/provision.h"
#include "scheduler/engine/sessions.h"

/* Wakes the sessions of nodes of which something else is desired now, provisioning for instances
 * that changed, the cleaner and the outbox. */
void effects_release(const struct db_batch *committed, struct sessions *sessions,
    struct provision *provision, struct cleaner *cleaner, struct outbox *outbox);

#endif
