/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: one part for each folder of the core, defined in the header of that folder. Only the
 * owner's files name a part; other folders use FOLDER/FOLDER_access.h and the headers of its
 * modules. tests/rooms checks it; check.c and check_jobs.c, which compare the parts, may see all.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_STATE_H
#define BELAY_SCHEDULER_CORE_MODEL_STATE_H

#include "scheduler/core/deadline/deadline_state.h"
#include "scheduler/core/forecast/forecast_state.h"
#include "scheduler/core/ledger/ledger_state.h"
#include "scheduler/core/lifecycle/lifecycle_state.h"
#include "scheduler/core/model/model_state.h"
#include "scheduler/core/placement/placement_state.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_state.h"
#include "scheduler/core/supply/supply_state.h"

struct model {
    struct model_options options; /* set at creation; every folder may read it */
    struct model_rows rows;
    struct model_changes changes;
    struct model_versions versions;
    struct model_loading loading;
    struct lifecycle_state lifecycle;
    struct queue_state queue;
    struct placement_state placement;
    struct supply_state supply;
    struct deadline_state deadline;
    struct forecast_state forecast;
    struct ledger_state ledger;
};

#endif
