/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocking work of a task, done on a thread: one piece at a time per task (and a snapshot).
 *
 * Invariants.
 *  1. From task_work_start until done runs, struct task_work and what it borrows (seen, the
 *     snapshot, the directories) belong to the thread; the loop only sets cancel and reads kind,
 *     store, pace and pulse.
 *  2. done runs once, on the loop, and not after the task is released.
 *  3. The thread reads only members of the task that do not change after its start: the spec, its
 *     directories, job and attempt. It has a copy of the secrets, which is wiped afterwards.
 */
#ifndef BELAY_AGENT_TASK_TASK_WORK_H
#define BELAY_AGENT_TASK_TASK_WORK_H

#include "agent/supervisor/spares.h"
#include "agent/task/job_store.h"
#include "agent/task/store_threads.h"
#include "agent/task/workdir.h"
#include "base/wire/wire.h"
#include <stdatomic.h>

struct task;

/* part of a save's time reserved for its manifest and for reporting a failure */
#define TASK_COMMIT_MS 300

enum work_kind {
    WORK_NONE,
    WORK_PREPARE,
    WORK_DUMP,
    WORK_SAVE,
    WORK_CLEAN,
    WORK_FIND,
    WORK_REMOVE
};

struct task_work {
    enum work_kind kind;
    struct store_work on_store; /* of the kinds that use the store */
    atomic_int cancel;
    struct store_pulse pulse; /* of the store that the thread uses */
    bool waits;         /* waits for its turn; if neither waits nor lacks, the thread has it */
    bool lacks;         /* waits for the secrets */
    int64_t started_ms; /* monotonic */
    void (*done)(struct task *t);
    bool is_given_up; /* the thread is not waited for: done does not run */
    /* in */
    int64_t deadline_ms; /* of a save or a dump, monotonic; 0 = none */
    bool dumps_stopped;  /* the processes stay stopped after the dump */
    char store[1024], cluster[64];
    int64_t sequence, progress; /* -1 = unknown */
    /* of a gang's save: why this rank cannot save; NULL if it can. Borrowed */
    const struct err *refused;
    /* of preparing: a directory that it may use; of a removal: the spare that it may become */
    struct spare spare;
    /* of a removal: the checkpoint directory may be of use to a later attempt */
    bool keeps;
    struct wire_secrets secrets; /* wiped when it is done */
    struct store_net *net;       /* the job's or the node's */
    bool needs_secrets;
    struct ckpt_snapshot *snapshot; /* to be saved; NULL to save the directory. Borrowed */
    struct ckpt_pace pace;          /* of a save */
    struct workdir_source workdir;  /* of preparing, if one was sent with the job */
    /* out */
    int rc;
    struct err e;
    bool is_spare; /* of a removal: it was kept as a spare */
    bool fenced;   /* a later attempt owns the job */
    /* of preparing: CRIU's checkpoint is not encrypted and therefore not restored */
    bool is_unsealed;
    bool user_refused; /* of preparing: the user has no account here, or none that may run jobs */
    bool store_failed; /* rc is an error of the store or of its content */
    bool of_records;   /* with ERR_NO_SPACE: for the agent's own records */
    enum task_store store_fault;
    int64_t dump_ms;
    struct ckpt_restored restored;
    struct ckpt_stats stats;
    int64_t kept_bytes;           /* of WORK_CLEAN */
    struct wire_checkpoint found; /* sequence 0 = none found */
};

/* Starts work; done runs on the loop. */
void task_work_start(struct task *t, enum work_kind kind, void (*done)(struct task *t));
void task_work_cancel(struct task *t); /* cancels work under way or waiting; done still runs */
void task_work_init(struct task *t);
/* call when there are secrets: continues work that waits for them */
void task_work_secrets(struct task *t);
bool task_work_uses_store(const struct task *t); /* if it is busy */
static inline bool task_work_is_busy(const struct task_work *w)
{
    return w->kind != WORK_NONE;
}

#endif
