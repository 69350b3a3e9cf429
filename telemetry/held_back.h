/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a GPU is held back so much that its node is to be given nothing new, from what it did in
 * a minute. Pure.
 */
#ifndef BELAY_TELEMETRY_HELD_BACK_H
#define BELAY_TELEMETRY_HELD_BACK_H

#include "telemetry/diagnose.h"

/* The worse, the greater. */
enum held_back { HELD_BACK_NOT, HELD_BACK_BY_POWER, HELD_BACK_BY_BOARD, HELD_BACK_BY_HEAT };

/* By the limits thermal, power and clock, as diagnose says it of a job. */
enum held_back held_back_by(const struct gpu_load *l, const struct diagnose_limits *limits);

#endif
