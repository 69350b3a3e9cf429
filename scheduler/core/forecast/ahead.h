/* SPDX-License-Identifier: Apache-2.0
 *
 * Who stands before a job in the queue. Reads only.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_AHEAD_H
#define BELAY_SCHEDULER_CORE_FORECAST_AHEAD_H

#include "scheduler/core/forecast/explain.h"

#define AHEAD_SHOWN 3

struct ahead_job {
    int64_t job;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    char why[64]; /* main reason why it is before the job */
};

struct ahead {
    /* Number of jobs in pools that both may use; an array counts as the tasks that could run
     * now. */
    int64_t n;
    /* false: estimated from queue positions, because there are too many to count */
    bool exact;
    size_t n_first;
    struct ahead_job first[AHEAD_SHOWN];
};

/* False: the job is not in the queue. Bounded: examines shapes, and at most QUEUE_WALK_MAX jobs. */
bool core_ahead(const struct model *m, struct stamp now, int64_t job, struct ahead *ret_ahead);

#endif
