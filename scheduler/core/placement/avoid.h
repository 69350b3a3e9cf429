/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that jobs avoid.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_AVOID_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_AVOID_H

#include "scheduler/core/model/model.h"

struct model;

/* Makes the pending job avoid the node, unless it has no alternative. Returns whether it avoids the
 * node; false for a gang. */
bool avoid_begin(struct model *m, struct job *j, int64_t node, struct stamp now);
/* The same for at most AVOID_MS, after an attempt failed for what may be the node's alone. */
void avoid_for_now(struct model *m, struct job *j, int64_t node, struct stamp now);
/* as stored, without a check for alternatives */
void avoid_set(struct model *m, struct job *j, int64_t node);
void avoid_end(struct model *m, struct job *j); /* no-op if it avoids none */
void avoid_drop(struct job *j);                 /* it leaves the model */
/* When a job stops avoiding its node, with the event; MONO_NONE: never. */
struct mono avoid_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
