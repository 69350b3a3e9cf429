/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that jobs avoid.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_AVOID_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_AVOID_H

#include "scheduler/core/model/model.h"

struct model;

/* The pending job is not placed on the node, unless there is no other for it. Returns whether it
 * avoids the node; false for a gang. */
bool avoid_begin(struct model *m, struct job *j, int64_t node, struct stamp now);
/* The same for AVOID_MS at most, since an attempt could not use the store there. */
void avoid_for_store(struct model *m, struct job *j, int64_t node, struct stamp now);
void avoid_set(struct model *m, struct job *j, int64_t node); /* as stored, wherever else it fits */
void avoid_end(struct model *m, struct job *j);               /* if it avoids one */
void avoid_drop(struct job *j);                               /* it leaves the model */
/* When a job stops avoiding its node, and the event; MONO_NONE: none does. */
struct mono avoid_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
