/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a GPU is throttled so much, by its load of one minute, that its node should get no new
 * jobs. Pure.
 */
#ifndef BELAY_TELEMETRY_THROTTLE_H
#define BELAY_TELEMETRY_THROTTLE_H

#include "telemetry/diagnose.h"

/* In order of severity. */
enum gpu_throttle { GPU_THROTTLE_NONE, GPU_THROTTLE_POWER, GPU_THROTTLE_BOARD, GPU_THROTTLE_HEAT };

/* Uses the limits thermal, power and clock, as diagnose does for a job. */
enum gpu_throttle gpu_throttle_of(const struct gpu_load *l, const struct diagnose_limits *limits);

#endif
