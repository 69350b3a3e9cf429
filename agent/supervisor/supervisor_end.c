/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a task: what is left of it is killed, and exit.json says how its program ended.
 */
#include "agent/supervisor/supervisor_private.h"

#include "agent/criu/criu.h"
#include "agent/dir_trial.h"
#include "agent/disk.h"
#include "base/fs.h"
#include "base/fs_user.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vformat.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESTORE_LOG_MAX 65536
/* exit.json is not synced after a shorter run, which may be repeated if the machine crashes */
#define SYNC_WORTH_MS 10000
/* the init ends by itself, at once or after the script's last process */
#define INIT_WAIT_MS 10
#define FORGET_WAIT_MS 10000
#define RESERVE_OF_TASKS "../../" DISK_RESERVE_FILE /* the task's directory is in DIR/tasks */
#define SPACE_CHECK_MS 500       /* between attempts to write exit.json on a full disk */
#define SPACE_WAIT_MAX_MS 600000 /* for all these attempts */

static void describe(struct task_exit *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void describe(struct task_exit *x, const char *fmt, ...)
{
    VFORMAT(x->text, fmt);
}

static int write_exit(struct supervisor *s, struct err *e)
{
    s->exit.ended_at = clock_wall(&clock_system).ms;
    /* may also be true because the wall clock was set forward: one sync too many */
    bool sync = s->exit.ended_at - s->started_at >= SYNC_WORTH_MS;
    return record_write_exit("exit.json", &s->exit, sync, e);
}

int supervisor_write_exit_when_space(struct supervisor *s, struct err *e)
{
    int64_t until = clock_system_ms() + SPACE_WAIT_MAX_MS;
    int rc = write_exit(s, e);
    bool waits = rc == ERR_NO_SPACE && (s->has_run || s->started_at > 0);
    if (waits)
        log_warn("the record of a task's end waits for space on the disk", log_s("dir", s->dir));
    while (waits && rc == ERR_NO_SPACE && clock_system_ms() < until) {
        if (!disk_give(RESERVE_OF_TASKS))
            poll(NULL, 0, SPACE_CHECK_MS);
        rc = write_exit(s, e);
    }
    return rc;
}

/* False if it did not end in time. */
static bool await_child(pid_t pid, int wait_ms, int *ret_status)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool has_ended = fd >= 0 && poll(&p, 1, wait_ms) > 0 && waitpid(pid, ret_status, 0) == pid;
    if (fd >= 0)
        close(fd);
    return has_ended;
}

static void await_init(struct supervisor *s)
{
    int status;
    if (await_child(s->launched.init, INIT_WAIT_MS, &status))
        s->has_left_nothing = WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Without an init: the processes that the script left are our children. */
static void await_children(struct supervisor *s)
{
    int64_t until = clock_system_ms() + INIT_WAIT_MS;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        s->has_left_nothing = pid < 0 && errno == ECHILD;
        if (pid < 0)
            return;
        struct pollfd p = {.fd = s->loop.signals, .events = POLLIN};
        int left = (int)(until - clock_system_ms());
        if (pid == 0 &&
            (left <= 0 || poll(&p, 1, left) <= 0 || !supervise_loop_take_signal(&s->loop)))
            return;
    }
}

void supervisor_await_rest(struct supervisor *s)
{
    if (s->launched.init > 0)
        await_init(s);
    else
        await_children(s);
}

void supervisor_kill_rest(struct supervisor *s, int64_t wait_ms)
{
    struct err e;
    if (!s->group || (s->has_left_nothing && proc_group_is_empty(s->group)))
        return;
    if (proc_group_kill_all(s->group, 0, wait_ms, &e)) {
        log_error("some of the task's processes are left", log_s("dir", s->dir), log_err(&e));
        if (!*s->exit.text)
            STR_SHORTEN(s->exit.text, e.text);
    }
}

static void run_as_user(const struct supervisor *s, char **argv)
{
    char *home = mem_printf("HOME=%s", s->user.home);
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
         *const env[] = {path, home, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0 &&
        launch_become_user(&s->user) == 0)
        execve(argv[0], argv, env);
    _exit(127);
}

void supervisor_forget_container(struct supervisor *s)
{
    char **argv = image_forget_command(s->task->image, s->name);
    pid_t pid = argv ? fork() : -1;
    if (pid == 0)
        run_as_user(s, argv);
    mem_free_texts(argv);
    int status;
    if (pid < 0 || await_child(pid, FORGET_WAIT_MS, &status))
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

void supervisor_read_children(int64_t *ret_cpu_ms, int64_t *ret_user_ms)
{
    struct rusage r = {0};
    getrusage(RUSAGE_CHILDREN, &r);
    *ret_user_ms = (int64_t)r.ru_utime.tv_sec * 1000 + r.ru_utime.tv_usec / 1000;
    *ret_cpu_ms = *ret_user_ms + (int64_t)r.ru_stime.tv_sec * 1000 + r.ru_stime.tv_usec / 1000;
}

void supervisor_note_usage(struct supervisor *s)
{
    struct usage_files files;
    struct usage used;
    proc_group_usage_files(s->group, &files);
    files.memory[0] = '\0'; /* the cgroup is removed */
    usage_read(&files, &used);
    if (used.cpu_ms < 0) {
        supervisor_read_children(&used.cpu_ms, &used.user_ms);
        used.cpu_ms -= s->children_before_ms;
        used.user_ms -= s->children_before_user_ms;
    }
    s->exit.cpu_ms = used.cpu_ms > 0 ? used.cpu_ms : 0;
    s->exit.cpu_user_ms = used.user_ms > 0 ? used.user_ms : 0;
    s->exit.memory_peak = used.peak_bytes > 0 ? used.peak_bytes : 0;
    bool unasked = s->exit.cause == EXIT_BY_ITSELF || s->exit.cause == EXIT_LOST;
    /* the script itself, or a program that its shell waited for */
    bool killed = s->exit.signal == SIGKILL || s->exit.code == 128 + SIGKILL;
    int64_t limit_mib = supervisor_memory_limit_mib(s);
    if (killed && unasked && limit_mib > 0 && s->exit.memory_peak >= (limit_mib << 20) / 100 * 98) {
        s->exit.cause = EXIT_BY_ITSELF;
        describe(&s->exit,
            s->task->memory_mib > 0
                ? "killed: it used all of the %lld MiB of memory that it asked for"
                : "killed: it used all of the %lld MiB of memory that a job gets here by default; "
                  "ask for what it needs (--memory)",
            (long long)limit_mib);
    }
}

static void note_status(struct task_exit *x, int status)
{
    if (WIFSIGNALED(status)) {
        x->signal = WTERMSIG(status);
        x->code = 128 + x->signal;
        if (!*x->text)
            describe(x, "killed by signal %d (%s)", (int)x->signal, strsignal((int)x->signal));
    } else {
        x->code = WEXITSTATUS(status);
    }
}

static void note_no_exec(struct supervisor *s, const struct launch_report *r)
{
    const char *why = strerror(r->value);
    s->exit.cause = r->step == LAUNCH_CLOSED ? EXIT_CLOSED : EXIT_NO_EXEC;
    s->exit.code = r->step == LAUNCH_EXEC && r->value == ENOENT ? 127 : 126;
    if (r->step == LAUNCH_EXEC) {
        size_t n = strcspn(s->task->script, "\r\n");
        describe(&s->exit, "the script cannot be executed: %s; its first line is \"%.*s\"", why,
            n > 80 ? 80 : (int)n, s->task->script);
    } else if (r->step == LAUNCH_CLOSED) {
        struct err e;
        dir_trial_explain(s->dir, r->value, s->user.is_other, &e);
        STR_SHORTEN(s->exit.text, e.text);
    } else if (r->step == LAUNCH_CWD) {
        describe(&s->exit, "the working directory %.150s cannot be entered: %s",
            supervisor_work_dir(s), why);
    } else if (r->step == LAUNCH_INPUT && r->value == ETIMEDOUT) {
        describe(&s->exit,
            "its input %.150s could not be opened in %d s: if it is a FIFO, no program writes to "
            "it",
            s->input, FILE_WAIT_MS / 1000);
    } else if (r->step == LAUNCH_INPUT) {
        describe(&s->exit, "its input %.150s cannot be opened: %s", s->input, why);
    } else if (r->step == LAUNCH_USER) {
        describe(&s->exit, "cannot become the user %s: %s", s->user.name, why);
    } else if (r->step == LAUNCH_SANDBOX) {
        describe(
            &s->exit, "its namespaces cannot be created, which --checkpoint criu needs: %s", why);
    } else {
        describe(&s->exit, "the program cannot be started (step %d): %s", (int)r->step, why);
    }
}

/* The reason is in the last lines of criu's log, or of ours. */
static void note_no_restore(struct task_exit *x)
{
    struct buf log = {0};
    struct err e;
    if (x->cause != EXIT_BY_ITSELF)
        return;
    x->cause = EXIT_NO_RESTORE;
    x->code = 126;
    if (fs_read("restore.log", RESTORE_LOG_MAX, &log, &e))
        STR_SHORTEN(x->text, e.text);
    else
        criu_last_error(buf_str(&log), log.len, x->text, sizeof(x->text));
    buf_deinit(&log);
}

/* How the program ended is unknown: its init was killed, and the job with it. */
static void note_silence(struct task_exit *x)
{
    x->signal = SIGKILL;
    x->code = 128 + SIGKILL;
    if (x->cause != EXIT_BY_ITSELF)
        return;
    x->cause = EXIT_LOST;
    describe(x, "its init process was killed");
}

/* A container runtime exits with 125 to 127 if nothing of the job has run: the image or the node is
 * at fault. */
static void note_no_image(struct supervisor *s)
{
    char why[200];
    if (s->exit.cause != EXIT_BY_ITSELF || s->exit.signal != 0 || s->exit.code < 125 ||
        s->exit.code > 127 || fs_has_name("control/" IMAGE_INSIDE))
        return;
    bool bad = image_why("control", s->user.uid, why, sizeof(why));
    s->exit.cause = bad || s->exit.code == 127 ? EXIT_NO_EXEC : EXIT_LOST;
    if (*why)
        describe(&s->exit, "%s", why);
    else
        describe(&s->exit,
            "its container could not be started (exit code %d); the end of its output says why",
            (int)s->exit.code);
}

void supervisor_note_report(struct supervisor *s, const struct launch_report *r)
{
    s->exit.cause = s->loop.cause;
    STR_COPY(s->exit.text, s->loop.text);
    if (r->step == LAUNCH_ENDED) {
        note_status(&s->exit, r->value);
        if (s->task->image)
            note_no_image(s);
    } else if (r->step == LAUNCH_SILENT)
        note_silence(&s->exit);
    else if (r->step == LAUNCH_RESTORE)
        note_no_restore(&s->exit);
    else
        note_no_exec(s, r);
}
