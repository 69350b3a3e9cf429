/* SPDX-License-Identifier: Apache-2.0
 *
 * Default limits of a task on its node: enough for any program, but not so much that the node
 * fails.
 */
#ifndef BELAY_AGENT_SUPERVISOR_LIMITS_H
#define BELAY_AGENT_SUPERVISOR_LIMITS_H

#include "base/uv/proc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct limits {
    int64_t memory_mib; /* for a job that requested no memory; 0 = no limit */
    int64_t pids;       /* processes and threads of a task; 0 = no limit */
    bool no_new_privs;  /* set-uid programs and file capabilities give a task nothing (prctl(2)) */
    bool private_ipc;   /* each task has its own shared memory (namespaces.h) */
    bool hides_processes; /* a task sees no processes of other users (namespaces.h) */
};

/* Processes and threads of a task by default: 32768, but at most half of what the machine
 * (kernel.pid_max) and the agent's cgroup (pids.max) allow, so that no task can use up all. A limit
 * of 0 is not known. The result is at least LIMITS_PIDS_MIN. */
#define LIMITS_PIDS_MIN 16
int64_t limits_pids_default(int64_t pid_max, int64_t group_max);
/* Same for this machine; root = "", or a directory that holds its proc/ and sys/. */
int64_t limits_pids_measure(const char *root);

/* The machine's memory minus what the system and the agent need: a twentieth, at least 256 MiB and
 * at most 4 GiB; on small machines a quarter. */
int64_t limits_memory_default_mib(int64_t machine_mib);

/* To arguments of a command line, at most LIMITS_WORDS_MAX including the final NULL, stored in
 * text; and back. False if they are not understood. */
#define LIMITS_WORDS_MAX 6
#define LIMITS_TEXT_MAX 64
void limits_write(
    const struct limits *l, char text[LIMITS_TEXT_MAX], char *ret_words[LIMITS_WORDS_MAX]);
bool limits_read(int n, char *const *words, struct limits *ret_limits);

/* Which warnings this agent has logged; in memory shared with its forked children. */
struct limits_warned {
    atomic_bool limits, devices;
};
struct limits_warned *limits_warned_create(void); /* never freed */
/* Logs which limits of a task are not in force, why, and what to do: once per agent, and once more
 * for devices. */
void limits_warn(struct limits_warned *w, const struct proc_group *g);

/* protect: spares the agent and its supervisors when the machine runs out of memory (OOM killer).
 * unprotect: undoes that in a child of the supervisor that becomes a task's program;
 * async-signal-safe. */
void limits_protect(void);
void limits_unprotect(void);

#endif
