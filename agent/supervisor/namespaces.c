/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/namespaces.h"

#include "agent/supervisor/launch.h"
#include "agent/supervisor/proc_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define TABLE "/proc/self/mountinfo"

/* ---- the node's ---- */

static int open_node(struct namespaces *n)
{
    n->ipc = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    n->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    n->node_table = open(TABLE, O_RDONLY | O_CLOEXEC);
    n->own_table = -1;
    return n->ipc < 0 || n->mounts < 0 || n->node_table < 0 ? -1 : 0;
}

static void close_all(struct namespaces *n)
{
    int *fds[] = {&n->ipc, &n->mounts, &n->node_table, &n->own_table};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Whether the table of mounts has changed since the last call: poll(2) says so once (proc(5)). */
static bool has_changed(int table)
{
    struct pollfd p = {.fd = table, .events = POLLPRI};
    return poll(&p, 1, 0) != 0;
}

/* ---- the task's ---- */

/* Later mounts outside appear inside too where the node's mounts are shared (systemd's default);
 * never the other way round. Inside, mounts are shared among the task's own mount namespaces,
 * because rootless podman warns if `/` is not shared. */
static int separate_mounts(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
                   mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0
               ? -1
               : 0;
}

/* False if /dev/shm is missing, or not a directory (a symbolic link). */
static bool find_shm(struct namespaces_shm *ret_shm)
{
    *ret_shm = (struct namespaces_shm){0};
    return lstat(SHM, &ret_shm->root) == 0 && S_ISDIR(ret_shm->root.st_mode) &&
           statfs(SHM, &ret_shm->used) == 0;
}

/* Whether /dev/shm still has no file and its root is unchanged. A remount with another size shows
 * in the table of mounts instead. */
static bool is_unused(const struct namespaces_shm *was, const struct namespaces_shm *is)
{
    return was->root.st_dev == is->root.st_dev && was->root.st_mode == is->root.st_mode &&
           was->root.st_uid == is->root.st_uid && was->root.st_gid == is->root.st_gid &&
           was->root.st_ctim.tv_sec == is->root.st_ctim.tv_sec &&
           was->root.st_ctim.tv_nsec == is->root.st_ctim.tv_nsec &&
           was->used.f_ffree == is->used.f_ffree;
}

static int mount_shm(struct namespaces *n, int64_t mib)
{
    struct namespaces_shm below;
    char options[64] = "mode=1777";
    if (mib > 0)
        snprintf(options, sizeof(options), "mode=1777,size=%lldm", (long long)mib);
    if (!find_shm(&below))
        return 0;
    if (mount("belay-shm", SHM, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -1;
    n->has_shm = find_shm(&n->shm);
    return 0;
}

static bool unmount_shm(struct namespaces *n)
{
    n->has_shm = false;
    return umount2(SHM, UMOUNT_NOFOLLOW) == 0;
}

static int fill(struct namespaces *n, const struct namespaces_want *want)
{
    if (separate_mounts() < 0 || (want->ipc && mount_shm(n, want->shm_mib) < 0))
        return errno;
    return want->hides_processes ? proc_mount_cover() : 0;
}

/* Returns 0, or errno with nothing changed. */
static int enter(struct namespaces *n, const struct namespaces_want *want)
{
    int why = 0, here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (open_node(n) < 0 || unshare(CLONE_NEWNS | (want->ipc ? CLONE_NEWIPC : 0)) < 0)
        why = errno;
    n->is_inside = why == 0;
    n->has = *want;
    if (!why)
        why = fill(n, want);
    if (!why && (n->own_table = open(TABLE, O_RDONLY | O_CLOEXEC)) < 0)
        why = errno;
    if (why) {
        if (namespaces_leave(n) && here >= 0 && fchdir(here) < 0)
            why = errno;
        close_all(n);
    }
    if (here >= 0)
        close(here);
    return why;
}

/* Reuses the namespaces that were kept from the task before. False if they do not match what is
 * wanted, or if a mount has changed since, inside or on the node. */
static bool enter_kept(struct namespaces *n, const struct namespaces_want *want)
{
    if (!n->is_kept || n->has.ipc != want->ipc || n->has.hides_processes != want->hides_processes ||
        has_changed(n->node_table) || has_changed(n->own_table))
        return false;
    if (want->ipc && !(n->has_shm && n->has.shm_mib == want->shm_mib)) {
        if ((n->has_shm && !unmount_shm(n)) || mount_shm(n, want->shm_mib) < 0)
            return false;
        has_changed(n->own_table); /* by that mount */
    }
    n->has = *want;
    n->is_kept = false;
    return true;
}

static int explain(int why, const struct namespaces_want *want, struct err *e)
{
    const char *option = want->ipc ? "private_ipc: no" : "hide_processes: no";
    if (why == 0)
        return 0;
    if (why == EPERM)
        return err_set(e, ERR_UNSUPPORTED,
            "separating a task from the node: %s: the agent needs CAP_SYS_ADMIN; without it, set "
            "%s",
            strerror(why), option);
    if (why == ENOSPC)
        return err_set(e, ERR_UNSUPPORTED,
            "separating a task from the node: %s: raise user.max_mnt_namespaces and "
            "user.max_ipc_namespaces (sysctl)",
            strerror(why));
    if (why == ENOTSUP)
        return err_set(e, ERR_UNSUPPORTED,
            "separating a task from the node: a separate /proc needs Linux 5.8: set "
            "hide_processes: yes (remounts the node's /proc), or no");
    return err_set(e, ERR_UNSUPPORTED, "separating a task from the node: %s", strerror(why));
}

int namespaces_enter(struct namespaces *n, const struct namespaces_want *want, struct err *e)
{
    if (enter_kept(n, want))
        return 0;
    if (!namespaces_leave(n))
        return err_set(
            e, ERR_INTERNAL, "leaving the namespaces of the task before: %s", strerror(errno));
    return explain(enter(n, want), want, e);
}

int namespaces_try(const struct namespaces_want *want, struct err *e)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(enter(&(struct namespaces){0}, want));
    if (pid < 0)
        return err_errno(e, errno, "starting a process");
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_errno(e, errno, "waiting for a process");
    return explain(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, want, e);
}

/* Drops the task's shared memory, semaphores and message queues. A /dev/shm that it has not used
 * stays for the next task. False if a part of it failed. */
static bool drop_ipc(struct namespaces *n)
{
    struct namespaces_shm now;
    if (n->has_shm && !(find_shm(&now) && is_unused(&n->shm, &now))) {
        if (!unmount_shm(n))
            return false;
        has_changed(n->own_table); /* by that unmount */
    }
    return unshare(CLONE_NEWIPC) == 0;
}

bool namespaces_keep(struct namespaces *n)
{
    if (!n->is_inside)
        return true;
    if (has_changed(n->own_table) || (n->has.ipc && !drop_ipc(n)))
        return namespaces_leave(n);
    n->is_kept = true;
    return true;
}

int namespaces_watched(const struct namespaces *n)
{
    return n->is_inside ? n->node_table : -1;
}

bool namespaces_leave(struct namespaces *n)
{
    if (!n->is_inside)
        return true;
    if (setns(n->ipc, CLONE_NEWIPC) < 0 || setns(n->mounts, CLONE_NEWNS) < 0 || chdir("/") < 0)
        return false;
    close_all(n);
    n->is_inside = n->is_kept = n->has_shm = false;
    return true;
}

size_t namespaces_fds(const struct namespaces *n, int ret_fds[NAMESPACES_FDS_MAX])
{
    const int fds[NAMESPACES_FDS_MAX] = {n->ipc, n->mounts, n->node_table, n->own_table};
    if (!n->is_inside)
        return 0;
    memcpy(ret_fds, fds, sizeof(fds));
    return NAMESPACES_FDS_MAX;
}
