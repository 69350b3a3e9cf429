/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a process's cgroups are (cgroups(7)): from the texts of /proc/self/mountinfo, which has the
 * mounted hierarchies, and of /proc/PID/cgroup, which names the process's group in each. Pure. What
 * changes groups is base/uv/cgroups.h.
 */
#ifndef BELAY_BASE_CGROUP_H
#define BELAY_BASE_CGROUP_H

#include <stdbool.h>

/* A hierarchy: the one of v2, or the one of v1 that has this controller. */
enum cgroup_kind {
    CGROUP_V2,
    CGROUP_FREEZER,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_PIDS,
    CGROUP_DEVICES,
    CGROUP_KINDS
};

struct cgroup_mount {
    char *root;  /* name of the group that is mounted; "/" = the whole hierarchy */
    char *point; /* its directory */
};

/* The hierarchy's first mount; those with escaped characters (\040) are passed over. False if there
 * is none. */
bool cgroup_mount_find(
    const char *mountinfo, enum cgroup_kind kind, struct cgroup_mount *ret_mount);
void cgroup_mount_deinit(struct cgroup_mount *m);

/* The group's name in the hierarchy ("/", "/a/b"; of a removed group "/a/b (deleted)"), from the
 * text of a /proc/PID/cgroup; NULL if it has none. The caller frees it. */
char *cgroup_name(const char *text, enum cgroup_kind kind);

/* The group's directory, not above m->point; NULL if it cannot be seen there: the group is outside
 * of what is mounted, or of this process's cgroup namespace ("/..", cgroup_namespaces(7)). The
 * caller frees it. */
char *cgroup_mount_dir(const struct cgroup_mount *m, const char *name);

#endif
