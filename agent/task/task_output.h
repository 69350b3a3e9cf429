/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's output on its way to belayd. The task's end is reported after it.
 *
 * Invariants.
 *  1. The end is reported (end_reported) once the shipper has nothing left to ship, or makes no
 *     progress: the rest is then sent together with the end (task_tail).
 *  2. No state is stored: belayd says how much it has (log_shipper.h).
 *
 * It owns the path; the shipper borrows it, and runs from the task's start to task_release.
 */
#ifndef BELAY_AGENT_TASK_TASK_OUTPUT_H
#define BELAY_AGENT_TASK_TASK_OUTPUT_H

#include "agent/task/log_shipper.h"
#include "base/timers.h"

struct task_output {
    char *path; /* NULL when the task's directory is */
    struct log_shipper shipper;
    struct timer report_due; /* reports the end although belayd lacks some output */
    int64_t released;        /* bytes that the supervisor knows to be on belayd's disk */
    bool end_reported;       /* the end is reported, or about to be */
};

#endif
