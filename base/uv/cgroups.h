/* SPDX-License-Identifier: Apache-2.0
 *
 * The cgroup directories of one group of processes: one in the v2 hierarchy and, on a machine with
 * v1 hierarchies, one in each of these below the caller's own group: memory and cpu; freezer if v2
 * cannot kill; pids if their number is limited; devices if some are denied and v2 cannot deny them.
 * Directories that cannot be made are left out; one is enough to keep the processes together.
 */
#ifndef BELAY_BASE_UV_CGROUPS_H
#define BELAY_BASE_UV_CGROUPS_H

#include "base/cgroup.h"
#include "base/err.h"
#include "base/uv/proc.h"
#include <stddef.h>

struct cgroup_dir {
    char *path;   /* may be NULL */
    int entry_fd; /* descriptor for entering the group: the directory (v2) or its tasks file (v1) */
};

/* The groups below which this process creates its own. */
struct cgroup_home {
    struct {
        char *dir;  /* NULL if unavailable in this hierarchy */
        char *name; /* its name in /proc/PID/cgroup */
    } at[CGROUP_KINDS];
    bool has_v1; /* v1 hierarchies with controllers that belay uses are mounted */
    /* v1 directories of cpu, memory and pids are reused for later groups: creating and removing one
     * costs as much as starting a process. One of memory only if the group before left almost no
     * memory in it. */
    bool keeps;
    struct cgroup_kept {
        struct cgroup_dir dir;
        bool is_lent; /* in use by an open group */
    } kept[CGROUP_KINDS];
};

struct cgroups {
    struct cgroup_dir dirs[CGROUP_KINDS];
    struct cgroup_kept *lent[CGROUP_KINDS]; /* directories borrowed from the home; may be NULL */
    int lacks[PROC_LIMIT_KINDS];            /* as proc_group_lacks returns it */
    bool can_kill;                          /* v2 has cgroup.kill (Linux 5.14) */
    char *v2_name;                          /* name of the v2 directory in /proc/PID/cgroup */
};

struct pids {
    pid_t *pids;
    size_t n, cap;
};

void pids_deinit(struct pids *p);
void pids_add(struct pids *p, pid_t pid); /* adds no duplicates */
bool pids_has(const struct pids *p, pid_t pid);

/* with_v1 = false makes only the v2 directory. ERR_UNSUPPORTED if none could be made. Limits that
 * the machine does not let us set are left out and recorded in lacks. */
int cgroups_open(struct cgroups *c, struct cgroup_home *home, const char *name,
    const struct proc_limits *limits, bool with_v1, struct err *e);
/* For a group without any directory: every requested limit is recorded in lacks. limits may be
 * NULL. */
void cgroups_lack_all(struct cgroups *c, const struct proc_limits *limits);
/* For a process with one thread. Async-signal-safe. Returns 0 or -errno. */
int cgroups_enter(const struct cgroups *c);
/* fork() into the group; the child gets the result of entering (0 or -errno) in *ret_entered. The
 * caller has one thread. */
pid_t cgroups_fork(const struct cgroups *c, int *ret_entered);
/* Every live process in the group or in a group below it. */
void cgroups_list(const struct cgroups *c, struct pids *out);
/* True if there is no such process. Processes added concurrently may be missed. */
bool cgroups_is_empty(const struct cgroups *c);
/* Kills everything in the group once, including frozen processes; adds what it saw to seen and
 * returns the number of processes it found. */
size_t cgroups_kill_round(const struct cgroups *c, struct pids *seen);
/* Whether a process (also a zombie) is or was last in the v2 group. */
bool cgroups_owns(const struct cgroups *c, pid_t pid);
/* the files may not exist: readers find out */
void cgroups_usage_files(const struct cgroups *c, struct usage_files *ret_files);
/* remove: also removes the directories, which must be empty. */
void cgroups_close(struct cgroups *c, bool remove);

/* Finds the caller's own groups and enables controllers for the groups below. Also valid for the
 * processes it forks. */
void cgroup_home_find(struct cgroup_home *h);
/* Removes the directories that this process keeps. */
void cgroup_home_drop(struct cgroup_home *h);
/* Removes directories kept by processes that have died. */
void cgroup_home_prune(const struct cgroup_home *h);
void cgroup_home_deinit(struct cgroup_home *h);

#endif
