/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a process's cgroups are (cgroups(7)): from the texts of /proc/self/mountinfo, which has the
 * mounted hierarchies, and of /proc/PID/cgroup, which names the process's group in each. Pure. What
 * changes groups is base/uv/cgroups.h.
 */
#ifndef BELAY_BASE_CGROUP_H
#define BELAY_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

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

/* The group's name in the hierarchy ("/", "/a/b"; of a removed group "/a/b (deleted)"), from the
 * text of a /proc/PID/cgroup; NULL if it has none. The caller frees it. */
char *cgroup_name(const char *text, enum cgroup_kind kind);

/* Where a group is in the first mount of a hierarchy. */
struct cgroup_found {
    bool is_mounted; /* the hierarchy */
    char *dir;       /* the caller frees it; NULL if the group cannot be seen */
    size_t top_len;  /* of the mount point, with which dir begins: above it there are no groups */
};
/* The directory of the group called name (NULL: of none). It cannot be seen if it is outside of
 * what is mounted, or of this process's cgroup namespace ("/..", cgroup_namespaces(7)). Mounts with
 * escaped characters (\040) are passed over. */
void cgroup_find(
    const char *mountinfo, enum cgroup_kind kind, const char *name, struct cgroup_found *ret_at);

#endif
