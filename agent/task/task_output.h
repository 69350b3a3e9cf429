/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's output on its way to belayd, and its end, which waits for that.
 *
 * Invariants.
 *  1. The end is told (end_told) once the shipper has no more of it to ship, or does not come on:
 *     the rest then goes beside the end (task_tail).
 *  2. Nothing is remembered: belayd says how much it has (log_shipper.h).
 *
 * It owns the path; the shipper borrows it, and runs from the task's start to task_release.
 */
#ifndef BELAY_AGENT_TASK_TASK_OUTPUT_H
#define BELAY_AGENT_TASK_TASK_OUTPUT_H

#include "agent/task/log_shipper.h"
#include "base/timers.h"

struct task_output {
    char *path; /* NULL as the task's directory is */
    struct log_shipper shipper;
    struct timer tell; /* the end, though its output is not with belayd */
    bool end_told;     /* or to be told now */
};

#endif
