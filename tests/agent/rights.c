/* SPDX-License-Identifier: Apache-2.0 */
#include "rights.h"

#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

bool may_unshare(int flags)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(flags) < 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool enter_own_mounts(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
