/* SPDX-License-Identifier: Apache-2.0
 *
 * What an end counts as, and whether the job is queued again.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_H

#include "scheduler/core/model/model.h"

struct verdict {
    enum end_kind end; /* what it counts as */
    bool again;
    char text[CORE_TEXT_MAX]; /* why that, when it is not what was reported; else "" */
};
/* Counts the end in the row's budgets. saved: the attempt committed a checkpoint. */
struct verdict retry_judge(struct job_row *j, enum end_kind end, bool saved);
/* How long a job that is queued again waits, 0 at first: a program that fails at once, and a node
 * that nothing can start on, are not tried as fast as they fail. excused: it has saved, or its node
 * is gone, and with it what may have been wrong. ran_ms: since it was placed. A job that is to be
 * done by some moment does not wait. */
int64_t retry_pause(struct job_row *j, enum end_kind end, bool excused, int64_t ran_ms);

#endif
