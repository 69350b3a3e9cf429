/* SPDX-License-Identifier: Apache-2.0
 *
 * Containment of process trees: finds and kills everything that a process started. Used by the
 * agent's supervisor for a task and by the emulator for a whole instance.
 *
 * There are three modes; the best available is used. PROC_CGROUP2: a cgroup v2 directory
 * (cgroup.kill). PROC_CGROUP_HYBRID: a directory in each writable v1 hierarchy (freezer, memory,
 * cpu, pids) together with the v2 one. PROC_SUBREAPER: the caller is a child subreaper, and
 * descendants are found by walking /proc. In every mode proc_group_kill_all returns only when
 * nothing of the tree is left, or the deadline has passed. Calls block for at most their deadline.
 *
 * In subreaper mode every descendant of the caller belongs to its group. So a process with several
 * trees (the emulator) starts one holder process per tree.
 */
#ifndef BELAY_BASE_UV_PROC_H
#define BELAY_BASE_UV_PROC_H

#include "base/cgroup.h"
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
    /* 0 = unlimited. Swap cannot exceed it either: on cgroup v2 no swap at all, on v1 this limit
     * for memory and swap together. */
    int64_t memory_bytes;
    int64_t cpus_milli; /* CPU weight, never a hard cap; 1000 = one CPU, 0 = default weight */
    int64_t pids_max;   /* 0 = unlimited */
    /* devices that the group may not open; n_denied entries, at most PROC_DEVICES_MAX */
    const struct proc_device *denied;
    size_t n_denied;
};

struct proc_group;

#define PROC_NAME_MAX 100

/* Creates the group `name` below the caller's own cgroups, or re-opens it after a restart of the
 * caller. ERR_INVALID unless name passes str_is_name with at most PROC_NAME_MAX bytes. The calling
 * process becomes a child subreaper in every mode. Falls back to the next mode without an error;
 * proc_group_mode returns the mode. Limits that the machine does not let us set are left out;
 * proc_group_lacks reports them. Where cgroup v2 requires it and systemd has delegated the caller's
 * own cgroup, the processes in that cgroup move into a child of it. limits may be NULL. */
int proc_group_open(const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e);
/* For a caller that makes many groups: locates (and, as above, prepares) the parent of this
 * process's groups once. Also valid for the processes it forks. */
struct proc_home;
struct proc_home *proc_home_find(void);
/* Also removes the directories kept for later groups. h may be NULL. */
void proc_home_free(struct proc_home *h);
/* The group must be closed before the home is freed. */
int proc_group_open_in(struct proc_home *home, const char *name, const struct proc_limits *limits,
    struct proc_group **ret_group, struct err *e);
/* Writes the descriptors kept for this process's next group to ret_fds, at most one of each
 * hierarchy; returns their number. */
#define PROC_HOME_FDS_MAX CGROUP_KINDS
size_t proc_home_fds(const struct proc_home *home, int ret_fds[PROC_HOME_FDS_MAX]);
/* Removes the directories that this process keeps. Call it before the process ends, unless it frees
 * the home. */
void proc_home_drop(struct proc_home *home);
/* Removes directories kept by processes that died before they could remove them. */
void proc_home_prune(const struct proc_home *home);
/* As above, but only in this mode; otherwise ERR_UNSUPPORTED. For tests. */
int proc_group_open_mode(const char *name, const struct proc_limits *limits, enum proc_mode mode,
    struct proc_group **ret_group, struct err *e);
enum proc_mode proc_group_mode(const struct proc_group *g);

/* Why a requested limit is not in force: an errno; 0 if it is in force or was not requested.
 * PROC_SWAP is reported only on a machine with swap. A CPU weight is not a limit. */
enum proc_limit { PROC_MEMORY, PROC_SWAP, PROC_PIDS, PROC_DEVICES, PROC_LIMIT_KINDS };
int proc_group_lacks(const struct proc_group *g, enum proc_limit kind);

/* fork() of a process with one thread. The child is in the group, by clone3(CLONE_INTO_CGROUP)
 * where available, and every descriptor above 2 is marked close-on-exec there (libraries open some
 * that are not). *ret_entered, in the child: 0, or -errno if it could not enter (-EBUSY: on cgroup
 * v2, after a process in the group has made groups of its own). */
pid_t proc_group_fork(const struct proc_group *g, int *ret_entered);

/* The same for a child that was already forked, before its exec. Async-signal-safe; 0 or -errno as
 * above. */
int proc_group_enter(const struct proc_group *g);

/* Excludes a child of the caller from the group, also in subreaper mode: it is neither signalled
 * nor killed. Processes that it starts are in the group. */
void proc_group_spare(struct proc_group *g, pid_t pid);

/* Signals every process in the group (subreaper mode: every descendant of the caller, but none of
 * the caller's own threads); returns the number signalled. */
int proc_group_signal(struct proc_group *g, int signum);

/* As above, but only processes that catch, block or wait for the signal: sends a request to
 * programs that know the signal, without ending others (shells) by its default action. */
int proc_group_signal_handlers(struct proc_group *g, int signum);

/* As above, but only processes for which `wants` returns true. */
int proc_group_signal_if(
    struct proc_group *g, int signum, bool (*wants)(void *ctx, pid_t pid), void *ctx);

/* Repeats SIGKILL until nothing is left or timeout_ms has passed (ERR_TIMEOUT, naming a pid that
 * did not die). Reaps killed processes that are or became the caller's children, except keep_pid (0
 * = none), whose status the caller reads itself. */
int proc_group_kill_all(struct proc_group *g, pid_t keep_pid, int64_t timeout_ms, struct err *e);

/* Kills all descendants of pid and pid itself, by walking /proc; the caller must be an ancestor or
 * have the permission. pid is stopped first and killed last, so that its orphans stay findable (it
 * is their subreaper, or it has none that left it). pid itself is not reaped. Same deadline rule.
 */
int proc_tree_kill(pid_t pid, int64_t timeout_ms, struct err *e);

/* Whether the group is empty: cheaper than a kill that finds nothing. In subreaper mode: the caller
 * has no child. */
bool proc_group_is_empty(const struct proc_group *g);

/* The files that report the group's usage; all "" without cgroups. */
void proc_group_usage_files(const struct proc_group *g, struct usage_files *ret_files);

/* Frees; with remove also removes the cgroup directories, which must be empty. g may be NULL. */
void proc_group_close(struct proc_group *g, bool remove);

/* Identity of a process that survives pid reuse: its start time in clock ticks since boot; 0 if it
 * is gone or a zombie. */
uint64_t proc_start_ticks(pid_t pid);

#endif
