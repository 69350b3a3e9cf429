/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues a job again after an attempt: its node was reclaimed or lost, it was evicted, it failed
 * and has retries left. It keeps its place by age and resumes from its last checkpoint.
 *
 * attempts.c calls this at the end of the last rank, if retry_rules.h allows another attempt. A
 * user's belay requeue is in user_requeue.h, and ends here as well.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_REQUEUE_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_REQUEUE_H

#include "scheduler/core/model/model.h"

/* lost_ms: work since its last checkpoint, which the next attempt repeats. */
void job_requeue(struct model *m, struct job *j, int64_t lost_ms, struct stamp now);

#endif
