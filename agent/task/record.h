/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a task's directory that record its state, so that a restarted agent knows as much as
 * the one before:
 *
 *     spec.json        struct wire_desired with this one attempt, as belayd gave it, without its
 *                      struct wire_secrets (0600: its environment may hold a user's secrets)
 *     state.json       struct task_state, the agent's; absent as long as it says no more than
 *                      the spec (task_needs_state in task_start.c)
 *     supervisor.pid   "PID TICKS" (proc_start_ticks): a supervisor took the task; locked (flock)
 *                      as long as that lives. On the next line struct task_start: the program was,
 *                      or is about to be, started
 *     exit.json        struct task_exit: the program ended and no process of it is left
 *     script, output.log, control/, checkpoint/, ctl.sock
 *
 * Files are replaced atomically (rename). Only the exit.json of a program that ran for a while is
 * synced: a crash of the machine ends the attempt, which makes the other files useless, and a
 * program that took seconds is run again.
 */
#ifndef BELAY_AGENT_TASK_RECORD_H
#define BELAY_AGENT_TASK_RECORD_H

#include "agent/gpu/gpus.h"
#include "base/uv/usage.h"
#include "base/wire/wire.h"
#include <sys/types.h>

#define EXIT_CHECKPOINTED 85 /* the program's "checkpointed, continue me" */

/* The vendor of a node's GPUs; a word of state.json. UNKNOWN: treated as NVIDIA, except for what
 * only NVIDIA has. */
enum gpu_maker { GPU_MAKER_NONE, GPU_MAKER_NVIDIA, GPU_MAKER_AMD, GPU_MAKER_UNKNOWN };

struct task_state {
    struct wire_attempt_status reported; /* phase and output_bytes are not stored */
    bool prepared;                       /* the restore is over: reported.restored_* are valid */
    bool saving;                         /* a save began, and its outcome is not recorded */
    /* number of the last save; a gang's save takes it when all ranks have arrived */
    int64_t sequence;
    int64_t saving_sequence; /* with saving; 0 = sequence */
    int64_t saving_commit;   /* with saving: the commit that waits for it; 0 = none */
    int64_t last_saved_at;   /* wall ms; WIRE_NONE */
    int64_t saves_asked;     /* saves asked for by users that have been served */
    /* its time limit if belayd changed it after the start; WIRE_NO_LIMIT; 0 = unchanged */
    int64_t limit_ms;
    bool needs_secrets;       /* the task had secrets, although its spec has none */
    char criu[256];           /* with the method criu: path of the program */
    enum gpu_maker gpu_maker; /* vendor of the node's GPUs */
    /* GPUs given to this task, recorded before its program starts (gpus.h) */
    char gpus[GPUS_TEXT_MAX];
    /* the last checkpoint that CRIU failed to restore here; 0 = none */
    int64_t refused_attempt, refused_sequence;
    /* the end that was requested; WIRE_END_NONE = none. Unknown words are read as
     * WIRE_END_CANCELLED */
    enum wire_end stop;
    char stop_text[256];
};

/* Why a program ended. */
enum exit_cause {
    EXIT_BY_ITSELF,
    EXIT_STOPPED,    /* the agent stopped it */
    EXIT_TIMEOUT,    /* reached its time limit */
    EXIT_NO_EXEC,    /* it could not be started; text says why */
    EXIT_SHUTDOWN,   /* the machine shuts down */
    EXIT_LOST,       /* its supervisor died; the remaining processes were killed */
    EXIT_NO_RESTORE, /* CRIU could not restore it; text says why */
    EXIT_CLOSED      /* its user may execute nothing below the agent's directory; text says why */
};

struct task_exit {
    enum exit_cause cause;
    int64_t code;        /* 0 .. 255; 128 + signal */
    int64_t signal;      /* 0 = exited */
    int64_t ended_at;    /* wall ms */
    int64_t memory_peak; /* bytes; 0 = unknown */
    int64_t cpu_ms;      /* CPU time of all its processes; 0 = unknown */
    int64_t cpu_user_ms; /* part of it in user mode; 0 = unknown */
    char text[256];      /* for people; "" = nothing to add */
};

struct task_start {
    int64_t started_at; /* wall ms */
    /* ancestor of all processes of the task; 0 = they are found by the cgroup */
    int64_t init_pid, init_ticks;
    struct usage_files usage; /* files that show its resource usage */
};

/* Whether a task's directory has this file. */
bool record_exists(const char *dir, const char *name);

/* path is the file's. Reading: ERR_NOT_FOUND, or ERR_INVALID when malformed; a spec can be
 * malformed because the agent was killed while writing it. */
int record_read_spec(
    const char *path, struct wire_desired *ret_spec, struct err *e); /* exactly one attempt */
int record_write_spec(const char *path, const struct wire_desired_attempt *spec, struct err *e);
int record_read_state(const char *path, struct task_state *ret_state, struct err *e);
int record_write_state(const char *path, const struct task_state *state, struct err *e);
void record_deinit_state(struct task_state *state);
int record_read_exit(const char *path, struct task_exit *ret_exit, struct err *e);
int record_write_exit(const char *path, const struct task_exit *exit, bool sync, struct err *e);
/* The supervisor's file. ERR_NOT_FOUND also if its second line is missing or incomplete. fd must be
 * at its end. */
int record_read_start(const char *path, struct task_start *ret_start, struct err *e);
int record_add_start(int fd, const struct task_start *start, struct err *e);

/* Replaces a file atomically, without a sync. mode must give rights to the owner only. */
int record_put(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

/* Same for a file that does not exist or is not read yet. A kill in the middle leaves a partial
 * file. */
int record_put_new(const char *path, const void *p, size_t n, mode_t mode, struct err *e);

/* Initial state, with nothing known yet. */
void record_init_state(struct task_state *ret_state, int64_t job, int64_t attempt);

#endif
