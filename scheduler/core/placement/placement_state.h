/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: conditions of placement besides free resources.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_STATE_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "scheduler/core/model/model.h"
#include "scheduler/core/placement/maintenance_row.h"

struct maintenance;
struct rack;

struct placement_state {
    struct list avoiding;            /* jobs that avoid a node, by the end of that (avoid.c) */
    struct map constraints;          /* struct constraints by id: of live jobs (constraints.c) */
    struct smap constraints_by_text; /* the same, by text */
    struct licence licences[LICENCES_MAX];             /* of the cluster (constraints.c) */
    size_t n_licences;                                 /* length of licences */
    struct rack *racks;                                /* of the options (racks.c) */
    size_t n_racks;                                    /* length of racks */
    struct maintenance *maintenance[MAINTENANCES_MAX]; /* NULL where there is none */
    struct list reserving; /* shapes with a search for nodes to reserve (reserve.c) */
};

#endif
