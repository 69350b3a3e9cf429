/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of nodes: functions for other events.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_NODE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_NODE_H

#include "scheduler/core/model/model.h"

void node_gone(
    /* also ends its attempts */
    struct model *m, struct node *n, struct stamp now, const char *text);
/* It gets no new work, and its attempts save and stop as END_DRAINED. text: why belay drains it;
 * "" for an operator's request. No-op if it is drained already. */
void node_drain(struct model *m, struct node *n, struct stamp now, const char *text);

#endif
