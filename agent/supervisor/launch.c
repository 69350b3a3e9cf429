/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/launch.h"

#include "agent/criu/criu_sandbox.h"
#include "agent/supervisor/limits.h"
#include "agent/open_in_time.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUSY_TRIES 200 /* x 5 ms */

static void report(int fd, enum launch_step step, int value)
{
    const struct launch_report r = {.step = step, .value = value};
    ssize_t n = write(fd, &r, sizeof(r)); /* smaller than PIPE_BUF, so atomic */
    (void)n;
}

void launch_reset_signals(void)
{
    sigset_t none;
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- the script's process ---- */

int launch_become_user(const struct job_user *u)
{
    limits_unprotect();
    return user_become(u);
}

static int set_files(const struct launch *l)
{
    /* at 10 or above, where dup2 to 0, 1 and 2 does not close them */
    int output = fcntl(l->output, F_DUPFD_CLOEXEC, 10),
        error = fcntl(l->error, F_DUPFD_CLOEXEC, 10), null = open("/dev/null", O_RDONLY);
    if (output < 0 || error < 0 || null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 ||
        dup2(error, 2) < 0)
        return -1;
    if (null > 2)
        close(null);
    return 0;
}

static int open_input(const struct launch *l)
{
    if (!l->input)
        return 0;
    int fd = open_in_time(l->input, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0, l->input_wait_ms);
    return fd < 0 || dup2(fd, 0) < 0 ? -1 : 0;
}

/* The file may still be open for writing in a child that the agent just forked and that has not
 * reached its exec. */
static void exec_script(const struct launch *l)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int i = 0; i < BUSY_TRIES; i++) {
        execve(l->script, l->argv, l->env);
        if (errno != ETXTBSY)
            return;
        nanosleep(&pause, NULL);
    }
}

/* Returns LAUNCH_CLOSED if the user cannot execute the task's own script, whose mode permits it.
 * The node is then at fault: its directory is mounted noexec, or a parent denies access. Keeps
 * errno. */
static enum launch_step at_fault(const struct launch *l, enum launch_step step)
{
    int why = errno;
    bool is_closed = why == EACCES && access(l->script, X_OK) < 0 && errno == EACCES;
    errno = why;
    return is_closed ? LAUNCH_CLOSED : step;
}

/* A rank without a script waits in "/", where it keeps no mount busy, until it is killed. */
static void wait_for_kill(void)
{
    if (chdir("/") == 0)
        prctl(PR_SET_NAME, "belay-wait", 0, 0, 0);
    for (;;)
        pause();
}

static void run_script(const struct launch *l, int to_supervisor)
{
    int keep = fcntl(to_supervisor, F_DUPFD_CLOEXEC, 10);
    enum launch_step step = LAUNCH_FILES;
    setsid();
    launch_reset_signals();
    if (!l->alone)
        report(keep, LAUNCH_READY, getpid());
    umask(022);
    if (set_files(l) == 0) {
        step = LAUNCH_USER;
        if (launch_become_user(l->user) == 0) {
            if (l->has_no_script)
                wait_for_kill();
            step = LAUNCH_CWD;
            if (chdir(l->cwd) == 0) {
                step = LAUNCH_INPUT;
                if (open_input(l) == 0) {
                    step = LAUNCH_EXEC;
                    exec_script(l);
                }
            }
            step = at_fault(l, step);
        }
    }
    report(keep, step, errno);
    _exit(127);
}

/* ---- the init ---- */

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void launch_close_from(int from, int *keep, size_t n)
{
    qsort(keep, n, sizeof(*keep), by_number);
    for (size_t i = 0; i < n; i++) {
        if (keep[i] > from)
            close_range((unsigned)from, (unsigned)keep[i] - 1, 0);
        if (keep[i] >= from)
            from = keep[i] + 1;
    }
    close_range((unsigned)from, ~0U, 0);
}

void launch_close_all_but(int a, int b, int c, int d)
{
    launch_close_from(0, (int[]){a, b, c, d}, 4);
}

static void wait_for_all(pid_t script, int to_supervisor)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        if (pid == script)
            report(to_supervisor, LAUNCH_ENDED, status);
        else if (pid < 0 && errno != EINTR)
            _exit(0);
    }
}

static void fail(int to_supervisor, enum launch_step step)
{
    report(to_supervisor, step, errno);
    _exit(127);
}

static void close_output(const struct launch *l)
{
    if (l->error != l->output)
        close(l->error);
    close(l->output);
}

static void start_script(const struct launch *l, int to_supervisor)
{
    pid_t script = fork();
    if (script == 0)
        run_script(l, to_supervisor);
    if (script < 0)
        fail(to_supervisor, LAUNCH_FORK);
    close_output(l);
    wait_for_all(script, to_supervisor);
}

static void run_first(const struct launch *l, int to_supervisor)
{
    struct err e;
    if (criu_sandbox_enter(l->sandbox) < 0)
        fail(to_supervisor, LAUNCH_SANDBOX);
    if (l->restore) {
        if (criu_sandbox_restore(l->restore, l->user, l->output, &e))
            fail(to_supervisor, LAUNCH_RESTORE);
        close_output(l);
        report(to_supervisor, LAUNCH_READY, CRIU_ROOT_PID);
        wait_for_all(CRIU_ROOT_PID, to_supervisor);
    }
    if (criu_sandbox_prepare_pid() < 0)
        fail(to_supervisor, LAUNCH_SANDBOX);
    start_script(l, to_supervisor);
}

/* From here on the sandbox's first process reports to the supervisor. When it ends, the kernel
 * kills every process in the sandbox. */
static void make_sandbox(const struct launch *l, int to_supervisor)
{
    pid_t first = criu_sandbox_separate() < 0 ? -1 : fork();
    if (first == 0)
        run_first(l, to_supervisor);
    if (first < 0)
        fail(to_supervisor, LAUNCH_SANDBOX);
    close(to_supervisor);
    close_output(l);
    wait_for_all(0, -1);
}

static void run_init(const struct launch *l, int to_supervisor, int gate, int entered)
{
    char go;
    for (int s = 1; s < NSIG; s++)
        signal(s, s == SIGCHLD ? SIG_DFL : SIG_IGN);
    if (entered < 0) {
        report(to_supervisor, LAUNCH_GROUP, -entered);
        _exit(127);
    }
    launch_close_all_but(to_supervisor, gate, l->output, l->error);
    prctl(PR_SET_NAME, "belay-init", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (read(gate, &go, 1) != 1)
        _exit(0);
    close(gate);
    if (l->sandbox)
        make_sandbox(l, to_supervisor);
    start_script(l, to_supervisor);
}

/* gate: both ends are -1 if the script runs alone. Returns 0, or -1 with errno set. */
static int make_pipes(const struct launch *l, int up[2], int gate[2])
{
    gate[0] = gate[1] = -1;
    if (pipe2(up, O_CLOEXEC) < 0)
        return -1;
    if (l->alone || pipe2(gate, O_CLOEXEC) == 0)
        return 0;
    int why = errno;
    close(up[0]);
    close(up[1]);
    errno = why;
    return -1;
}

static _Noreturn void run(const struct launch *l, int to_supervisor, int gate, int entered)
{
    if (!l->alone)
        run_init(l, to_supervisor, gate, entered);
    else if (entered < 0)
        report(to_supervisor, LAUNCH_GROUP, -entered);
    else
        run_script(l, to_supervisor);
    _exit(127);
}

/* ENOSPC from fork means a cpuset without processors, or a limit on namespaces. It must not be
 * taken for a full disk. */
static int no_process(int why, struct err *e)
{
    err_errno(e, why, "starting a process");
    if (e->kind == ERR_NO_SPACE)
        e->kind = ERR_IO;
    return e->kind;
}

int launch_start(const struct launch *l, struct launched *ret_launched, struct err *e)
{
    int up[2], gate[2], entered = 0;
    if (make_pipes(l, up, gate) < 0)
        return err_errno(e, errno, "making a pipe");
    pid_t pid = proc_group_fork(l->group, &entered);
    if (pid == 0)
        run(l, up[1], gate[0], entered);
    int why = errno;
    close(up[1]);
    if (gate[0] >= 0)
        close(gate[0]);
    if (pid < 0) {
        close(up[0]);
        if (gate[1] >= 0)
            close(gate[1]);
        return no_process(why, e);
    }
    fcntl(up[0], F_SETFL, O_NONBLOCK);
    *ret_launched = (struct launched){.report = up[0], .gate = gate[1]};
    *(l->alone ? &ret_launched->script : &ret_launched->init) = pid;
    return 0;
}
