/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_tasks.h. One thread, one loop over a signalfd, the pipes of labelled output and data
 * from other nodes.
 *
 * SIGUSR1 and SIGUSR2 are not caught: belay uses them to request a save from programs that catch
 * them.
 */
#include "cli/slurm/step_tasks.h"

#include "base/buf.h"
#include "base/mem.h"
#include "job/pattern.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/slurm/step_parts.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/step_prolog.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABEL_LINE_MAX 65536 /* longer lines are split */
#define CHECK_MS 1000        /* interval for checking the deadlines of parts */
#define KILL_MS 5000         /* between SIGTERM and SIGKILL after a failure */
#define EPILOG_MS 5000       /* time limit of a task's epilog */

struct task {
    pid_t pid;
    bool ended;
    int status;
    int pipes[2]; /* read ends of stdout and stderr, with labels; else -1 */
    struct buf lines[2];
    pid_t epilog;            /* 0 = none runs */
    int64_t epilog_until_ms; /* monotonic */
};

struct run {
    const struct step *s;
    const struct step_node *p;
    struct parts *parts; /* NULL if all tasks are on this node */
    const char *command, *node;
    int64_t job;
    int signals;
    struct task *tasks;
    int64_t given_up_ms; /* monotonic; 0 if not given up */
};

int64_t step_env_number(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t n;
    return text && str_to_i64(text, 0, INT64_MAX, name, &n, NULL) == 0 ? n : fallback;
}

static void error(const struct run *r, const char *text)
{
    slurm_error(r->s->program, "%s", text);
}

/* ---- a task ---- */

static void set_number(const char *name, int64_t n)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)n);
    setenv(name, text, 1);
}

static void keep_only(const char *list)
{
    extern char **environ;
    struct buf item = {0};
    char **old = environ, **kept;
    size_t n = 0;
    while (old[n])
        n++;
    kept = mem_array(n + 1, sizeof(*kept));
    n = 0;
    for (char **p = old; *p; p++) {
        const char *rest = list;
        size_t len = strcspn(*p, "=");
        bool keep = strncmp(*p, "SLURM", 5) == 0 || strncmp(*p, "BELAY_", 6) == 0 ||
                    strncmp(*p, "PATH=", 5) == 0;
        while (!keep && slurm_next_item(&rest, &item))
            keep = str_eq(buf_str(&item), "ALL") ||
                   (item.len == len && strncmp(*p, buf_str(&item), len) == 0);
        if (keep)
            kept[n++] = *p;
    }
    environ = kept;
    while (slurm_next_item(&list, &item))
        if (strchr(buf_str(&item), '='))
            putenv(mem_strdup(buf_str(&item)));
    buf_deinit(&item);
}

static void set_environment(const struct run *r, int64_t i, pid_t pid)
{
    const char *slash = strrchr(r->command, '/');
    struct buf ids = {0};
    for (int64_t k = 0; k < r->p->n; k++)
        buf_printf(&ids, "%s%lld", k ? "," : "", (long long)r->p->ids[k]);
    if (r->s->export)
        keep_only(r->s->export);
    set_number("SLURM_PROCID", r->p->ids[i]);
    set_number("SLURM_LOCALID", i);
    set_number("SLURM_NODEID", r->p->node);
    set_number("SLURM_NNODES", r->p->nodes);
    set_number("SLURM_NTASKS", r->p->tasks);
    set_number("SLURM_NPROCS", r->p->tasks);
    set_number("SLURM_STEP_ID", r->p->step);
    set_number("SLURM_STEPID", r->p->step);
    set_number("SLURM_STEP_NUM_TASKS", r->p->tasks);
    set_number("SLURM_STEP_NUM_NODES", r->p->nodes);
    setenv("SLURM_STEP_TASKS_PER_NODE", r->p->per_node, 1);
    set_number("SLURM_TASK_PID", pid);
    if (r->s->cpus_per_task > 0)
        set_number("SLURM_CPUS_PER_TASK", r->s->cpus_per_task);
    setenv("SLURM_STEP_NODELIST", r->p->nodelist, 1);
    setenv("SLURM_GTIDS", buf_str(&ids), 1);
    setenv("SLURM_STEP_NAME", r->s->name ? r->s->name : slash ? slash + 1 : r->command, 1);
    buf_deinit(&ids);
}

int step_open_file(const struct step *s, int64_t step, const char *pattern, int64_t task, int flags)
{
    const char *node = getenv("SLURMD_NODENAME");
    char id[24], *name = NULL;
    struct err e;
    snprintf(id, sizeof(id), "%lld", (long long)step);
    const struct pattern_values v = {.job = step_env_number("SLURM_JOB_ID", 0),
        .name = getenv("SLURM_JOB_NAME"),
        .user = getenv("USER"),
        .node = node ? node : "localhost",
        .step = id,
        .rank = task,
        .restarts = step_env_number("SLURM_RESTART_COUNT", 0)};
    if (pattern_expand(pattern, &v, &name, &e) != 0) {
        slurm_error(s->program, "%s", e.text);
        return -1;
    }
    int fd = open(name, flags | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        slurm_error(s->program, "%s cannot be opened: %s", name, strerror(errno));
    free(name);
    return fd;
}

static int open_file(const struct run *r, const char *pattern, int64_t i, int flags)
{
    return step_open_file(r->s, r->p->step, pattern, r->p->ids[i], flags);
}

static int put(int fd, int at)
{
    return fd >= 0 && dup2(fd, at) >= 0 ? 0 : -1;
}

/* Opens the task's standard input, output and error. Only output piped to srun gets labels, files
 * do not. */
static int set_files(const struct run *r, int64_t i, const int pipes[2])
{
    const struct step *s = r->s;
    bool is_own = s->output && pattern_has_rank(s->output),
         afresh = is_own || (r->p->ids[i] == 0 && !r->parts);
    /* parts_create has truncated the files that parts share */
    const int flags = O_WRONLY | O_CREAT | O_APPEND | (afresh ? O_TRUNC : 0);
    int rc = 0;
    if (s->input && !str_eq(s->input, "all"))
        rc = put(str_eq(s->input, "none") ? open("/dev/null", O_RDONLY)
                                          : open_file(r, s->input, i, O_RDONLY),
            0);
    else if (r->p->ids[i] > 0)
        rc = put(open("/dev/null", O_RDONLY), 0);
    if (rc == 0 && s->output)
        rc = put(str_eq(s->output, "none") ? open("/dev/null", O_WRONLY)
                                           : open_file(r, s->output, i, flags),
            1);
    else if (rc == 0 && pipes[0] >= 0)
        rc = put(pipes[0], 1);
    if (rc == 0 && s->error)
        rc = put(str_eq(s->error, "none") ? open("/dev/null", O_WRONLY)
                                          : open_file(r, s->error, i, flags),
            2);
    else if (rc == 0 && s->output)
        rc = put(1, 2);
    else if (rc == 0 && pipes[1] >= 0)
        rc = put(pipes[1], 2);
    return rc;
}

/* In the child: sets signals, environment and directory of task i, which is or was the process pid.
 */
static void enter_task(const struct run *r, int64_t i, pid_t pid)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_environment(r, i, pid);
    if (r->s->dir && chdir(r->s->dir) != 0) {
        slurm_error(r->s->program, "%s cannot be entered: %s", r->s->dir, strerror(errno));
        _exit(1);
    }
}

static _Noreturn void exec_task(const struct run *r, int64_t i, const int pipes[2], char **argv)
{
    struct err e;
    int code;
    enter_task(r, i, getpid());
    if (set_files(r, i, pipes) != 0)
        _exit(1);
    if (r->s->programs && programs_words(r->s->programs, r->p->ids[i], argv + 1, &argv, &e) != 0) {
        slurm_error(r->s->program, "%s: %s", r->command, e.text);
        _exit(1);
    }
    if (r->s->prolog && (code = step_prolog(r->s)) != 0)
        _exit(code);
    execvp(argv[0], argv);
    int why = errno;
    slurm_error(r->s->program, "execve(): %s: %s", argv[0], strerror(why));
    _exit(why == ENOENT ? 2 : 13);
}

static int start(struct run *r, int64_t i, char **argv)
{
    struct task *t = &r->tasks[i];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    t->pipes[0] = t->pipes[1] = -1;
    if (r->s->labels && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)) {
        error(r, strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exec_task(r, i, (const int[]){out[1], err[1]}, argv);
    if (r->s->labels) {
        close(out[1]);
        close(err[1]);
        t->pipes[0] = out[0];
        t->pipes[1] = err[0];
    }
    if (pid < 0) {
        error(r, strerror(errno));
        return -1;
    }
    t->pid = pid;
    return 0;
}

/* ---- epilogs ---- */

/* The epilog runs in its own process group, which is killed after EPILOG_MS. Its standard output is
 * discarded, as in Slurm. */
static _Noreturn void exec_epilog(const struct run *r, int64_t i)
{
    setpgid(0, 0);
    enter_task(r, i, r->tasks[i].pid);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (put(null, STDIN_FILENO) != 0 || put(null, STDOUT_FILENO) != 0)
        _exit(1);
    execl(r->s->epilog, r->s->epilog, (char *)NULL);
    slurm_error(
        r->s->program, "--task-epilog: %s cannot be run: %s", r->s->epilog, strerror(errno));
    _exit(1);
}

static void start_epilog(const struct run *r, int64_t i)
{
    struct task *t = &r->tasks[i];
    if (!r->s->epilog)
        return;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exec_epilog(r, i);
    if (pid < 0) {
        error(r, strerror(errno));
        return;
    }
    setpgid(pid, pid);
    t->epilog = pid;
    t->epilog_until_ms = clock_mono(&clock_system).ms + EPILOG_MS;
}

static bool has_epilogs(const struct run *r)
{
    for (int64_t i = 0; r->s->epilog && i < r->p->n; i++)
        if (r->tasks[i].epilog > 0)
            return true;
    return false;
}

static void end_late_epilogs(const struct run *r)
{
    int64_t now = clock_mono(&clock_system).ms;
    for (int64_t i = 0; r->s->epilog && i < r->p->n; i++)
        if (r->tasks[i].epilog > 0 && now >= r->tasks[i].epilog_until_ms)
            kill(-r->tasks[i].epilog, SIGKILL);
}

static void take_epilog(const struct run *r, int64_t i, int status)
{
    r->tasks[i].epilog = 0;
    if (WIFSIGNALED(status) && !r->s->quiet)
        slurm_error(r->s->program, "%s: task %lld: its epilog was killed: it has %d s", r->node,
            (long long)r->p->ids[i], EPILOG_MS / 1000);
}

/* ---- labelled output ---- */

static void write_line(int to, int64_t task, const char *p, size_t n)
{
    FILE *f = to == 0 ? stdout : stderr;
    fprintf(f, "%lld: ", (long long)task);
    fwrite(p, 1, n, f);
    if (n == 0 || p[n - 1] != '\n')
        fputc('\n', f);
    fflush(f);
}

static void relay(const struct run *r, int64_t i, int which)
{
    struct task *t = &r->tasks[i];
    struct buf *b = &t->lines[which];
    ssize_t n = read(t->pipes[which], buf_reserve(b, 4096), 4096);
    if (n > 0)
        buf_commit(b, (size_t)n);
    for (char *end;
         b->len > 0 && ((end = memchr(b->data, '\n', b->len)) || b->len > LABEL_LINE_MAX);) {
        size_t len = end ? (size_t)(end - b->data) + 1 : b->len;
        write_line(which, r->p->ids[i], b->data, len);
        buf_remove_front(b, len);
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    if (b->len > 0)
        write_line(which, r->p->ids[i], b->data, b->len);
    buf_deinit(b);
    close(t->pipes[which]);
    t->pipes[which] = -1;
}

/* ---- waiting ---- */

static void signal_all(const struct run *r, int number)
{
    for (int64_t i = 0; i < r->p->n; i++)
        if (r->tasks[i].pid > 0 && !r->tasks[i].ended)
            kill(r->tasks[i].pid, number);
    parts_signal(r->parts, number);
}

static void report_end(const struct run *r, int64_t i, int status)
{
    if (r->s->quiet || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return;
    long long task = r->p->ids[i];
    if (WIFSIGNALED(status))
        slurm_error(r->s->program, "%s: task %lld: %s", r->node, task, strsignal(WTERMSIG(status)));
    else
        slurm_error(r->s->program, "%s: task %lld: Exited with exit code %d", r->node, task,
            WEXITSTATUS(status));
}

static void reap(struct run *r)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        parts_reap(r->parts, pid, status);
        for (int64_t i = 0; i < r->p->n; i++)
            if (r->tasks[i].epilog == pid) {
                take_epilog(r, i, status);
            } else if (r->tasks[i].pid == pid && !r->tasks[i].ended) {
                r->tasks[i].ended = true;
                r->tasks[i].status = status;
                report_end(r, i, status);
                start_epilog(r, i);
                if (r->s->kill_on_bad_exit && status != 0)
                    signal_all(r, SIGTERM);
            }
    }
}

static bool is_over(const struct run *r)
{
    for (int64_t i = 0; i < r->p->n; i++)
        if (r->tasks[i].epilog > 0)
            return false;
        else if (r->tasks[i].pid > 0 &&
                 (!r->tasks[i].ended || r->tasks[i].pipes[0] >= 0 || r->tasks[i].pipes[1] >= 0))
            return false;
    return true;
}

static void read_signals(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof(info)) == sizeof(info))
        /* the terminal sends SIGINT to all processes itself */
        if (info.ssi_signo != SIGCHLD &&
            !(r->s->pty && isatty(STDIN_FILENO) && info.ssi_signo == SIGINT))
            signal_all(r, (int)info.ssi_signo);
}

/* One node's part has failed: asks the rest to end, then kills it. */
static void give_up(struct run *r)
{
    int64_t now = clock_mono(&clock_system).ms;
    if (r->given_up_ms == 0)
        signal_all(r, SIGTERM);
    else if (now - r->given_up_ms > KILL_MS)
        signal_all(r, SIGKILL);
    r->given_up_ms = r->given_up_ms ? r->given_up_ms : now;
}

static void wait_for_tasks(struct run *r)
{
    size_t own = (size_t)r->p->n * 2 + 1;
    struct pollfd *p = mem_array(own + parts_fds_max(r->parts), sizeof(*p));
    while (!is_over(r) || !parts_are_over(r->parts)) {
        p[0] = (struct pollfd){.fd = r->signals, .events = POLLIN};
        for (int64_t i = 0; i < r->p->n * 2; i++)
            p[i + 1] =
                (struct pollfd){.fd = r->tasks[i / 2].pid > 0 ? r->tasks[i / 2].pipes[i % 2] : -1,
                    .events = POLLIN};
        size_t n = parts_poll(r->parts, p + own);
        if (poll(p, (nfds_t)(own + n), r->parts || has_epilogs(r) ? CHECK_MS : -1) < 0 &&
            errno != EINTR)
            break;
        read_signals(r);
        reap(r);
        end_late_epilogs(r);
        for (int64_t i = 0; i < r->p->n * 2; i++)
            if (p[i + 1].fd >= 0 && p[i + 1].revents)
                relay(r, i / 2, (int)(i % 2));
        if (parts_handle(r->parts, p + own, n) && r->s->kill_on_bad_exit)
            signal_all(r, SIGTERM);
        if (parts_have_failed(r->parts))
            give_up(r);
    }
    free(p);
}

static int exit_code(const struct run *r)
{
    int code = parts_exit_code(r->parts);
    for (int64_t i = 0; i < r->p->n; i++) {
        int status = r->tasks[i].status,
            one = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (r->tasks[i].pid > 0 && one > code)
            code = one;
    }
    return code;
}

static void catch_signals(struct run *r)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGHUP);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    r->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

int step_tasks(const struct step *s, const struct step_node *p, struct parts *parts, char **argv)
{
    const char *node = getenv("SLURMD_NODENAME");
    struct run r = {
        .s = s, .p = p, .parts = parts, .command = argv[0], .node = node ? node : "localhost"};
    r.job = step_env_number("SLURM_JOB_ID", 0);
    r.tasks = mem_array((size_t)p->n, sizeof(*r.tasks));
    catch_signals(&r);
    bool started = parts_start(parts);
    for (int64_t i = 0; started && i < p->n; i++)
        started = start(&r, i, argv) == 0;
    if (!started)
        signal_all(&r, SIGKILL);
    wait_for_tasks(&r);
    int code = exit_code(&r);
    free(r.tasks);
    return started ? code : 1;
}
