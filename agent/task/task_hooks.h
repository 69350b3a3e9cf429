/* SPDX-License-Identifier: Apache-2.0
 *
 * The prolog and the epilog: programs of the node's operator that run before a job's program starts
 * and after its last process has ended, as the agent's own user (usually root).
 *
 * Invariants:
 *  1. A job cannot influence them. They have no file, descriptor, variable or directory of the job:
 *     only their arguments (prolog|epilog JOB ATTEMPT USER GPUS), whose characters belayd has
 *     checked, and PATH, HOME and LANG. They run only if nobody but root and the agent's user can
 *     change the file or a directory above it.
 *  2. Each has a deadline, after which it and all its children in its process group are killed.
 *  3. Only one runs for a task at a time. Until it has ended, the task keeps its GPUs.
 *  4. A restart of the agent kills it. The next agent runs an epilog again from its beginning; an
 *     attempt in its prolog has no records yet and is lost, so the job starts again.
 *
 * If one fails, the node is faulty (node_fault.h). An attempt whose prolog failed has not begun: it
 * ends as WIRE_END_CAPACITY, and the job runs elsewhere. The end of an attempt whose epilog failed
 * stays what it was. Before the end of a reclaim notice there is no epilog, because the machine is
 * gone afterwards.
 */
#ifndef BELAY_AGENT_TASK_TASK_HOOKS_H
#define BELAY_AGENT_TASK_TASK_HOOKS_H

#include "base/runner.h"
#include "base/wire/wire.h"
#include <stdbool.h>

struct task;

struct task_hooks {
    struct run *run; /* NULL = none runs */
    bool has_prolog_run, has_epilog_begun;
    void (*prolog_done)(struct task *t, const char *why);
    /* the end that waits for the epilog */
    enum wire_end end;
    int64_t code;
    char text[256];
};

/* 0 if nobody but root and this process's user can change the program. ERR_CONFIG with the
 * reason. */
int task_hooks_check(const char *program, struct err *e);

/* Runs the prolog unless it has run. True: it runs now, and done follows, with NULL or with why it
 * failed. False: there is none, or it has succeeded already. */
bool task_hooks_prolog(struct task *t, void (*done)(struct task *t, const char *why));
/* Runs the epilog if the task's program has run. True: task_end_now follows with these values, or
 * the task is waiting for it already. */
bool task_hooks_epilog(struct task *t, enum wire_end end, int64_t code, const char *text);
/* Kills a prolog: its done follows. */
void task_hooks_cancel_prolog(struct task *t);
/* Kills either, without done: the agent ends. */
void task_hooks_release(struct task *t);

#endif
