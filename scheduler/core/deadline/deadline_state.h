/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: jobs with --finish-by.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_STATE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_STATE_H

#include "scheduler/core/model/model.h"
#include "scheduler/core/model/tree.h"

struct spot_observations;

struct deadline_state {
    struct procurement_options options;          /* set at creation */
    struct spot_observations *spot_observations; /* of spot offers (spot_observations.c) */
    struct tree by_look; /* jobs with a finish_ms, by their next examination (procurement.c) */
};

#endif
