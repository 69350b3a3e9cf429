/* SPDX-License-Identifier: Apache-2.0
 *
 * The cgroup directories of one group of processes: one in the v2 hierarchy, and on a machine with
 * v1 hierarchies one in each of memory and cpu, in freezer where the v2 one cannot kill, in pids
 * where their number is limited, in devices where some are denied and the v2 one cannot do it,
 * below the caller's own place in each. As many as can be made; one is enough to hold the processes
 * together.
 */
#ifndef BELAY_BASE_UV_CGROUPS_H
#define BELAY_BASE_UV_CGROUPS_H

#include "base/err.h"
#include "base/uv/proc.h"
#include <stddef.h>

enum cgroup_kind {
    CGROUP_V2,
    CGROUP_FREEZER,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_PIDS,
    CGROUP_DEVICES,
    CGROUP_KINDS
};

/* Where the groups of a process are made. */
struct cgroup_home {
    struct {
        char *dir;  /* NULL: nowhere in this hierarchy */
        char *told; /* as /proc/PID/cgroup names it */
    } at[CGROUP_KINDS];
    bool has_v1; /* hierarchies with controllers that we use are mounted */
};

struct cgroups {
    struct {
        char *path;   /* NULL: there is none */
        int entry_fd; /* v2: it; v1: its tasks, for entering */
    } dirs[CGROUP_KINDS];
    int lacks[PROC_LIMIT_KINDS]; /* as proc_group_lacks */
    bool can_kill;               /* the v2 one, all at once (Linux 5.14) */
    char *v2_name;               /* the v2 one as /proc/PID/cgroup names it */
};

struct pids {
    pid_t *pids;
    size_t n, cap;
};

void pids_deinit(struct pids *p);
void pids_add(struct pids *p, pid_t pid); /* once */
bool pids_has(const struct pids *p, pid_t pid);

/* with_v1 false: the v2 directory alone. ERR_UNSUPPORTED if none could be made. Limits that the
 * machine does not let us set are left out, and lacked. */
int cgroups_open(struct cgroups *c, const struct cgroup_home *home, const char *name,
    const struct proc_limits *limits, bool with_v1, struct err *e);
/* Without any directory: all that is asked for is lacked. limits may be NULL. */
void cgroups_lack_all(struct cgroups *c, const struct proc_limits *limits);
/* For a process with one thread. Async-signal-safe; 0 or -errno. */
int cgroups_enter(const struct cgroups *c);
/* fork() into them; what entering came to (0 or -errno) is told to the child. The caller has one
 * thread. */
pid_t cgroups_fork(const struct cgroups *c, int *ret_entered);
/* Every live process in the group or in a group that was made below it. */
void cgroups_list(const struct cgroups *c, struct pids *out);
/* None of these; what processes put there since is not seen. */
bool cgroups_is_empty(const struct cgroups *c);
/* One stroke at everything in it, frozen processes too; adds what it saw to seen and returns how
 * many it met.
 */
size_t cgroups_strike(const struct cgroups *c, struct pids *seen);
/* Whether a process (a zombie too) is or was last in the v2 group. */
bool cgroups_owns(const struct cgroups *c, pid_t pid);
/* whether they are there shows when they are read */
void cgroups_usage_files(const struct cgroups *c, struct usage_files *ret_files);
/* remove: the directories too, which must be empty. */
void cgroups_close(struct cgroups *c, bool remove);

/* The caller's own place, where controllers are handed down to what is below. Holds for what it
 * forks, too. */
void cgroup_home_find(struct cgroup_home *h);
void cgroup_home_deinit(struct cgroup_home *h);

#endif
