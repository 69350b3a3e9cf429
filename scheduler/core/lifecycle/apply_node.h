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

#endif
