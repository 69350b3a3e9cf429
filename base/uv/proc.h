/* SPDX-License-Identifier: Apache-2.0
 *
 * Containment of process trees: everything that a process started, found and killed. Used by the
 * agent's supervisor for a task and by the emulator for a whole instance.
 *
 * Three ways, the best that the machine allows: a cgroup v2 directory (cgroup.kill); on a hybrid
 * machine, a directory in each writable v1 hierarchy (freezer, memory, cpu, pids) together with the
 * v2 one; without either, the caller is a child subreaper and descendants are found by walking
 * /proc. In every way proc_group_kill_all returns only when nothing of the tree is left, or the
 * deadline passed. Calls block for at most their deadline.
 *
 * In subreaper mode every descendant of the caller belongs to its group: a process that minds
 * several trees (the emulator) starts a process of its own for each, which holds the group.
 */
#ifndef BELAY_BASE_UV_PROC_H
#define BELAY_BASE_UV_PROC_H

#include "base/err.h"
#include "base/uv/usage.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum proc_mode { PROC_CGROUP2, PROC_CGROUP_HYBRID, PROC_SUBREAPER };

/* A character device by its number. */
struct proc_device {
    unsigned major, minor;
};

#define PROC_DEVICES_MAX 64

struct proc_limits {
    /* 0: none. There is no swap beyond it: on cgroup v2 none at all, on v1 so much of memory and
     * swap together. */
    int64_t memory_bytes;
    int64_t cpus_milli; /* 0: no weight or quota; 1000 = one CPU, as a weight, never a hard cap */
    int64_t pids_max;   /* 0: none */
    /* that the group may not open; n_denied of them, PROC_DEVICES_MAX at most */
    const struct proc_device *denied;
    size_t n_denied;
};

struct proc_group;

#define PROC_NAME_MAX 100

/* Creates the group `name` below the caller's own cgroups, or re-opens it after a restart of the
 * caller. The name is checked by str_is_name and has at most PROC_NAME_MAX bytes, else ERR_INVALID.
 * The calling process becomes a child subreaper in every mode. Falls back to the next mode without
 * an error; proc_group_mode returns the mode. Limits that the machine does not let us set are left
 * out; proc_group_lacks names them. Where cgroup v2 needs it and systemd has delegated the caller's
 * own cgroup, the processes in that cgroup move into a child of it. limits may be NULL. */
int proc_group_open(const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e);
/* For who makes many: where this process, and what it forks, makes its groups, looked up (and set
 * up, as said above) once. */
struct proc_home;
struct proc_home *proc_home_find(void);
void proc_home_free(struct proc_home *h);
int proc_group_open_in(const struct proc_home *home, const char *name,
    const struct proc_limits *limits, struct proc_group **ret_group, struct err *e);
/* As above in this mode or not at all (ERR_UNSUPPORTED): for tests. */
int proc_group_open_mode(const char *name, const struct proc_limits *limits, enum proc_mode mode,
    struct proc_group **ret_group, struct err *e);
enum proc_mode proc_group_mode(const struct proc_group *g);

/* Why a limit that was asked for is not in force: an errno; 0: it is, or was not asked for. That of
 * swap is only missed on a machine that has some. A weight of CPUs is no limit. */
enum proc_limit { PROC_MEMORY, PROC_SWAP, PROC_PIDS, PROC_DEVICES, PROC_LIMIT_KINDS };
int proc_group_lacks(const struct proc_group *g, enum proc_limit kind);

/* fork() of a process with one thread: the child is in the group, by clone3(CLONE_INTO_CGROUP)
 * where the machine has it, and every descriptor above 2 is marked close-on-exec there (libraries
 * open some that are not). *ret_entered, in the child: 0, or -errno when it could not enter
 * (-EBUSY: on cgroup v2, after something in the group has made groups of its own). */
pid_t proc_group_fork(const struct proc_group *g, int *ret_entered);

/* The same for a child that was forked already, before its exec. Async-signal-safe; 0 or -errno as
 * above. */
int proc_group_enter(const struct proc_group *g);

/* Signals every process in the group (subreaper mode: every descendant of the caller but none of
 * the caller's own threads); returns how many got it. */
int proc_group_signal(struct proc_group *g, int signum);

/* As above, but only processes that catch, block or wait for the signal: to ask programs that know
 * it for something, without ending the others (shells) by its default action. */
int proc_group_signal_handlers(struct proc_group *g, int signum);

/* As above, but those that `wants` says. */
int proc_group_signal_if(
    struct proc_group *g, int signum, bool (*wants)(void *ctx, pid_t pid), void *ctx);

/* SIGKILLs until nothing is left or timeout_ms passed (ERR_TIMEOUT, naming a pid that would not
 * die). Reaps those of the killed that are or became the caller's children, except keep_pid (0:
 * none), whose status the caller wants to read itself. */
int proc_group_kill_all(struct proc_group *g, pid_t keep_pid, int64_t timeout_ms, struct err *e);

/* Kills all descendants of pid and pid itself, by walking /proc; for a tree of which the caller is
 * an ancestor or has the right. pid is held still and dies last, so that its orphans (it is their
 * subreaper, or has none that left it) stay findable. pid itself is not reaped. Same deadline
 * rule. */
int proc_tree_kill(pid_t pid, int64_t timeout_ms, struct err *e);

/* Nothing is in it: cheaper than a kill that meets nobody. In subreaper mode: the caller has no
 * child. */
bool proc_group_is_empty(const struct proc_group *g);

/* Which files tell what it uses; without cgroups all "". */
void proc_group_usage_files(const struct proc_group *g, struct usage_files *ret_files);

/* Removes the (empty) cgroup directories and frees. NULL is fine. */
void proc_group_close(struct proc_group *g, bool remove);

/* Identity of a process that survives pid reuse: its start time in clock ticks since boot, or 0 if
 * it is gone (or a zombie). */
uint64_t proc_start_ticks(pid_t pid);

#endif
