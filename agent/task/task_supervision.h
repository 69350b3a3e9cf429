/* SPDX-License-Identifier: Apache-2.0
 *
 * State of a task's processes: the supervisor, their requested and actual end, and their resource
 * usage.
 *
 * Invariants.
 *  1. exited: `exit` is valid; has_exit: it is also on disk (exit.json). Both are reset in one
 *     case: when a restore by CRIU failed and an older checkpoint is tried (task_start.c).
 *  2. Where a cgroup counts what the processes use, usage names its files; init_pid is for where
 *     none does. Both describe running processes: usage_at is MONO_NONE until they are found
 *     running.
 *  3. killing and hard_at are never reset; a later notice may move hard_at.
 *
 * The client runs on the task's loop. task_release detaches it from the supervisor, which
 * continues.
 */
#ifndef BELAY_AGENT_TASK_TASK_SUPERVISION_H
#define BELAY_AGENT_TASK_TASK_SUPERVISION_H

#include "agent/supervisor/supervisor_client.h"
#include "agent/task/record.h"
#include "base/timers.h"
#include "base/uv/usage.h"

struct task_supervision {
    struct supervisor_client client;
    bool is_up;            /* the supervisor takes commands */
    bool exited;           /* exit is known */
    bool has_exit;         /* from exit.json, where a restarted agent reads the same */
    bool killing;          /* belayd has dropped the task: it is killed and removed */
    struct timer deadline; /* for the program's answer to a stop */
    struct mono hard_at;   /* of a reclaim: when everything must have ended; or MONO_NONE */
    struct task_exit exit;
    /* files that show what its processes use; "" = no cgroup does, or it does not run */
    struct usage_files usage;
    /* ancestor of all its processes, for where no cgroup counts; 0 = it does not run */
    int64_t init_pid, init_ticks;
    struct mono usage_at; /* time of the last reading, or when it was found running; or MONO_NONE */
    int64_t usage_cpu_ms; /* CPU time used by then; -1 = not known */
};

/* Reads its resource usage into *usage, at most every few seconds. Blocks while it reads a few
 * files. */
void task_supervision_read_usage(
    struct task_supervision *s, struct mono now, struct wire_usage *usage);

#endif
