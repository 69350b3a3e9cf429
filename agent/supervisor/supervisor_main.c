/* SPDX-License-Identifier: Apache-2.0
 *
 * belay-supervisor: the process that belay-agent asks for supervisors (supervisor_pool.h), and the
 * supervisors forked from it. Little is linked into it, because every fork copies its mappings.
 */
#include "agent/supervisor/supervisor_pool.h"
#include "agent/supervisor/supervisor.h"
#include "agent/supervisor/user.h"
#include "base/fds.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct request {
    char text[SUPERVISOR_POOL_MESSAGE_MAX + 2];
    const char *dir, *node;
    int agent_fd;
};

/* Returns 1 for a request, 0 for a malformed one, -1 when the agent has ended. */
static int receive(struct request *r)
{
    ssize_t n = fds_receive(
        SUPERVISOR_POOL_FD, r->text, SUPERVISOR_POOL_MESSAGE_MAX, 0, &r->agent_fd, 1, NULL);
    if (n <= 0)
        return n < 0 && errno == EINTR ? 0 : -1;
    r->text[n] = r->text[n + 1] = '\0';
    r->dir = r->text;
    r->node = r->text + strlen(r->text) + 1;
    return r->agent_fd >= 0;
}

/* Turns the forked child into a supervisor. Returns its exit code. */
static int become(const struct supervisor_common *common, const struct request *r)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (dup2(r->agent_fd, SUPERVISOR_AGENT_FD) < 0)
        return 1;
    return supervisor_main(common, r->dir, r->node);
}

static void fork_one(const struct supervisor_common *common, const struct request *r)
{
    pid_t pid = fork();
    if (pid == 0)
        exit(become(common, r));
    if (pid < 0)
        dprintf(r->agent_fd, "cannot fork: %s\n", strerror(errno));
    close(r->agent_fd);
}

static void reap(int signals)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof(info)) > 0)
        continue;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Looks up and loads in advance what the start of every task needs. */
static void warm_up(struct supervisor_common *ret_common)
{
    struct job_user ignored;
    struct err e;
    user_resolve("", &ignored, &e);
    tools_find(&ret_common->tools);
    ret_common->home = proc_home_find();
    proc_home_prune(ret_common->home);
    ret_common->warned = limits_warned_create();
    ret_common->shares = output_shares_create();
}

/* Runs until the agent ends. */
static int serve(const struct supervisor_common *common)
{
    struct request r;
    struct pollfd p[2] = {
        {.fd = SUPERVISOR_POOL_FD, .events = POLLIN}, {.fd = open_signals(), .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return 1;
        if (p[1].revents)
            reap(p[1].fd);
        if (!p[0].revents)
            continue;
        int got = receive(&r);
        if (got < 0)
            return 0;
        if (got > 0)
            fork_one(common, &r);
    }
}

int main(int argc, char **argv)
{
    int type = 0;
    socklen_t size = sizeof(type);
    log_init("belay-supervisor", LOG_INFO);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("belay-supervisor " BELAY_VERSION);
        return 0;
    }
    struct supervisor_common common = {0};
    if (!limits_read(argc - 1, argv + 1, &common.limits) ||
        getsockopt(SUPERVISOR_POOL_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
        type != SOCK_SEQPACKET) {
        fputs("belay-supervisor: only belay-agent can start this program\n", stderr);
        return 2;
    }
    fcntl(SUPERVISOR_POOL_FD, F_SETFD, FD_CLOEXEC);
    warm_up(&common);
    int code = serve(&common);
    proc_home_free(common.home);
    tools_deinit(&common.tools);
    return code;
}
