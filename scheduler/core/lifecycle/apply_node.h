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
enum drain_cause { DRAIN_BY_OPERATOR, DRAIN_FAULT, DRAIN_FAILURES, DRAIN_CAUSES };
/* Why, and the jobs that show it, separated by commas; "" = those that run there.
 * Both are "" for an operator's request. */
struct drain_reason {
    enum drain_cause cause;
    const char *text, *jobs;
};
/* It gets no new work, and its attempts save and stop as END_DRAINED. No-op if it is drained
 * already. */
void node_drain(
    struct model *m, struct node *n, struct stamp now, const struct drain_reason *reason);

#endif
