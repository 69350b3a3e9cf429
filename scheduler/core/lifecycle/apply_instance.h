/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of instances: functions for other events.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_INSTANCE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_APPLY_INSTANCE_H

#include "scheduler/core/model/model.h"

void instance_reclaimed(struct model *m, struct instance *i, struct stamp now); /* counts it once */

#endif
