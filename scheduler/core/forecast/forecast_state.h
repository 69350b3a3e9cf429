/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: run times of ended jobs (runtimes.c).
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_FORECAST_STATE_H
#define BELAY_SCHEDULER_CORE_FORECAST_FORECAST_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/core/forecast/runtimes.h"

struct forecast_state {
    struct runtimes all; /* of all jobs */
    struct smap named;   /* struct named by user and name */
    struct list by_use;  /* the same, least recently used first */
};

#endif
