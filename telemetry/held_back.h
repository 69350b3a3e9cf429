/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a GPU is throttled so much, by its load of one minute, that its node should get no new
 * jobs. Pure.
 */
#ifndef BELAY_TELEMETRY_HELD_BACK_H
#define BELAY_TELEMETRY_HELD_BACK_H

#include "telemetry/diagnose.h"

/* In order of severity. */
enum held_back { HELD_BACK_NOT, HELD_BACK_BY_POWER, HELD_BACK_BY_BOARD, HELD_BACK_BY_HEAT };

/* Uses the limits thermal, power and clock, as diagnose does for a job. */
enum held_back held_back_by(const struct gpu_load *l, const struct diagnose_limits *limits);

#endif
