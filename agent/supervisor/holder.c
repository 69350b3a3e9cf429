/* SPDX-License-Identifier: Apache-2.0
 *
 * The holder of a host's claim (see host.h): as a child subreaper it is an ancestor of everything
 * that the user data starts. It ends when the script does, or on SIGTERM, after it has killed all
 * its descendants; its lock on the file `hold` ends with it. So an unlocked file means that nothing
 * runs, unless the holder itself was killed.
 */
#include "agent/supervisor/holder.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/uv/proc.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_FD 3
#define KILL_WAIT_MS 15000

/* In the child: puts this program's directory first in PATH, so that its agent is used. */
static void set_environment(const char *dir)
{
    char exe[4096] = "";
    const char *path = getenv("PATH");
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *slash = n > 0 ? strrchr(exe, '/') : NULL;
    if (slash)
        *slash = '\0';
    char *full =
        mem_printf("%s:%s", slash ? exe : "", path ? path : "/usr/local/bin:/usr/bin:/bin");
    char *node = mem_printf("%s/node", dir);
    setenv("PATH", slash ? full : full + 1, 1);
    setenv("BELAY_NODE_DIR", node, 1);
    free(full);
    free(node);
}

static void exec_script(const char *dir)
{
    char sh[] = "/bin/sh", *script = mem_printf("%s/script", dir);
    char *argv[] = {sh, script, NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    umask(022);
    set_environment(dir);
    if (chdir(dir) == 0)
        execv(sh, argv);
    dprintf(2, "the user data cannot be run: %s\n", strerror(errno));
    _exit(127);
}

static int take_lock(const char *dir)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = mem_printf("%s/hold", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(path);
    return fd >= 0 && fcntl(fd, F_SETLK, &l) == 0 ? 0 : -1; /* stays open until this process ends */
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Reaps ended children; true if the script is among them. */
static bool has_ended(pid_t script)
{
    bool ended = false;
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
        ended = ended || pid == script;
    return ended;
}

static void wait_for_end(int signals, pid_t script)
{
    struct signalfd_siginfo s;
    for (;;) {
        ssize_t n = read(signals, &s, sizeof(s));
        if (n < 0 && errno == EINTR)
            continue;
        if (n != sizeof(s) || s.ssi_signo == SIGTERM || s.ssi_signo == SIGINT)
            return;
        if (s.ssi_signo == SIGCHLD && has_ended(script))
            return;
    }
}

int holder_main(const char *dir)
{
    struct proc_group *all = NULL;
    struct err e;
    fcntl(READY_FD, F_SETFD, FD_CLOEXEC);
    int signals = open_signals();
    if (signals < 0 || take_lock(dir) < 0 ||
        proc_group_open_mode("belay-host", NULL, PROC_SUBREAPER, &all, &e) != 0) {
        log_error(
            "this host already has a holder, or a holder cannot be set up", log_s("dir", dir));
        return 1;
    }
    pid_t script = fork();
    if (script < 0)
        log_error(
            "the user data cannot be started", log_s("dir", dir), log_s("error", strerror(errno)));
    if (script == 0)
        exec_script(dir);
    if (script > 0 && write(READY_FD, "", 1) == 1) {
        close(READY_FD);
        wait_for_end(signals, script);
    }
    /* Retries without limit: while a process is alive, the host is not free. */
    while (proc_group_kill_all(all, 0, KILL_WAIT_MS, &e) != 0)
        log_warn("processes cannot be killed", log_s("dir", dir), log_err(&e));
    proc_group_close(all, false);
    return script < 0;
}
