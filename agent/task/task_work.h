/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a task blocks, on a thread: one at a time a task (and a snapshot).
 *
 * Invariants.
 *  1. From task_work_start until done runs, struct task_work and what it borrows (seen, the
 *     snapshot, the directories) are the thread's; the loop sets cancel and reads kind and pace.
 *  2. done runs once, on the loop, and not after the task is released.
 *  3. The thread reads of the task only what does not change after its start: the spec, its
 *     directories, job and attempt. It has a copy of the secrets, which is wiped when it is done.
 */
#ifndef BELAY_AGENT_TASK_TASK_WORK_H
#define BELAY_AGENT_TASK_TASK_WORK_H

#include "agent/supervisor/spares.h"
#include "agent/task/workdir.h"
#include "base/wire/wire.h"
#include "ckpt/ckpt.h"
#include <stdatomic.h>

struct task;

/* of the time a save has: for its manifest, and for its failure to be told */
#define TASK_COMMIT_MS 300

/* What is wrong with the store that another attempt would not find better: the job is held for it
 * (prepare_failed). */
enum task_store {
    STORE_IS_FINE, /* or it is not known */
    /* it has no marker: it may still be mounted, so it is looked at again for a while */
    STORE_IS_MISSING,
    STORE_IS_ANOTHER,  /* another cluster's, or what it has of the job is another job's */
    STORE_HAS_LOST_IT, /* the job's last checkpoint */
    STORE_IS_DAMAGED,  /* all checkpoints of the job have failed verification */
    STORE_IS_REFUSED   /* CRIU could bring none of them back */
};

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
    atomic_int cancel;
    bool waits;         /* for its turn; else it is with the thread, or */
    bool lacks;         /* waits for secrets */
    int64_t started_ms; /* monotonic */
    void (*done)(struct task *t);
    /* in */
    int64_t deadline_ms; /* of a save or a dump, monotonic; 0 = none */
    bool dumps_stopped;  /* the processes stay stopped after the dump */
    char store[1024], cluster[64];
    int64_t sequence, progress; /* -1 unknown */
    /* of a gang's save: why this rank cannot. NULL: it can. Borrowed */
    const struct err *refused;
    /* of preparing: the directory that it may have; of a removal: as which it may be kept */
    struct spare spare;
    /* of a removal: what is in the checkpoint directory may be of use */
    bool keeps;
    struct wire_secrets secrets; /* wiped when it is done */
    struct store_net *net;       /* the job's or the node's */
    bool needs_secrets;
    struct ckpt_snapshot *snapshot; /* to be saved; NULL: the directory. Borrowed */
    struct ckpt_pace pace;          /* of a save */
    struct workdir_source workdir;  /* of preparing, if one was sent with the job */
    /* out */
    int rc;
    struct err e;
    bool is_spare;     /* of a removal: it was kept so */
    bool fenced;       /* a later attempt owns the job */
    bool is_unsealed;  /* of preparing: CRIU's checkpoint is not encrypted, and so not restored */
    bool store_failed; /* rc is of the store, or of what it had */
    enum task_store store_fault;
    int64_t dump_ms;
    struct ckpt_restored restored;
    struct ckpt_stats stats;
    int64_t kept_bytes;           /* of a cleaning */
    struct wire_checkpoint found; /* sequence 0: nothing */
};

/* Starts work; done runs on the loop. */
void task_work_start(struct task *t, enum work_kind kind, void (*done)(struct task *t));
void task_work_cancel(struct task *t); /* of what is under way or waits; done still runs */
void task_work_init(struct task *t);
void task_work_secrets(struct task *t); /* there are some: goes on if it waits for them */
static inline bool task_work_is_busy(const struct task_work *w)
{
    return w->kind != WORK_NONE;
}

#endif
