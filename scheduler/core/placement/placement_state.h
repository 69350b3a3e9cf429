/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: what places depend on beside free resources.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_STATE_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/core/model/model.h"

struct rack;

struct placement_state {
    struct list avoiding;            /* jobs that avoid a node, by when that ends (avoid.c) */
    struct map constraints;          /* struct constraints by id: of live jobs (constraints.c) */
    struct smap constraints_by_text; /* the same, by text */
    struct licence licences[LICENCES_MAX]; /* of the cluster (constraints.c) */
    size_t n_licences;                     /* of them */
    struct rack *racks;                    /* those of the options (racks.c) */
    size_t n_racks;                        /* of them */
    struct list reserving;                 /* shapes that nodes were looked for (reserve.c) */
};

#endif
