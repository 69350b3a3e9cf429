/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of a task's processes: its supervisor, how they are to end and have ended, what
 * they use.
 *
 * Invariants.
 *  1. exited says that exit counts, has_exit that it is on disk too (exit.json). They go back in
 *     one case: a restore that CRIU could not do is tried with an older checkpoint (task_start.c).
 *  2. Where a group tells what the processes use, usage names its files; init_pid is for where none
 *     does. Both are of processes that run: usage_at is MONO_NONE before they are found running.
 *  3. killing and hard_at are never taken back; a later notice may move hard_at.
 *
 * The client is one of the task's loop, which lets go of the supervisor with task_release; the
 * supervisor goes on.
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
    bool has_exit;         /* from exit.json: an agent to come will read the same there */
    bool killing;          /* belayd does not want it any more: it is killed, and forgotten */
    struct timer deadline; /* for the program's answer to a stop */
    struct mono hard_at;   /* with a reclaim: when all must be over; MONO_NONE */
    struct task_exit exit;
    /* what tells what its processes use; "": no group does, or it does not run */
    struct usage_files usage;
    /* above all of its processes, for where no group does; 0: it does not run */
    int64_t init_pid, init_ticks;
    struct mono usage_at; /* the last reading, or when it was found running; MONO_NONE */
    int64_t usage_cpu_ms; /* what it had used by then; -1 = not known */
};

/* Reads what it uses into *told, at most every few seconds. Blocks for a few reads of files. */
void task_supervision_read_usage(
    struct task_supervision *s, struct mono now, struct wire_usage *told);

#endif
