/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread; the loop while the program runs is in supervise_loop.c, what starts the program in
 * supervisor_start.c, and what its end leaves in supervisor_end.c.
 *
 *   locked --> started earlier? --yes--> kill the rest, exit.json "lost"
 *                 | no
 *                 v
 *              prepared --> started --> waiting <--> commands, time limit, SIGTERM
 *                                          | the script's end is reported
 *                                          v
 *                                  kill the rest --> exit.json --> end, or the next task when
 *                                                                  nothing had to be killed
 *
 * Invariants.
 *  1. exit.json exists only when no process of the task is left (or it says that one could not be
 *     killed).
 *  2. One supervisor per task: it holds the lock on supervisor.pid.
 *  3. A script starts only after supervisor.pid records who starts it, and how its processes are
 *     found: as descendants of which process, or by the cgroup.
 */
#include "agent/supervisor/supervisor_private.h"

#include "agent/supervisor/env.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/supervisor_pool.h"
#include "agent/supervisor/supervise_loop.h"
#include "agent/task/job_secrets.h"
#include "agent/task/record.h"
#include "agent/task/output_writer.h"
#include "agent/task/workdir.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_MS 1000 /* a dead supervisor's init may hold it for a moment */
#define KILL_WAIT_MS 10000
/* a process keeps its GPU until it is dead, and the next task would get that GPU */
#define GPU_KILL_WAIT_MS 300000

static void report_to_agent(struct supervisor *s, const char *kind, const char *text)
{
    char line[sizeof(((struct err *)0)->text) + sizeof(SUPERVISOR_NO_SPACE)];
    int n = snprintf(line, sizeof(line), "%s%s\n", kind, text);
    if (s->agent_fd >= 0 && send(s->agent_fd, line, (size_t)n, MSG_NOSIGNAL) < 0)
        /* a restarted agent asks again through ctl.sock */
        log_debug("a supervisor has no agent to report to", log_s("dir", s->dir));
}

const char *supervisor_work_dir(const struct supervisor *s)
{
    return s->workdir ? s->workdir : *s->task->cwd ? s->task->cwd : s->user.home;
}

int64_t supervisor_memory_limit_mib(const struct supervisor *s)
{
    return s->task->memory_mib > 0 ? s->task->memory_mib : s->common->limits.memory_mib;
}

static int take_lock(int *ret_fd, struct err *e)
{
    int fd = open("supervisor.pid", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int64_t until = clock_system_ms() + LOCK_WAIT_MS;
    if (fd < 0)
        return err_errno(e, errno, "opening supervisor.pid");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec pause = {.tv_nsec = 10000000};
        if (clock_system_ms() > until)
            return err_set(e, ERR_CONFLICT, "another supervisor has the task");
        nanosleep(&pause, NULL);
    }
    *ret_fd = fd;
    return 0;
}

/* True if an earlier supervisor took the task, or began to record that it did. */
static bool was_taken(int pid_file)
{
    struct stat st;
    return fstat(pid_file, &st) < 0 || st.st_size > 0;
}

static int write_pid(const struct supervisor *s, struct err *e)
{
    char text[64];
    int n = snprintf(
        text, sizeof(text), "%ld %llu\n", (long)getpid(), (unsigned long long)s->own_ticks);
    return fs_write_all(s->pid_file, text, (size_t)n, e);
}

bool supervisor_has_no_script(const struct supervisor *s)
{
    return s->task->script_on_first && s->task->rank > 0;
}

static int read_records(struct supervisor *s, struct err *e)
{
    int rc = record_read_spec("spec.json", &s->spec, e);
    if (rc)
        return rc;
    s->task = &s->spec.attempts[0];
    if (*s->task->workdir)
        s->workdir = mem_printf("%s/" WORKDIR_NAME, s->dir);
    rc = record_read_state("state.json", &s->state, e);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* A task starts only on GPUs that are recorded as its own. */
static int check_gpus(const struct supervisor *s, struct err *e)
{
    if (s->task->gpus > 0 && !*s->state.gpus)
        return err_set(e, ERR_INTERNAL, "the task's GPUs are not recorded");
    return 0;
}

/* Takes the secrets that the agent left for this task. */
static int take_secrets(struct supervisor *s, struct err *e)
{
    if (!s->task->has_job_secrets)
        return 0;
    /* the /dev/shm of namespaces that were kept from the task before is not the agent's */
    if (!namespaces_leave(s->namespaces) || chdir(s->dir) < 0)
        return err_errno(e, errno, "leave the namespaces of the task before");
    int rc = job_secrets_take(s->dir, &s->secrets, e);
    if (rc != 0 || s->secrets.n_of_job == 0)
        return rc;
    s->secrets_dir = job_secrets_dir(s->dir);
    s->mask = mask_create();
    for (size_t i = 0; i < s->secrets.n_of_job; i++) {
        size_t n;
        char *value = job_secret_value(&s->secrets.of_job[i], &n);
        if (!value)
            return err_set(e, ERR_INTERNAL, "the value of a secret is not hex");
        mask_add(s->mask, value, n);
        explicit_bzero(value, n);
        free(value);
    }
    return 0;
}

/* An earlier supervisor died: kills every process that it started. */
static int clean_up(struct supervisor *s, struct err *e)
{
    struct task_start start;
    int rc = supervisor_open_group(s, e);
    if (rc)
        return rc;
    s->exit.cause = EXIT_LOST;
    s->exit.code = 137;
    STR_COPY(s->exit.text, "supervisor died");
    if (proc_group_mode(s->group) != PROC_SUBREAPER)
        supervisor_kill_rest(s, KILL_WAIT_MS); /* the agent waits for it */
    if (record_read_start("supervisor.pid", &start, e) == 0 &&
        proc_start_ticks((pid_t)start.init_pid) == (uint64_t)start.init_ticks &&
        start.init_ticks > 0)
        rc = proc_tree_kill((pid_t)start.init_pid, KILL_WAIT_MS, e);
    struct err unused;
    if (s->task->has_job_secrets)
        job_secrets_remove(s->dir);
    if (s->task->image && user_resolve(s->task->user, &s->user, &unused) == 0)
        supervisor_forget_container(s);
    return rc;
}

/* Nothing of the task has run, so the next supervisor may start it as if it were the first. */
static void discard_records(const struct supervisor *s)
{
    if (ftruncate(s->pid_file, 0) < 0)
        log_warn("a task that did not start will count as started", log_s("dir", s->dir));
}

static int give_up_for_space(struct supervisor *s, const struct err *why, struct err *e)
{
    supervisor_kill_rest(s, KILL_WAIT_MS);
    output_pump_finish(&s->pump);
    output_writer_finish(&s->writer);
    discard_records(s);
    *e = *why;
    return ERR_NO_SPACE;
}

/* The agent's request for a checkpoint before the limit uses the same signal (task_save.c). */
static bool is_asked_by_signal(const struct wire_desired_attempt *t)
{
    return t->method == WIRE_METHOD_SIGNAL;
}

static void run_loop(struct supervisor *s)
{
    s->loop.group = s->group;
    s->loop.pump = &s->pump;
    s->loop.report = s->launched.report;
    s->loop.child = s->launched.script;
    s->loop.in_image = s->task->image != NULL;
    s->loop.time_limit_ms = s->task->options.time_limit_ms;
    s->loop.kill_wait_ms = s->task->kill_wait_ms;
    s->loop.grace =
        (struct grace){.signal = is_asked_by_signal(s->task) ? 0 : (int)s->task->grace_signal,
            .to_script = s->task->grace_to_script,
            .before_ms = s->task->grace_ms,
            .init = s->launched.init,
            .in_sandbox = s->task->method == WIRE_METHOD_CRIU};
    s->loop.shells = (struct shells){.group = s->group,
        .user = &s->user,
        .env = s->env,
        .cwd = supervisor_work_dir(s),
        .image = s->image.image && !supervisor_has_no_script(s) ? &s->image : NULL,
        .mask = s->mask};
    report_to_agent(s, "", "ok");
    struct launch_report report = supervise_loop_run(&s->loop);
    s->agent_fd = s->loop.agent_fd;
    supervisor_note_report(s, &report);
    if (report.step == LAUNCH_ENDED)
        supervisor_await_rest(s);
}

static int run(struct supervisor *s, struct err *e)
{
    int rc = take_lock(&s->pid_file, e);
    if (rc || fs_exists("exit.json"))
        return rc;
    rc = read_records(s, e);
    if (rc)
        return rc;
    if (was_taken(s->pid_file)) {
        s->has_run = true;
        rc = clean_up(s, e);
        return rc ? rc : supervisor_write_exit_when_space(s, e);
    }
    rc = user_resolve(s->task->user, &s->user, e);
    s->user.no_new_privs = s->common->limits.no_new_privs;
    if (!rc)
        rc = check_gpus(s, e);
    if (!rc)
        rc = write_pid(s, e);
    if (!rc)
        rc = supervise_loop_open(&s->loop, e);
    if (!rc)
        rc = take_secrets(s, e);
    if (!rc)
        rc = supervisor_open_group(s, e);
    if (!rc)
        rc = supervisor_start_program(s, e);
    wire_secrets_wipe(&s->secrets);
    if (rc == ERR_NO_SPACE) {
        const struct err why = *e;
        return give_up_for_space(s, &why, e);
    }
    if (!rc) {
        s->has_run = true;
        run_loop(s);
    } else {
        s->exit.cause = EXIT_NO_EXEC;
        s->exit.code = 126;
        STR_SHORTEN(s->exit.text, e->text);
    }
    supervisor_kill_rest(s, *s->state.gpus ? GPU_KILL_WAIT_MS : KILL_WAIT_MS);
    output_pump_finish(&s->pump);
    output_writer_finish(&s->writer);
    if (s->group)
        supervisor_note_usage(s);
    if (s->image.image)
        supervisor_forget_container(s);
    if (s->task->has_job_secrets)
        job_secrets_remove(s->dir);
    rc = supervisor_write_exit_when_space(s, e);
    if (rc == ERR_NO_SPACE && !s->has_run)
        discard_records(s);
    return rc;
}

/* Whether it is certain that nothing of the task is left, in the system and in this process. */
static bool was_clean(const struct supervisor *s)
{
    siginfo_t info;
    bool is_plain = !s->task->image && s->loop.input < 0 && s->task->method != WIRE_METHOD_CRIU;
    return s->has_left_nothing && is_plain &&
           waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;
}

/* Closes all descriptors but the agent's and those kept for the next task. */
static void close_others(const struct supervisor *s)
{
    int keep[NAMESPACES_FDS_MAX + PROC_HOME_FDS_MAX];
    size_t n = namespaces_fds(s->namespaces, keep);
    n += proc_home_fds(s->common->home, keep + n);
    launch_close_from(SUPERVISOR_AGENT_FD + 1, keep, n);
}

static void deinit(struct supervisor *s)
{
    proc_group_close(s->group, true);
    wire_desired_deinit(&s->spec);
    free(s->output);
    free(s->error);
    free(s->input);
    free(s->workdir);
    free(s->secrets_dir);
    mask_destroy(s->mask);
    mem_free_texts(s->env);
    record_deinit_state(&s->state);
    close_others(s);
}

/* Returns true if it can take another task. */
static bool supervise(const struct supervisor_common *common, const char *dir, const char *node,
    uint64_t own_ticks, struct namespaces *namespaces)
{
    struct supervisor s = {.common = common,
        .own_ticks = own_ticks,
        .namespaces = namespaces,
        .dir = dir,
        .node = node,
        .agent_fd = SUPERVISOR_AGENT_FD,
        .loop = {.agent_fd = SUPERVISOR_AGENT_FD, .input = -1, .input_end = -1}};
    struct err e;
    supervisor_read_children(&s.children_before_ms, &s.children_before_user_ms);
    int rc = chdir(dir) < 0 ? err_errno(&e, errno, "entering %s", dir) : run(&s, &e);
    if (rc) {
        log_error("supervising failed", log_s("dir", dir), log_err(&e));
        report_to_agent(&s, rc == ERR_NO_SPACE && !s.has_run ? SUPERVISOR_NO_SPACE : "", e.text);
    }
    bool was = !rc && s.agent_fd >= 0 && was_clean(&s);
    was = was && namespaces_keep(namespaces);
    deinit(&s);
    return was;
}

/* Waits until the agent has sent something. False: kept namespaces could not be left. */
static bool await_agent(struct namespaces *namespaces)
{
    struct pollfd p[] = {{.fd = SUPERVISOR_AGENT_FD, .events = POLLIN},
        {.fd = namespaces_watched(namespaces), .events = POLLPRI}};
    for (;;) {
        int n = poll(p, 2, -1);
        if (n > 0 && p[1].revents == 0)
            return true;
        if (n > 0 && !namespaces_leave(namespaces))
            return false;
        p[1].fd = namespaces_watched(namespaces);
    }
}

/* Reads the next task's name into dir. False if the agent is gone, or its message is malformed.
 * SIGTERM ends this process meanwhile. */
static bool await_task(struct namespaces *namespaces, char *dir, size_t size)
{
    char line[SUPERVISOR_LINE_MAX], *slash = strrchr(dir, '/'), *end;
    sigset_t none;
    size_t n = 0;
    prctl(PR_SET_NAME, "belay-spare", 0, 0, 0);
    if (!slash || chdir("/") < 0 || send(SUPERVISOR_AGENT_FD, "free\n", 5, MSG_NOSIGNAL) < 0)
        return false;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    while (n < sizeof(line) && await_agent(namespaces)) {
        ssize_t got = read(SUPERVISOR_AGENT_FD, line + n, sizeof(line) - n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        for (n += got > 0 ? (size_t)got : 0; (end = memchr(line, '\n', n));
             memmove(line, end + 1, n)) {
            *end = '\0';
            n -= (size_t)(end - line) + 1;
            if (str_starts(line, "task ") && str_is_name(line + 5, sizeof(line)))
                return str_copy(slash + 1, size - (size_t)(slash + 1 - dir), line + 5);
        } /* other messages were meant for the previous task */
    }
    return false;
}

int supervisor_main(const struct supervisor_common *common, const char *first_dir, const char *node)
{
    char dir[SUPERVISOR_POOL_MESSAGE_MAX];
    struct namespaces namespaces = {0};
    const uint64_t own_ticks = proc_start_ticks(getpid());
    bool is_clean;
    STR_COPY(dir, first_dir);
    fcntl(SUPERVISOR_AGENT_FD, F_SETFD, FD_CLOEXEC);
    close_range(SUPERVISOR_AGENT_FD + 1, ~0U, 0);
    do {
        prctl(PR_SET_NAME, "belay-task", 0, 0, 0);
        is_clean = supervise(common, dir, node, own_ticks, &namespaces);
    } while (is_clean && await_task(&namespaces, dir, sizeof(dir)));
    proc_home_drop(common->home);
    return 0;
}
