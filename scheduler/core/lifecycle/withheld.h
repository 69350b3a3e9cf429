/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that belayd keeps from their agents.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_WITHHELD_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_WITHHELD_H

#include "scheduler/core/model/model.h"

struct model;

void withheld_end(struct model *m, struct attempt *a); /* it is ASSIGNED no more */
/* When the first has been withheld for as long as it may be, and the event; MONO_NONE: none is. */
struct mono withheld_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
