/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches a task's working directory (workdir.h) while something else is done, for a thread that
 * prepares the task: from task_work.c's, within its invariants.
 */
#ifndef BELAY_AGENT_TASK_TASK_WORKDIR_H
#define BELAY_AGENT_TASK_TASK_WORKDIR_H

#include "agent/supervisor/user.h"
#include "base/err.h"
#include <pthread.h>
#include <stdbool.h>

struct task;

struct task_workdir {
    struct task *t;
    const struct job_user *u;
    struct err e;
    int rc;
    bool is_parallel; /* the thread is to be joined */
    pthread_t thread;
};

/* Fetches the directory, if one was sent with the job, and gives it to the user. parallel: on a
 * thread of its own, if there can be one; otherwise it blocks, and rc says whether to go on. *b
 * must live until task_workdir_end. */
void task_workdir_begin(
    struct task_workdir *b, struct task *t, const struct job_user *u, bool parallel);
/* Waits until it is there. Returns 0, or the kind of *e; errors of workdir_fetch. */
int task_workdir_end(struct task_workdir *b, struct err *e);

#endif
