/* SPDX-License-Identifier: Apache-2.0
 *
 * Who stands before a job in the queue. Reads only.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_AHEAD_H
#define BELAY_SCHEDULER_CORE_FORECAST_AHEAD_H

#include "scheduler/core/forecast/explain.h"

#define AHEAD_TOLD 3

struct ahead_job {
    int64_t job;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    char why[64]; /* it stands before: what counts the most for it */
};

struct ahead {
    int64_t n; /* jobs, an array as many as of it could run now; in pools that both may use */
    /* else worked out from how far they reach: there are too many to be counted one by one */
    bool exact;
    size_t n_first;
    struct ahead_job first[AHEAD_TOLD];
};

/* False: the job is not in the queue. Bounded: it looks at shapes, and at so many jobs at most as
 * QUEUE_WALK_MAX says. */
bool core_ahead(const struct model *m, struct stamp now, int64_t job, struct ahead *ret_ahead);

#endif
