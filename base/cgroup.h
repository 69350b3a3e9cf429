/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the cgroup directories of a process (cgroups(7)). /proc/self/mountinfo lists the mounted
 * hierarchies, and /proc/PID/cgroup names the process's group in each; the functions parse these
 * texts. Pure. Groups are created and changed in base/uv/cgroups.h.
 */
#ifndef BELAY_BASE_CGROUP_H
#define BELAY_BASE_CGROUP_H

#include <stdbool.h>

/* A hierarchy: that of v2, or the v1 hierarchy with this controller. */
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

/* Finds the first mount of the hierarchy; skips paths with escaped characters (\040). False:
 * none. */
bool cgroup_mount_find(
    const char *mountinfo, enum cgroup_kind kind, struct cgroup_mount *ret_mount);
void cgroup_mount_deinit(struct cgroup_mount *m);

/* The group's name in the hierarchy ("/", "/a/b"; for a removed group "/a/b (deleted)"), from the
 * text of a /proc/PID/cgroup; NULL: none. The caller frees it. */
char *cgroup_name(const char *text, enum cgroup_kind kind);

/* The group's directory, at or below m->point. NULL if the group is outside of the mounted part, or
 * outside of this process's cgroup namespace ("/..", cgroup_namespaces(7)). The caller frees it. */
char *cgroup_mount_dir(const struct cgroup_mount *m, const char *name);

#endif
