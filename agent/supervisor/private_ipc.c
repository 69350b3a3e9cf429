/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/private_ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHM "/dev/shm"

static int open_namespaces(struct private_ipc *p)
{
    p->ipc = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    p->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return p->ipc < 0 || p->mounts < 0 ? -1 : 0;
}

static void close_namespaces(struct private_ipc *p)
{
    if (p->ipc >= 0)
        close(p->ipc);
    if (p->mounts >= 0)
        close(p->mounts);
    p->ipc = p->mounts = -1;
}

/* What is mounted outside later on appears inside too where the node's mounts are shared, as
 * systemd makes them; never the other way round. Inside they are shared among what the task makes
 * of them:
 * rootless podman warns where `/` is not. */
static int separate_mounts(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
                   mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0
               ? -1
               : 0;
}

static int mount_shm(int64_t mib)
{
    char options[64] = "mode=1777";
    struct stat st;
    if (mib > 0)
        snprintf(options, sizeof(options), "mode=1777,size=%lldm", (long long)mib);
    if (lstat(SHM, &st) < 0 || !S_ISDIR(st.st_mode)) /* there is none, or it leads somewhere else */
        return 0;
    return mount("belay-shm", SHM, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

/* 0 or errno; then nothing has changed. */
static int enter(struct private_ipc *p, int64_t shm_mib)
{
    int why = 0, here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (open_namespaces(p) < 0 || unshare(CLONE_NEWIPC | CLONE_NEWNS) < 0)
        why = errno;
    p->is_inside = why == 0;
    if (!why && (separate_mounts() < 0 || mount_shm(shm_mib) < 0))
        why = errno;
    if (why) {
        if (private_ipc_leave(p) && here >= 0 && fchdir(here) < 0)
            why = errno;
        close_namespaces(p);
    }
    if (here >= 0)
        close(here);
    return why;
}

static int explain(int why, struct err *e)
{
    const char *cure = "";
    if (why == EPERM)
        cure = ": the agent needs CAP_SYS_ADMIN; if it may not have that, set private_ipc: no";
    else if (why == ENOSPC)
        cure = ": raise user.max_ipc_namespaces and user.max_mnt_namespaces (sysctl)";
    return why == 0 ? 0
                    : err_set(e, ERR_UNSUPPORTED, "giving a task its own shared memory: %s%s",
                          strerror(why), cure);
}

int private_ipc_enter(struct private_ipc *p, int64_t shm_mib, struct err *e)
{
    return explain(enter(p, shm_mib), e);
}

int private_ipc_try(struct err *e)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(enter(&(struct private_ipc){0}, 0));
    if (pid < 0)
        return err_errno(e, errno, "starting a process");
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_errno(e, errno, "waiting for a process");
    return explain(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR, e);
}

bool private_ipc_leave(struct private_ipc *p)
{
    if (!p->is_inside)
        return true;
    bool is_back =
        setns(p->ipc, CLONE_NEWIPC) == 0 && setns(p->mounts, CLONE_NEWNS) == 0 && chdir("/") == 0;
    close_namespaces(p);
    p->is_inside = !is_back;
    return is_back;
}
