/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, and moves to cheaper machines: functions for other modules.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_LAUNCH_H
#define BELAY_SCHEDULER_CORE_SUPPLY_LAUNCH_H

#include "scheduler/core/model/model.h"

/* It can stop without losing work: it has saved here, and the last save succeeded. */
bool attempt_can_move(const struct attempt *a);

#endif
