/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a task's directory that tell what happened to it, so that an agent that comes back
 * knows as much as the one that went:
 *
 *     spec.json        struct wire_desired with this one attempt, as belayd gave it but for its
 *                      struct wire_secrets (0600: its environment may hold a user's secrets)
 *     state.json       struct task_state, the agent's; not there as long as it says no more than
 *                      the spec (task_needs_state in task_start.c)
 *     supervisor.pid   "PID TICKS" (proc_start_ticks): a supervisor took the task; locked (flock)
 *                      as long as that lives. On the next line struct task_start: the program was,
 *                      or is about to be, started
 *     exit.json        struct task_exit: the program ended and nothing of it is left
 *     script, output.log, control/, checkpoint/, ctl.sock
 *
 * Files are replaced whole (rename), so a reader sees the old or the new. Only the exit.json of a
 * program that ran for a while is synced: the others are of no use after a crash of the machine,
 * which ends the attempt, and what took seconds is run again.
 */
#ifndef BELAY_AGENT_TASK_RECORD_H
#define BELAY_AGENT_TASK_RECORD_H

#include "agent/gpu/gpus.h"
#include "base/uv/usage.h"
#include "base/wire/wire.h"
#include <sys/types.h>

#define EXIT_CHECKPOINTED 85 /* the program's "checkpointed, continue me" */

/* Whose GPUs a node has; a word of state.json. UNKNOWN: it has some, and is treated as NVIDIA but
 * for what is NVIDIA's alone. */
enum gpu_maker { GPU_MAKER_NONE, GPU_MAKER_NVIDIA, GPU_MAKER_AMD, GPU_MAKER_UNKNOWN };

struct task_state {
    struct wire_attempt_status told; /* phase and output_bytes are not kept */
    bool prepared;                   /* the restore is over: told.restored_... count */
    bool saving;                     /* a save began and its end is not known */
    /* the last number that a save took; a gang's takes it when the ranks have met */
    int64_t sequence;
    int64_t saving_sequence; /* with saving; 0: sequence */
    int64_t saving_commit;   /* with saving: the commit that waits for it; 0 = none */
    int64_t last_saved_at;   /* wall ms; WIRE_NONE */
    int64_t saves_asked;     /* by users, that a save has answered */
    /* its time limit, if belayd said another than at its start; WIRE_NO_LIMIT; 0 */
    int64_t limit_ms;
    bool needs_secrets;       /* it had some, whatever its spec says */
    char criu[256];           /* with the method criu: the program */
    enum gpu_maker gpu_maker; /* of its node's GPUs */
    /* of them, those that are its own, in it before its program starts (gpus.h) */
    char gpus[GPUS_TEXT_MAX];
    /* the last checkpoint that CRIU could not bring back here; 0 = none */
    int64_t refused_attempt, refused_sequence;
    /* as what it was told to end; WIRE_END_NONE: it was not. A word that is not known here is read
     * as WIRE_END_USER */
    enum wire_end stop;
    char stop_text[256];
};

/* Why a program is no more. */
enum exit_cause {
    EXIT_BY_ITSELF,
    EXIT_STOPPED,   /* we told it to end */
    EXIT_TIMEOUT,   /* its time limit */
    EXIT_NO_EXEC,   /* it could not be started; text says why */
    EXIT_SHUTDOWN,  /* the machine goes down */
    EXIT_LOST,      /* its supervisor died; the rest was killed */
    EXIT_NO_RESTORE /* CRIU could not bring it back; text says why */
};

struct task_exit {
    enum exit_cause cause;
    int64_t code;        /* 0 .. 255; 128 + signal */
    int64_t signal;      /* 0: exited */
    int64_t ended_at;    /* wall ms */
    int64_t memory_peak; /* bytes; 0 unknown */
    int64_t cpu_ms;      /* of the processor, by all that it started; 0 unknown */
    int64_t cpu_user_ms; /* of that, in user mode; 0 unknown */
    char text[256];      /* for people; "" when there is nothing to add */
};

struct task_start {
    int64_t started_at; /* wall ms */
    /* the process above all of the task's; 0: they are found by its cgroup */
    int64_t init_pid, init_ticks;
    struct usage_files usage; /* what tells what it uses */
};

/* path is the file's. Reading: ERR_NOT_FOUND, ERR_INVALID when malformed: of a spec that may be
 * what was written of it before a kill. */
int record_read_spec(
    const char *path, struct wire_desired *ret_spec, struct err *e); /* exactly one attempt */
int record_write_spec(const char *path, const struct wire_desired_attempt *spec, struct err *e);
int record_read_state(const char *path, struct task_state *ret_state, struct err *e);
int record_write_state(const char *path, const struct task_state *state, struct err *e);
void record_deinit_state(struct task_state *state);
int record_read_exit(const char *path, struct task_exit *ret_exit, struct err *e);
int record_write_exit(const char *path, const struct task_exit *exit, bool sync, struct err *e);
/* The supervisor's file. ERR_NOT_FOUND, too: its second line, with an end, is not there. fd is at
 * its end. */
int record_read_start(const char *path, struct task_start *ret_start, struct err *e);
int record_add_start(int fd, const struct task_start *start, struct err *e);

/* Replaces a file whole, without a sync. mode is its owner's alone. */
int record_put(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

/* The same of a file that is not there, or that nobody reads yet: a kill in the middle leaves a
 * part of it. */
int record_put_new(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

/* A state in which nothing is known yet. */
void record_init_state(struct task_state *ret_state, int64_t job, int64_t attempt);

#endif
