/* SPDX-License-Identifier: Apache-2.0
 *
 * What an end counts as, whether the job is queued again after it (requeue.h), and after what
 * pause. How often it may be is in retry_counts.h.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_RULES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_RETRY_RULES_H

#include "scheduler/core/model/model.h"

struct verdict {
    enum end_kind end; /* effective end */
    bool requeues;
    char text[CORE_TEXT_MAX]; /* reason if it differs from the reported end; else "" */
};
/* Counts the end in the row's retries. saved: the attempt committed a checkpoint. */
struct verdict retry_judge(struct job_row *j, enum end_kind end, bool saved);
/* Delay of a requeued job, initially 0: avoids fast loops of programs that fail at once and of
 * nodes that cannot start jobs. excused: it saved, or its node, a possible cause, is gone. ran_ms:
 * time since placement. Deadline jobs are not delayed. */
int64_t retry_pause(struct job_row *j, enum end_kind end, bool excused, int64_t ran_ms);
/* So many starts in a row found no space that it is held. */
bool retry_is_held_for_space(const struct job_row *j);

#endif
