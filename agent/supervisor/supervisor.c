/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread; the loop while the program runs is in supervise_loop.c.
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
 *     found: below which process, or by the cgroup.
 */
#include "agent/supervisor/supervisor_private.h"

#include "agent/criu/criu.h"
#include "agent/disk.h"
#include "agent/gpu/gpu_devices.h"
#include "agent/supervisor/env.h"
#include "agent/supervisor/image.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/open_in_time.h"
#include "agent/supervisor/supervisor_pool.h"
#include "agent/supervisor/supervise_loop.h"
#include "agent/task/record.h"
#include "agent/task/output_writer.h"
#include "agent/task/workdir.h"
#include "base/fs.h"
#include "base/fs_user.h"
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RESTORE_LOG_MAX 65536
#define LOCK_WAIT_MS 1000 /* a dead supervisor's init releases it at once */
#define KILL_WAIT_MS 10000
/* a process keeps its GPU until it is dead, and the next task would get that GPU */
#define GPU_KILL_WAIT_MS 300000
/* exit.json is not synced after a shorter run, which may be repeated if the machine crashes */
#define SYNC_WORTH_MS 10000
/* the init ends by itself, at once or after the script's last process */
#define INIT_WAIT_MS 10
#define FORGET_WAIT_MS 10000
#define HELD_ROOM "../../" DISK_HELD /* the task's directory is in DIR/tasks */
#define ROOM_LOOK_MS 500             /* between looks for room for exit.json, ... */
#define ROOM_WAIT_MAX_MS 600000      /* ... and for how long */
/* longest notice of a provider, and the time of a stop without a notice */
#define NOTICE_WINDOW_MS 120000

static int64_t now_ms(void)
{
    return clock_mono(&clock_system).ms;
}

static void tell_agent(struct supervisor *s, const char *kind, const char *text)
{
    char line[sizeof(((struct err *)0)->text) + sizeof(SUPERVISOR_NO_ROOM)];
    int n = snprintf(line, sizeof(line), "%s%s\n", kind, text);
    if (s->agent_fd >= 0 && send(s->agent_fd, line, (size_t)n, MSG_NOSIGNAL) < 0)
        /* a restarted agent asks again through ctl.sock */
        log_debug("a supervisor has no agent to report to", log_s("dir", s->dir));
}

static void describe(struct task_exit *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void describe(struct task_exit *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(x->text, sizeof(x->text), fmt, ap);
    va_end(ap);
}

/* ---- the end ---- */

static int write_exit(struct supervisor *s, struct err *e)
{
    s->exit.ended_at = clock_wall(&clock_system).ms;
    /* also true if the wall clock was set */
    bool sync = s->exit.ended_at - s->started_at >= SYNC_WORTH_MS;
    return record_write_exit("exit.json", &s->exit, sync, e);
}

/* A full disk must not cost the end of a program that ran. */
static int write_exit_when_room(struct supervisor *s, struct err *e)
{
    int64_t until = now_ms() + ROOM_WAIT_MAX_MS;
    int rc = write_exit(s, e);
    bool waits = rc == ERR_NO_SPACE && (s->has_run || s->started_at > 0);
    if (waits)
        log_warn("the record of a task's end waits for room on the disk", log_s("dir", s->dir));
    while (waits && rc == ERR_NO_SPACE && now_ms() < until) {
        if (!disk_give(HELD_ROOM))
            poll(NULL, 0, ROOM_LOOK_MS);
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
        s->is_whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Without an init: the processes that the script left are our children. */
static void await_rest(struct supervisor *s)
{
    int64_t until = now_ms() + INIT_WAIT_MS;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        s->is_whole = pid < 0 && errno == ECHILD;
        if (pid < 0)
            return;
        struct pollfd p = {.fd = s->loop.signals, .events = POLLIN};
        int left = (int)(until - now_ms());
        if (pid == 0 &&
            (left <= 0 || poll(&p, 1, left) <= 0 || !supervise_loop_take_signal(&s->loop)))
            return;
    }
}

/* A process that cannot be killed (state D) must not delay the job's end, but must be reported. */
static void kill_rest(struct supervisor *s, int64_t wait_ms)
{
    struct err e;
    if (s->is_whole && proc_group_is_empty(s->group))
        return;
    if (s->group && proc_group_kill_all(s->group, 0, wait_ms, &e)) {
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

static void forget_container(struct supervisor *s)
{
    char **argv = image_forget_command(s->task->image, s->name);
    pid_t pid = argv ? fork() : -1;
    if (pid == 0)
        run_as_user(s, argv);
    image_free(argv);
    int status;
    if (pid < 0 || await_child(pid, FORGET_WAIT_MS, &status))
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Usage of all reaped descendants, including those of earlier tasks, for where no cgroup counts. */
static void read_children(int64_t *ret_cpu_ms, int64_t *ret_user_ms)
{
    struct rusage r = {0};
    getrusage(RUSAGE_CHILDREN, &r);
    *ret_user_ms = (int64_t)r.ru_utime.tv_sec * 1000 + r.ru_utime.tv_usec / 1000;
    *ret_cpu_ms = *ret_user_ms + (int64_t)r.ru_stime.tv_sec * 1000 + r.ru_stime.tv_usec / 1000;
}

static int64_t memory_limit_mib(const struct supervisor *s)
{
    return s->task->memory_mib > 0 ? s->task->memory_mib : s->room->limits.memory_mib;
}

static void note_usage(struct supervisor *s)
{
    struct usage_files files;
    struct usage used;
    proc_group_usage_files(s->group, &files);
    files.memory[0] = '\0'; /* the cgroup is gone */
    usage_read(&files, &used);
    if (used.cpu_ms < 0) {
        read_children(&used.cpu_ms, &used.user_ms);
        used.cpu_ms -= s->children_before_ms;
        used.user_ms -= s->children_before_user_ms;
    }
    s->exit.cpu_ms = used.cpu_ms > 0 ? used.cpu_ms : 0;
    s->exit.cpu_user_ms = used.user_ms > 0 ? used.user_ms : 0;
    s->exit.memory_peak = used.peak_bytes > 0 ? used.peak_bytes : 0;
    bool unasked = s->exit.cause == EXIT_BY_ITSELF || s->exit.cause == EXIT_LOST;
    /* the script itself, or a program that its shell waited for */
    bool killed = s->exit.signal == SIGKILL || s->exit.code == 128 + SIGKILL;
    int64_t limit_mib = memory_limit_mib(s);
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

const char *supervisor_work_dir(const struct supervisor *s)
{
    return s->workdir ? s->workdir : *s->task->cwd ? s->task->cwd : s->user.home;
}

static void note_no_exec(struct supervisor *s, const struct launch_report *r)
{
    const char *why = strerror(r->value);
    s->exit.cause = EXIT_NO_EXEC;
    s->exit.code = r->step == LAUNCH_EXEC && r->value == ENOENT ? 127 : 126;
    if (r->step == LAUNCH_EXEC) {
        size_t n = strcspn(s->task->script, "\r\n");
        describe(&s->exit, "the script cannot be executed: %s; its first line is \"%.*s\"", why,
            n > 80 ? 80 : (int)n, s->task->script);
    } else if (r->step == LAUNCH_CWD) {
        describe(&s->exit, "the working directory %.150s cannot be entered: %s",
            supervisor_work_dir(s), why);
    } else if (r->step == LAUNCH_INPUT && r->value == ETIMEDOUT) {
        describe(&s->exit,
            "its input %.150s could not be opened in %d s: if it is a FIFO, no program writes to "
            "it",
            s->input, OPEN_WAIT_MS / 1000);
    } else if (r->step == LAUNCH_INPUT) {
        describe(&s->exit, "its input %.150s cannot be opened: %s", s->input, why);
    } else if (r->step == LAUNCH_USER) {
        describe(&s->exit, "cannot become the user %s: %s", s->user.name, why);
    } else if (r->step == LAUNCH_ROOM) {
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

/* The program's end is unknown, because our init was killed, not the job. */
static void note_silence(struct task_exit *x)
{
    x->signal = SIGKILL;
    x->code = 128 + SIGKILL;
    if (x->cause != EXIT_BY_ITSELF)
        return;
    x->cause = EXIT_LOST;
    describe(x, "its init process was killed");
}

/* Nothing of the job has run: the image or the node is at fault. */
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

static void note_report(struct supervisor *s, const struct launch_report *r)
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

/* ---- the start ---- */

static int take_lock(int *ret_fd, struct err *e)
{
    int fd = open("supervisor.pid", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int64_t until = now_ms() + LOCK_WAIT_MS;
    if (fd < 0)
        return err_errno(e, errno, "opening supervisor.pid");
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec pause = {.tv_nsec = 10000000};
        if (now_ms() > until)
            return err_set(e, ERR_CONFLICT, "another supervisor has the task");
        nanosleep(&pause, NULL);
    }
    *ret_fd = fd;
    return 0;
}

/* An earlier supervisor took the task, or began to record it. */
static bool was_taken(int pid_file)
{
    struct stat st;
    return fstat(pid_file, &st) < 0 || st.st_size > 0;
}

/* Jobs of several clusters (or of several agents in a test) may run on one machine: a hash of the
 * directory distinguishes them. */
static void group_name(const struct supervisor *s, char *out, size_t size)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (const char *p = s->dir; *p; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    snprintf(out, size, "belay-%lld-%lld-%016llx", (long long)s->task->job,
        (long long)s->task->attempt, (unsigned long long)h);
}

static int open_group(struct supervisor *s, struct err *e)
{
    struct proc_device denied[PROC_DEVICES_MAX];
    struct proc_limits limits = {.memory_bytes = memory_limit_mib(s) << 20,
        .cpus_milli = s->task->cpus * 1000,
        .pids_max = s->room->limits.pids,
        .denied = denied};
    if (s->state.gpu_maker != GPU_MAKER_NONE) /* the node has GPUs */
        limits.n_denied = gpu_devices_denied("", s->state.gpus, denied, PROC_DEVICES_MAX);
    group_name(s, s->name, sizeof(s->name));
    int rc = proc_group_open_in(s->room->home, s->name, &limits, &s->group, e);
    if (!rc)
        limits_warn(s->room->warned, s->group);
    return rc;
}

static int write_pid(int pid_file, struct err *e)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%ld %llu\n", (long)getpid(),
        (unsigned long long)proc_start_ticks(getpid()));
    return fs_write_all(pid_file, text, (size_t)n, e);
}

static char **build_argv(const struct supervisor *s, char *script)
{
    char **argv = mem_array(s->task->n_args + 2, sizeof(*argv));
    argv[0] = script;
    for (size_t i = 0; i < s->task->n_args; i++)
        argv[i + 1] = s->task->args[i];
    return argv;
}

/* The notice minus the time that a save needs besides the program's own writing. */
static int64_t grace_ms(const struct supervisor *s)
{
    int64_t grace = NOTICE_WINDOW_MS - s->task->save_ms;
    return grace < 1000 ? 1000 : grace;
}

/* Of a checkpoint made by another number of ranks (struct ckpt_restore_with). */
static int64_t restored_ranks(void)
{
    int64_t n = 0;
    for (bool there = true; there && n < CKPT_GANG_MAX; n += there) {
        char *dir = mem_printf("ranks/rank-%04lld", (long long)n);
        there = fs_has_name(dir);
        free(dir);
    }
    return n;
}

/* Wraps the command to run in its container. The runtime is looked up now, because it may have been
 * installed since the agent's start. */
static int wrap(struct supervisor *s, char **argv, char ***ret_argv, struct err *e)
{
    struct image_runtimes runtimes;
    image_runtimes_find(&runtimes);
    s->image = (struct image_run){.image = s->task->image,
        .name = s->name,
        .dir = s->dir,
        .cwd = supervisor_work_dir(s),
        .bin = s->room->tools.bin,
        .python = s->room->tools.python,
        .env = s->env,
        .is_root = s->user.uid == 0,
        .gpus = s->state.gpu_maker == GPU_MAKER_NVIDIA && *s->state.gpus ? s->state.gpus : NULL};
    struct image_run r = s->image;
    r.runtimes = &runtimes;
    r.argv = argv;
    int rc = image_command(&r, ret_argv, e);
    image_runtimes_deinit(&runtimes);
    return rc;
}

bool supervisor_holds(const struct supervisor *s)
{
    return s->task->script_on_first && s->task->rank > 0;
}

/* Whether its cgroup suffices to contain it, without an init. Not with an output writer, which is a
 * child of ours besides the script. */
static bool runs_alone(const struct supervisor *s)
{
    return proc_group_mode(s->group) != PROC_SUBREAPER && s->task->method != WIRE_METHOD_CRIU &&
           !supervisor_holds(s) && !s->task->image && s->writer.pid == 0;
}

static int fork_program(struct supervisor *s, int output, int error, struct err *e)
{
    bool in_room = s->task->method == WIRE_METHOD_CRIU,
         is_restored = s->state.told.restored_attempt > 0;
    const char *seen = in_room ? CRIU_ROOM : s->dir; /* path as the task sees it */
    char *script = mem_printf("%s/script", seen);
    char **argv = build_argv(s, script);
    const struct task_env t = {.spec = s->task,
        .user = &s->user,
        .node = s->node,
        .cwd = supervisor_work_dir(s),
        .dir = seen,
        .checkpoint = in_room ? "scratch" : "checkpoint",
        .own_tmp = in_room,
        .gpu_maker = s->state.gpu_maker,
        .gpus = s->state.gpus,
        .bin = s->room->tools.bin,
        .python = s->room->tools.python,
        .restored = is_restored,
        .restored_ranks = restored_ranks(),
        .grace_ms = grace_ms(s)};
    char **env = env_build(&t);
    s->env = env; /* kept for users' commands, until this process ends with its task */
    char **wrapped = NULL;
    int rc = s->task->image ? wrap(s, argv, &wrapped, e) : 0;
    const struct launch l = {.group = s->group,
        .user = &s->user,
        .script = wrapped ? wrapped[0] : script,
        .argv = wrapped ? wrapped : argv,
        .env = env,
        .cwd = supervisor_work_dir(s),
        .output = output,
        .error = error,
        .input = s->input,
        .alone = runs_alone(s),
        .holds = supervisor_holds(s),
        .room = in_room ? s->dir : NULL,
        .restore = in_room && is_restored ? s->state.criu : NULL};
    if (!rc)
        rc = launch_start(&l, &s->launched, e);
    image_free(wrapped);
    free(argv);
    free(script);
    return rc;
}

static int note_start(struct supervisor *s, struct err *e)
{
    struct task_start start = {.started_at = s->started_at, .init_pid = s->launched.init};
    if (s->launched.init > 0)
        start.init_ticks = (int64_t)proc_start_ticks(s->launched.init);
    proc_group_usage_files(s->group, &start.usage);
    return record_add_start(s->pid_file, &start, e);
}

/* Everything started for the task from here on is inside the namespaces. Not for CRIU, whose images
 * expect the node's. */
static void separate(struct supervisor *s)
{
    const struct limits *l = &s->room->limits;
    /* a private /dev/shm would cover the task's own directory there */
    const struct namespaces_want want = {.ipc = l->private_ipc && !str_starts(s->dir, "/dev/shm/"),
        .hides_processes = l->hides_processes,
        .shm_mib = memory_limit_mib(s)};
    struct err e;
    if (geteuid() != 0 || s->task->method == WIRE_METHOD_CRIU ||
        (!want.ipc && !want.hides_processes)) {
        namespaces_leave(s->namespaces);
        return;
    }
    if (namespaces_enter(s->namespaces, &want, &e))
        log_warn("a task is not isolated from the node's shared memory and processes",
            log_i("job", s->task->job), log_err(&e));
}

/* The program's ends of its output, so that it ends with the program. */
static void close_ends(const struct supervisor *s, int output, int error)
{
    if (s->pump.n == 0)
        return; /* it writes to the files themselves */
    close(output);
    if (error != output)
        close(error);
}

static int start_with(struct supervisor *s, int output, int error, struct err *e)
{
    int rc;
    s->started_at = clock_wall(&clock_system).ms;
    if (runs_alone(s)) {
        rc = note_start(s, e);
        return rc ? rc : fork_program(s, output, error, e);
    }
    rc = fork_program(s, output, error, e);
    if (rc)
        return rc;
    rc = note_start(s, e);
    if (!rc && write(s->launched.gate, "g", 1) != 1)
        rc = err_errno(e, errno, "opening the gate for the program");
    close(s->launched.gate);
    return rc;
}

static int start_program(struct supervisor *s, struct err *e)
{
    int output, error;
    separate(s);
    int rc = supervisor_open_files(s, &output, &error, e);
    if (rc)
        return rc;
    rc = start_with(s, output, error, e);
    close_ends(s, output, error);
    return rc;
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

/* An earlier supervisor died: kills every process that it started. */
static int clean_up(struct supervisor *s, struct err *e)
{
    struct task_start start;
    int rc = open_group(s, e);
    if (rc)
        return rc;
    s->exit.cause = EXIT_LOST;
    s->exit.code = 137;
    describe(&s->exit, "supervisor died");
    if (proc_group_mode(s->group) != PROC_SUBREAPER)
        kill_rest(s, KILL_WAIT_MS); /* the agent waits for it */
    if (record_read_start("supervisor.pid", &start, e) == 0 &&
        proc_start_ticks((pid_t)start.init_pid) == (uint64_t)start.init_ticks &&
        start.init_ticks > 0)
        rc = proc_tree_kill((pid_t)start.init_pid, KILL_WAIT_MS, e);
    struct err unused;
    if (s->task->image && user_resolve(s->task->user, &s->user, &unused) == 0)
        forget_container(s);
    return rc;
}

/* Nothing of the task has run: the next supervisor is the first one again. */
static void begin_afresh(const struct supervisor *s)
{
    if (ftruncate(s->pid_file, 0) < 0)
        log_warn("a task that did not start will count as started", log_s("dir", s->dir));
}

static int give_up_for_room(struct supervisor *s, const struct err *why, struct err *e)
{
    kill_rest(s, KILL_WAIT_MS);
    output_pump_finish(&s->pump);
    output_writer_finish(&s->writer);
    begin_afresh(s);
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
            .in_room = s->task->method == WIRE_METHOD_CRIU};
    s->loop.shells = (struct shells){.group = s->group,
        .user = &s->user,
        .env = s->env,
        .cwd = supervisor_work_dir(s),
        .image = s->image.image && !supervisor_holds(s) ? &s->image : NULL};
    tell_agent(s, "", "ok");
    struct launch_report report = supervise_loop_run(&s->loop);
    s->agent_fd = s->loop.agent_fd;
    note_report(s, &report);
    if (report.step == LAUNCH_ENDED)
        s->launched.init > 0 ? await_init(s) : await_rest(s);
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
        return rc ? rc : write_exit_when_room(s, e);
    }
    rc = user_resolve(s->task->user, &s->user, e);
    s->user.no_new_privs = s->room->limits.no_new_privs;
    if (!rc)
        rc = check_gpus(s, e);
    if (!rc)
        rc = write_pid(s->pid_file, e);
    if (!rc)
        rc = supervise_loop_open(&s->loop, e);
    if (!rc)
        rc = open_group(s, e);
    if (!rc)
        rc = start_program(s, e);
    if (rc == ERR_NO_SPACE) {
        const struct err why = *e;
        return give_up_for_room(s, &why, e);
    }
    if (!rc) {
        s->has_run = true;
        run_loop(s);
    } else {
        s->exit.cause = EXIT_NO_EXEC;
        s->exit.code = 126;
        STR_SHORTEN(s->exit.text, e->text);
    }
    kill_rest(s, *s->state.gpus ? GPU_KILL_WAIT_MS : KILL_WAIT_MS);
    output_pump_finish(&s->pump);
    output_writer_finish(&s->writer);
    if (s->group)
        note_usage(s);
    if (s->image.image)
        forget_container(s);
    rc = write_exit_when_room(s, e);
    if (rc == ERR_NO_SPACE && !s->has_run)
        begin_afresh(s);
    return rc;
}

/* Whether certainly nothing of the task is left, in the system and in this process. */
static bool was_clean(const struct supervisor *s)
{
    siginfo_t info;
    bool is_plain = !s->task->image && s->loop.input < 0 && s->task->method != WIRE_METHOD_CRIU;
    return s->is_whole && is_plain && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;
}

static void deinit(struct supervisor *s)
{
    proc_group_close(s->group, true);
    wire_desired_deinit(&s->spec);
    free(s->output);
    free(s->error);
    free(s->input);
    free(s->workdir);
    env_free(s->env);
    record_deinit_state(&s->state);
    namespaces_close_others(s->namespaces, SUPERVISOR_AGENT_FD + 1);
}

/* Returns true if it can take another task. */
static bool supervise(const struct supervisor_room *room, const char *dir, const char *node,
    struct namespaces *namespaces)
{
    struct supervisor s = {.room = room,
        .namespaces = namespaces,
        .dir = dir,
        .node = node,
        .agent_fd = SUPERVISOR_AGENT_FD,
        .loop = {.agent_fd = SUPERVISOR_AGENT_FD, .input = -1, .input_end = -1}};
    struct err e;
    read_children(&s.children_before_ms, &s.children_before_user_ms);
    int rc = chdir(dir) < 0 ? err_errno(&e, errno, "entering %s", dir) : run(&s, &e);
    if (rc) {
        log_error("supervising failed", log_s("dir", dir), log_err(&e));
        tell_agent(&s, rc == ERR_NO_SPACE && !s.has_run ? SUPERVISOR_NO_ROOM : "", e.text);
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

int supervisor_main(const struct supervisor_room *room, const char *first_dir, const char *node)
{
    char dir[SUPERVISOR_POOL_MESSAGE_MAX];
    struct namespaces namespaces = {0};
    bool is_clean;
    STR_COPY(dir, first_dir);
    fcntl(SUPERVISOR_AGENT_FD, F_SETFD, FD_CLOEXEC);
    close_range(SUPERVISOR_AGENT_FD + 1, ~0U, 0);
    do {
        prctl(PR_SET_NAME, "belay-task", 0, 0, 0);
        is_clean = supervise(room, dir, node, &namespaces);
    } while (is_clean && await_task(&namespaces, dir, sizeof(dir)));
    return 0;
}
