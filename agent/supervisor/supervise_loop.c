/* SPDX-License-Identifier: Apache-2.0
 *
 * One poll loop. The signal before the time limit is retried until a process has received it, and
 * then never sent again. A stop has two moments, term_at and kill_at; each cause (a command, the
 * time limit, the machine's shutdown) can only move them forward. The first cause is the one
 * recorded. A SIGTERM waits until the script can receive it.
 */
#include "agent/supervisor/supervise_loop.h"

#include "agent/supervisor/env.h"
#include "agent/supervisor/image.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER INT64_MAX
#define KILL_WAIT_MS 10000
#define GRACE_RETRY_MS 250 /* retry while no process handles it */
#define SLEEP_MAX_MS 3600000
#define LISTEN_RETRY_MS 1000
#define FIXED 4 /* polled descriptors before the connections */

/* ---- stopping ---- */

static void stop(struct supervise_loop *v, enum exit_cause cause, const char *text,
    int64_t delay_ms, int64_t grace_ms)
{
    int64_t term_at = clock_system_ms() + delay_ms;
    if (v->cause == EXIT_BY_ITSELF) {
        v->cause = cause;
        STR_COPY(v->text, text);
    }
    if (!v->term_sent)
        v->term_at = min_i64(v->term_at, term_at);
    v->kill_at = min_i64(v->kill_at, term_at + grace_ms);
}

static void on_limit(struct supervise_loop *v)
{
    char limit[32], text[96];
    time_format_duration(v->time_limit_ms, limit, sizeof(limit));
    snprintf(text, sizeof(text), "it ran longer than its time limit of %s", limit);
    v->limit_at = NEVER;
    stop(v, EXIT_TIMEOUT, text, 0, v->kill_wait_ms);
}

/* Sends a user's signal. In a container the script cannot be distinguished from its programs. */
static int signal_task(void *ctx, int signum, enum shell_to to)
{
    const struct supervise_loop *v = ctx;
    struct grace g = v->grace;
    g.signal = signum;
    g.to_script = to == SHELL_TO_SCRIPT;
    g.to_programs = to == SHELL_TO_PROGRAMS;
    g.to_all = to == SHELL_TO_ALL;
    if (v->in_image && g.to_script)
        return -ENOTSUP;
    return v->in_image ? image_signal(v->group, signum, to != SHELL_TO_ALL, g.init, g.script)
                       : grace_send(&g, v->group);
}

static int signal_handlers(const struct supervise_loop *v, int signum)
{
    return v->in_image ? image_signal(v->group, signum, true, v->grace.init, v->grace.script)
                       : proc_group_signal_handlers(v->group, signum);
}

/* Continues stopped processes (SIGSTOP), which could not act on SIGTERM. */
static void terminate(struct supervise_loop *v)
{
    v->term_sent = true;
    v->term_at = NEVER;
    if (v->in_image)
        image_signal(v->group, SIGTERM, false, v->grace.init, v->grace.script);
    else
        proc_group_signal(v->group, SIGTERM);
    proc_group_signal(v->group, SIGCONT);
}

/* No grace signal during a stop, which sends SIGTERM. */
static void on_grace(struct supervise_loop *v)
{
    v->grace_at = NEVER;
    if (v->cause != EXIT_BY_ITSELF)
        return;
    int n = v->in_image ? signal_handlers(v, v->grace.signal) : grace_send(&v->grace, v->group);
    if (n == 0)
        v->grace_at = clock_system_ms() + GRACE_RETRY_MS;
    else
        log_info("the time limit is near: signalled", log_i("signal", v->grace.signal),
            log_i("processes", n));
}

static void check_times(struct supervise_loop *v)
{
    struct err e;
    if (v->is_ready && clock_system_ms() >= v->grace_at && clock_system_ms() < v->limit_at)
        on_grace(v);
    if (clock_system_ms() >= v->limit_at)
        on_limit(v);
    if (v->is_ready && clock_system_ms() >= v->term_at && clock_system_ms() < v->kill_at)
        terminate(v);
    if (clock_system_ms() < v->kill_at)
        return;
    v->kill_at = NEVER;
    if (proc_group_kill_all(v->group, v->child, KILL_WAIT_MS, &e))
        log_error("a task could not be killed", log_err(&e));
}

/* pump_ms: from output_pump_poll(); -1 = no limit. */
static int poll_timeout(const struct supervise_loop *v, int pump_ms)
{
    int64_t when_ready = v->is_ready ? min_i64(v->term_at, v->grace_at) : NEVER;
    int64_t at = min_i64(v->limit_at, min_i64(when_ready, v->kill_at));
    int64_t left = at == NEVER ? SLEEP_MAX_MS : at - clock_system_ms();
    int64_t most = v->agent_fd < 0 && v->listener < 0 ? LISTEN_RETRY_MS : SLEEP_MAX_MS;
    most = pump_ms >= 0 && pump_ms < most ? pump_ms : most;
    return left < 0 ? 0 : left > most ? (int)most : (int)left;
}

/* ---- commands ---- */

static int parse_terminate(const char *numbers, struct supervise_loop_command *c, struct err *e)
{
    char delay[24];
    size_t n = strcspn(numbers, " ");
    if (n >= sizeof(delay) || numbers[n] != ' ')
        return err_set(e, ERR_INVALID, "expected terminate DELAY GRACE");
    memcpy(delay, numbers, n);
    delay[n] = '\0';
    int rc = str_to_i64(delay, 0, SUPERVISE_TIME_MAX_MS, "delay", &c->delay_ms, e);
    return rc ? rc
              : str_to_i64(numbers + n + 1, 0, SUPERVISE_TIME_MAX_MS, "grace", &c->grace_ms, e);
}

int supervise_loop_parse(
    const char *line, struct supervise_loop_command *ret_command, struct err *e)
{
    struct supervise_loop_command c = {.what = SUPERVISE_KILL};
    char shown[STR_SHOW_MAX];
    int rc = 0;
    if (str_starts(line, "signal ")) {
        c.what = SUPERVISE_SIGNAL;
        rc = str_to_i64(line + strlen("signal "), 1, 64, "signal", &c.signal, e);
    } else if (str_starts(line, "terminate ")) {
        c.what = SUPERVISE_TERMINATE;
        rc = parse_terminate(line + strlen("terminate "), &c, e);
    } else if (str_starts(line, "limit ")) {
        c.what = SUPERVISE_LIMIT;
        rc = str_to_i64(line + strlen("limit "), 0, SUPERVISE_TIME_MAX_MS, "limit", &c.limit_ms, e);
    } else if (str_starts(line, "shipped ")) {
        c.what = SUPERVISE_SHIPPED;
        rc = str_to_i64(line + strlen("shipped "), 0, SUPERVISE_TIME_MAX_MS, "bytes", &c.bytes, e);
    } else if (str_eq(line, "ready")) {
        c.what = SUPERVISE_READY;
    } else if (str_eq(line, "shell")) {
        c.what = SUPERVISE_SHELL;
    } else if (!str_eq(line, "kill")) {
        rc = err_set(e, ERR_INVALID,
            "expected signal, terminate, limit, kill, shell, shipped or ready, found %s",
            str_show(line, shown));
    }
    if (!rc)
        *ret_command = c;
    return rc;
}

static void set_limit(struct supervise_loop *v, int64_t ms)
{
    v->time_limit_ms = ms;
    v->limit_at = ms > 0 ? v->began + ms : NEVER;
    v->grace_at = v->grace.signal > 0 && ms > 0 ? v->limit_at - v->grace.before_ms : NEVER;
}

static void answer(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("an answer did not reach the agent");
}

static void report_ready(struct supervise_loop *v)
{
    for (size_t i = 0; v->is_ready && i < SUPERVISE_CONNECTIONS; i++)
        if (v->connections[i].fd >= 0 && v->connections[i].wants_ready) {
            v->connections[i].wants_ready = false;
            answer(v->connections[i].fd, "ready\n");
        }
}

/* Starts the commands that came before the script was ready. */
static void start_early(struct supervise_loop *v)
{
    for (size_t i = 0; i < v->n_early; i++)
        shells_start(&v->shells, v->early[i]);
    v->n_early = 0;
}

/* Until the script is ready, SUPERVISE_CONNECTIONS commands wait for it; further ones are
 * closed. */
static void take_shell(struct supervise_loop *v, struct supervise_loop_connection *from)
{
    int fd = from->passed;
    from->passed = -1;
    if (fd >= 0 && v->is_ready)
        shells_start(&v->shells, fd);
    else if (fd >= 0 && v->n_early < SUPERVISE_CONNECTIONS)
        v->early[v->n_early++] = fd;
    else if (fd >= 0)
        close(fd);
}

static void run_command_line(
    struct supervise_loop *v, struct supervise_loop_connection *from, const char *line)
{
    struct supervise_loop_command c;
    struct err e;
    char text[32] = "ok\n";
    if (supervise_loop_parse(line, &c, &e)) {
        log_warn("a command was not understood", log_err(&e));
        snprintf(text, sizeof(text), "unknown\n");
    } else if (c.what == SUPERVISE_READY) {
        from->wants_ready = true;
        report_ready(v);
        return;
    } else if (c.what == SUPERVISE_SHELL) {
        take_shell(v, from);
        return;
    } else if (c.what == SUPERVISE_SHIPPED) {
        if (v->pump)
            output_pump_shipped(v->pump, c.bytes);
        return;
    } else if (c.what == SUPERVISE_SIGNAL) {
        snprintf(text, sizeof(text), "signalled %d\n", signal_handlers(v, (int)c.signal));
    } else if (c.what == SUPERVISE_LIMIT) {
        /* a restarted agent repeats the command */
        if (v->cause == EXIT_BY_ITSELF && c.limit_ms != v->time_limit_ms)
            set_limit(v, c.limit_ms);
    } else {
        stop(v, EXIT_STOPPED, "", c.delay_ms, c.grace_ms);
    }
    answer(from->fd, text);
}

static void drop(struct supervise_loop *v, struct supervise_loop_connection *c)
{
    if (c->fd == v->agent_fd)
        v->agent_fd = -1;
    close(c->fd);
    if (c->passed >= 0)
        close(c->passed);
    *c = (struct supervise_loop_connection){.fd = -1, .passed = -1};
}

/* As recv; a descriptor received with the data stays with the connection. */
static ssize_t receive(struct supervise_loop_connection *c)
{
    int passed;
    ssize_t n =
        fds_receive(c->fd, c->line + c->n, sizeof(c->line) - c->n, MSG_DONTWAIT, &passed, 1, NULL);
    if (passed >= 0) {
        if (c->passed >= 0)
            close(c->passed);
        c->passed = passed;
    }
    return n;
}

static void on_input(struct supervise_loop *v, struct supervise_loop_connection *c)
{
    ssize_t n = receive(c);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(v, c);
        return;
    }
    c->n += (size_t)n;
    for (char *end; (end = memchr(c->line, '\n', c->n));) {
        *end = '\0';
        run_command_line(v, c, c->line);
        size_t used = (size_t)(end - c->line) + 1;
        memmove(c->line, end + 1, c->n - used);
        c->n -= used;
    }
    if (c->n == sizeof(c->line))
        drop(v, c);
}

/* The newest connection belongs to the running agent, so an older one is closed if there is no
 * space. */
static void on_connect(struct supervise_loop *v)
{
    int fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t i = 0; i < SUPERVISE_CONNECTIONS; i++)
        if (v->connections[i].fd < 0) {
            v->connections[i] = (struct supervise_loop_connection){.fd = fd, .passed = -1};
            return;
        }
    drop(v, &v->connections[0]);
    v->connections[0].fd = fd;
}

bool supervise_loop_take_signal(struct supervise_loop *v)
{
    struct signalfd_siginfo info;
    if (read(v->signals, &info, sizeof(info)) != (ssize_t)sizeof(info) || info.ssi_signo == SIGCHLD)
        return true;
    stop(v, EXIT_SHUTDOWN, "its node was shut down", 0, v->kill_wait_ms);
    return false;
}

/* For a script that is our child: its report, if any, says why it could not start. As subreaper we
 * inherit the processes that it left, and reap them. */
static bool has_ended(struct supervise_loop *v, struct launch_report *ret_report)
{
    bool has = false;
    int status;
    for (pid_t pid; v->child > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == v->child) {
            has = true;
            if (read(v->report, ret_report, sizeof(*ret_report)) != (ssize_t)sizeof(*ret_report))
                *ret_report = (struct launch_report){.step = LAUNCH_ENDED, .value = status};
        }
    return has;
}

/* ---- the loop ---- */

static int open_listener(struct supervise_loop *v, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "ctl.sock"};
    unlink(a.sun_path);
    v->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t old = umask(0177);
    bool bad = v->listener < 0 || bind(v->listener, (struct sockaddr *)&a, sizeof(a)) < 0 ||
               listen(v->listener, SUPERVISE_CONNECTIONS) < 0;
    int rc = bad ? err_errno(e, errno, "listening on ctl.sock") : 0;
    umask(old);
    return rc;
}

static int open_signals(struct supervise_loop *v, struct err *e)
{
    sigset_t set;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    v->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return v->signals < 0 ? err_errno(e, errno, "making a signalfd") : 0;
}

int supervise_loop_open(struct supervise_loop *v, struct err *e)
{
    v->listener = -1;
    int rc = v->agent_fd < 0 ? open_listener(v, e) : 0;
    return rc ? rc : open_signals(v, e);
}

/* Without a connection to the agent, listens so that a restarted one can connect. */
static void listen_for_agent(struct supervise_loop *v)
{
    struct err e;
    if (v->agent_fd < 0 && v->listener < 0 && open_listener(v, &e) != 0) {
        log_warn("trying again", log_err(&e));
        if (v->listener >= 0)
            close(v->listener);
        v->listener = -1;
    }
}

/* The script still reads what was written, then end of file, unless a writer keeps the pipe
 * open. */
static void end_input(struct supervise_loop *v)
{
    unlink(TASK_STDIN_END);
    close(v->input_end);
    close(v->input);
    v->input = v->input_end = -1;
}

static void handle_events(struct supervise_loop *v, const struct pollfd *p)
{
    if (p[3].revents)
        end_input(v);
    for (size_t i = 0; i < SUPERVISE_CONNECTIONS; i++)
        if (p[FIXED + i].revents)
            on_input(v, &v->connections[i]);
    if (p[1].revents)
        on_connect(v);
    if (p[2].revents)
        supervise_loop_take_signal(v);
}

static bool is_reported(struct supervise_loop *v, struct launch_report *ret_report)
{
    ssize_t n = read(v->report, ret_report, sizeof(*ret_report));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n != (ssize_t)sizeof(*ret_report))
        *ret_report = (struct launch_report){.step = LAUNCH_SILENT};
    v->is_ready = true;
    if (ret_report->step != LAUNCH_READY)
        return true;
    v->grace.script = ret_report->value;
    report_ready(v);
    start_early(v);
    return false;
}

struct launch_report supervise_loop_run(struct supervise_loop *v)
{
    struct launch_report report;
    v->shells.signal = signal_task;
    v->shells.ctx = v;
    v->began = clock_system_ms();
    set_limit(v, v->time_limit_ms);
    v->term_at = v->kill_at = NEVER;
    for (size_t i = 0; i < SUPERVISE_CONNECTIONS; i++)
        v->connections[i].fd = v->connections[i].passed = -1;
    v->connections[0].fd = v->agent_fd;
    v->is_ready = v->child > 0; /* fatal signals reach it from its fork on */
    v->grace.script = v->child;
    for (;;) {
        listen_for_agent(v);
        struct pollfd p[FIXED + SUPERVISE_CONNECTIONS + OUTPUT_STREAMS] = {
            {.fd = v->child > 0 ? -1 : v->report, .events = POLLIN},
            {.fd = v->listener, .events = POLLIN}, {.fd = v->signals, .events = POLLIN},
            {.fd = v->is_ready ? v->input_end : -1, .events = POLLIN}};
        for (size_t i = 0; i < SUPERVISE_CONNECTIONS; i++)
            p[FIXED + i] = (struct pollfd){.fd = v->connections[i].fd, .events = POLLIN};
        int n = FIXED + SUPERVISE_CONNECTIONS, pump_ms = -1;
        if (v->pump) {
            pump_ms = output_pump_poll(v->pump, p + n);
            n += OUTPUT_STREAMS;
        }
        int ready = poll(p, (nfds_t)n, poll_timeout(v, pump_ms));
        if (ready > 0)
            handle_events(v, p);
        if (v->pump && ready >= 0)
            output_pump_turn(v->pump, p + FIXED + SUPERVISE_CONNECTIONS);
        if ((p[0].revents && is_reported(v, &report)) || (p[2].revents && has_ended(v, &report)))
            return report;
        check_times(v);
    }
}
