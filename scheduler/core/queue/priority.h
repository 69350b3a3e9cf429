/* SPDX-License-Identifier: Apache-2.0
 *
 * Priority of jobs, in units of waiting time. The position of a job is that of a job submitted
 * earlier or later by the sum of:
 *
 *   waited     time since it is eligible; time beyond `age_max` counts a sixteenth
 *   fair share fair * (2^-t + 2^-u / 4). t is the team's part of all usage, divided by its part of
 *              all shares; u the same for the user within the team. Only teams and users with jobs
 *              count
 *   boosts     of its QOS; of its size, for each doubling of its cpu usage; minus its `nice`
 *
 * Usage is in cpus: on each of its nodes a job uses the maximum of its cpus, its GPUs times
 * `gpu_mcpu` and its memory times `gib_mcpu`. Usage is halved after each half-life.
 *
 * Long waiting counts little and fair share much more. Teams that always have queued jobs
 * therefore use what their shares say. A job that waits long enough still reaches the front.
 *
 * Positions are computed in shares.c (shape_position_16) and compared in queue.c
 * (queue_position_order).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_PRIORITY_H
#define BELAY_SCHEDULER_CORE_QUEUE_PRIORITY_H

#include "scheduler/core/queue/policy.h"

/* The constant part of the priority without nice: QOS and size. */
int64_t priority_qos_ms(const struct queue_policy *o, const struct job_row *r);
int64_t priority_size_ms(const struct queue_policy *o, const struct job_row *r);
/* Priority of this waiting time, in sixteenths of a millisecond; monotonic. */
int64_t priority_age_16(const struct queue_policy *o, int64_t waited_ms);

/* Usage of one node of such a job, in thousandths of a cpu. */
int64_t priority_mcpu(const struct queue_policy *o, const struct resources *need);

/* value * 2^-(steps / PRIORITY_STEPS) in integers, equal on every machine. value: 0 .. 2^62;
 * steps >= 0. */
#define PRIORITY_STEPS 1024
int64_t priority_halve(int64_t value, int64_t steps);

#endif
