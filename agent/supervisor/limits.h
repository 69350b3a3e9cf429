/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task may use of its node when its job did not say: enough for any program, and not so much
 * that the node is lost.
 */
#ifndef BELAY_AGENT_SUPERVISOR_LIMITS_H
#define BELAY_AGENT_SUPERVISOR_LIMITS_H

#include "base/uv/proc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct limits {
    int64_t memory_mib; /* of a job that asked for no memory; 0 = none */
    int64_t pids;       /* processes and threads of a task; 0 = none */
    bool no_new_privs;  /* set-uid programs and file capabilities give a task nothing (prctl(2)) */
    bool private_ipc;   /* each task has its own shared memory (namespaces.h) */
    bool hides_processes; /* a task sees no processes of other users (namespaces.h) */
};

#define LIMITS_PIDS_DEFAULT 32768

/* All of the machine but what the system and the agent need: a twentieth, 256 MiB at least and 4
 * GiB at most, on small machines a quarter. */
int64_t limits_memory_default_mib(int64_t machine_mib);

/* As words of a command line, LIMITS_WORDS_MAX at most with the NULL behind them, in text; and
 * back. False: they are not understood. */
#define LIMITS_WORDS_MAX 6
#define LIMITS_TEXT_MAX 64
void limits_write(
    const struct limits *l, char text[LIMITS_TEXT_MAX], char *ret_words[LIMITS_WORDS_MAX]);
bool limits_read(int n, char *const *words, struct limits *ret_limits);

/* What was said in the log of this agent: in memory that it shares with what it forks. */
struct limits_warned {
    atomic_bool limits, devices;
};
struct limits_warned *limits_warned_create(void); /* never freed */
/* Logs which limits of a task are not in force, why, and what to do: once for all tasks, and once
 * more for devices. */
void limits_warn(struct limits_warned *w, const struct proc_group *g);

/* For a child of the supervisor that becomes a task's program: the agent and its supervisors are
 * spared when the machine's memory runs out, their tasks are not. Async-signal-safe. */
void limits_protect(void);
void limits_unprotect(void);

#endif
