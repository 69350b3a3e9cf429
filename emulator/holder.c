/* SPDX-License-Identifier: Apache-2.0
 *
 * One poll loop: commands, SIGCHLD, the deadline. The holder is a child subreaper, so ECHILD ("no
 * child") means that the whole tree is gone; this is checked after every kill, and is how a
 * power-off is detected.
 */
#include "emulator/holder.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/proc.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_TIMEOUT_MS 10000
#define EXIT_NOT_FOUND 127
#define HOLDER_NICE (-15)

struct holder {
    const char *name, *dir, *console, *script;
    struct proc_group *group; /* in the best mode that the machine offers */
    struct proc_group *all;   /* everything below this process, by parentage */
    int signals_fd;
    struct mono kill_at;
    struct mono start_at; /* of the script; MONO_NONE if it does not start any more */
    pid_t script_pid;     /* 0 = none */
    bool has_script_ended, is_over;
    bool is_soft_off;  /* shutting down */
    bool is_last_term; /* the unit has ended: the rest has received SIGTERM */
    char line[HOLDER_LINE_MAX];
    size_t n_line;
};

void holder_group_name(const char *id, pid_t holder, char out[HOLDER_GROUP_MAX])
{
    snprintf(out, HOLDER_GROUP_MAX, "%s-%ld", id, (long)holder);
}

/* ---- The script ---- */

/* Deadlines must hold on a busy machine too. Best effort: without the permission it does nothing.
 */
static void set_priority(int nice_value)
{
    if (setpriority(PRIO_PROCESS, 0, nice_value) < 0)
        log_debug("cannot change the priority", log_i("wanted", nice_value));
}

/* Runs in the child. */
static void exec_script(struct holder *h)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    proc_group_enter(h->group);
    set_priority(0);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = open(h->console, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (setsid() < 0 || chdir(h->dir) < 0 || in < 0 || out < 0 || dup2(in, 0) < 0 ||
        dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(EXIT_NOT_FOUND);
    char *argv[] = {(char *)h->script, NULL};
    execve(h->script, argv, environ);
    dprintf(2, "user data: cannot run it: %s\n", strerror(errno));
    _exit(EXIT_NOT_FOUND);
}

static int start_script(struct holder *h, struct err *e)
{
    h->start_at = MONO_NONE;
    if (!h->script[0])
        return 0;
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(e, errno, "cannot start the user data");
    if (pid == 0)
        exec_script(h);
    h->script_pid = pid;
    return 0;
}

/* Reaps; true if no child is left. */
static bool is_empty(struct holder *h)
{
    pid_t pid;
    do {
        pid = waitpid(-1, NULL, WNOHANG);
        h->has_script_ended |= pid > 0 && pid == h->script_pid;
    } while (pid > 0);
    return pid < 0 && errno == ECHILD;
}

/* ---- The end ---- */

static void report(struct holder *h, const char *how)
{
    h->is_over = true;
    dprintf(1, "gone %s %lld\n", how, (long long)clock_mono(&clock_system).ms);
}

static void kill_everything(struct holder *h)
{
    struct err e = {0};
    while (!is_empty(h)) {
        if (proc_group_kill_all(h->group, 0, KILL_TIMEOUT_MS, &e) < 0 ||
            proc_group_kill_all(h->all, 0, KILL_TIMEOUT_MS, &e) < 0)
            log_warn("cannot kill the processes of an instance", log_s("instance", h->name),
                log_err(&e));
    }
    report(h, h->is_last_term ? "power-off" : "killed");
}

/* ---- Shutting down ---- */

static void soft_off(struct holder *h)
{
    char path[4096];
    if (h->is_soft_off)
        return;
    h->is_soft_off = true;
    h->start_at = MONO_NONE;
    snprintf(path, sizeof(path), "%s/" HOLDER_STOPPING, h->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        log_warn("cannot mark an instance as shutting down", log_s("instance", h->name));
    else
        close(fd);
    if (h->script_pid > 0 && !h->has_script_ended)
        kill(h->script_pid, SIGTERM);
}

static void kill_by(struct holder *h, int64_t mono_ms)
{
    if (!mono_is_set(h->kill_at) || mono_ms < h->kill_at.ms)
        h->kill_at.ms = mono_ms;
}

/* The last unit has stopped: handles the remaining processes as systemd-shutdown does. */
static void last_term(struct holder *h)
{
    if (!h->is_soft_off || h->is_last_term || (h->script_pid > 0 && !h->has_script_ended))
        return;
    h->is_last_term = true;
    proc_group_signal(h->all, SIGTERM);
    kill_by(h, clock_mono(&clock_system).ms + HOLDER_LAST_TERM_MS);
}

/* ---- Commands ---- */

static void run_command(struct holder *h, const char *line)
{
    int64_t n = 0;
    struct mono now = clock_mono(&clock_system);
    if (str_starts(line, "kill-at ") && str_to_i64(line + 8, 0, INT64_MAX, "time", &n, NULL) == 0) {
        kill_by(h, n);
    } else if (str_eq(line, "soft-off")) {
        soft_off(h);
    } else if (str_starts(line, "shutdown ") &&
               str_to_i64(line + 9, 0, INT64_MAX / 2, "time", &n, NULL) == 0) {
        if (n > 0)
            soft_off(h);
        kill_by(h, now.ms + n);
    }
}

/* False if the emulator is gone. */
static bool read_commands(struct holder *h)
{
    char bytes[HOLDER_LINE_MAX];
    ssize_t n = read(0, bytes, sizeof(bytes));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return false;
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (h->n_line + 1 < sizeof(h->line))
                h->line[h->n_line++] = bytes[i];
            continue;
        }
        h->line[h->n_line] = '\0';
        h->n_line = 0;
        run_command(h, h->line);
    }
    return true;
}

static int wait_ms(const struct holder *h)
{
    struct mono next = h->kill_at;
    if (!mono_is_set(next) || (mono_is_set(h->start_at) && h->start_at.ms < next.ms))
        next = h->start_at;
    if (!mono_is_set(next))
        return -1;
    int64_t left_ms = next.ms - clock_mono(&clock_system).ms;
    return left_ms <= 0 ? 0 : left_ms < 60000 ? (int)left_ms : 60000;
}

static bool is_at(struct mono t)
{
    return mono_is_set(t) && clock_mono(&clock_system).ms >= t.ms;
}

static void start(struct holder *h)
{
    struct err e;
    if (start_script(h, &e) == 0)
        return;
    log_error("an instance cannot run", log_s("instance", h->name), log_err(&e));
    kill_everything(h);
}

static void handle_events(struct holder *h)
{
    struct pollfd fds[] = {{.fd = 0, .events = POLLIN}, {.fd = h->signals_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    bool has_emulator = true;
    if (poll(fds, 2, wait_ms(h)) > 0 && fds[0].revents)
        has_emulator = read_commands(h);
    if (fds[1].revents && read(h->signals_fd, &info, sizeof(info)) < 0)
        log_debug("no signal to read", log_s("instance", h->name));
    if (!has_emulator || is_at(h->kill_at))
        kill_everything(h);
    else if (is_at(h->start_at))
        start(h);
    else if (h->script_pid > 0 && is_empty(h))
        report(h, "power-off");
    else
        last_term(h);
}

/* ---- Main ---- */

/* Ignores signals of the terminal and the emulator; only the pipe ends the holder. */
static int block_signals(struct holder *h, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    h->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return h->signals_fd < 0 ? err_errno(e, errno, "signalfd") : 0;
}

static int open_groups(struct holder *h, struct err *e)
{
    char name[HOLDER_GROUP_MAX];
    holder_group_name(h->name, getpid(), name);
    int rc = proc_group_open(name, NULL, &h->group, e);
    return rc < 0 ? rc : proc_group_open_mode(name, NULL, PROC_SUBREAPER, &h->all, e);
}

static int prepare(struct holder *h, struct err *e)
{
    fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    int rc = block_signals(h, e);
    set_priority(HOLDER_NICE);
    if (rc == 0)
        rc = open_groups(h, e);
    return rc < 0 || mono_is_set(h->start_at) ? rc : start_script(h, e);
}

int holder_main(int argc, char **argv)
{
    struct err e = {0};
    int64_t delay_ms = 0;
    if (argc != 5 || str_to_i64(argv[4], 0, INT64_MAX / 2, "delay", &delay_ms, NULL) != 0) {
        fprintf(stderr, "belay-emulator: " HOLDER_FLAG " is for its own use\n");
        return 2;
    }
    struct holder h = {.name = argv[0],
        .dir = argv[1],
        .console = argv[2],
        .script = argv[3],
        .kill_at = MONO_NONE,
        .start_at = MONO_NONE};
    if (delay_ms > 0)
        h.start_at.ms = clock_mono(&clock_system).ms + delay_ms;
    h.signals_fd = -1;
    if (prepare(&h, &e) < 0) {
        log_error("an instance cannot run", log_s("instance", h.name), log_err(&e));
        kill_everything(&h);
    }
    while (!h.is_over)
        handle_events(&h);
    if (fs_remove_tree(h.dir, &e) < 0)
        log_warn(
            "cannot remove the directory of an instance", log_s("instance", h.name), log_err(&e));
    proc_group_close(h.group, true);
    proc_group_close(h.all, true);
    if (h.signals_fd >= 0)
        close(h.signals_fd);
    return 0;
}
