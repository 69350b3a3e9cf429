/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that belayd withholds from their agents.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_WITHHELD_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_WITHHELD_H

#include "scheduler/core/model/model.h"

struct model;

void withheld_end(struct model *m, struct attempt *a); /* it is not ASSIGNED any more */
/* When the first withheld attempt times out, with the event; MONO_NONE: never. */
struct mono withheld_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
