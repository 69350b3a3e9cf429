/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: machines in use.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_SUPPLY_STATE_H
#define BELAY_SCHEDULER_CORE_SUPPLY_SUPPLY_STATE_H

#include "base/list.h"
#include "scheduler/core/model/model.h"

struct supply_state {
    struct capacity used;   /* by all pools together (offers.c) */
    struct list costly;     /* attempts on on-demand machines, longest first (launch.c) */
    struct list prefetches; /* empty nodes that were told to prefetch (prefetch.c) */
};

#endif
