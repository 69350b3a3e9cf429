/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches, and moves to cheaper machines: what others need of them.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_LAUNCH_H
#define BELAY_SCHEDULER_CORE_SUPPLY_LAUNCH_H

#include "scheduler/core/model/model.h"

/* it can be stopped without losing anything: it has saved here, and the last save worked
 */
bool attempt_can_move(const struct attempt *a);

#endif
