/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread, one loop over a signalfd and the pipes of labelled output. What steps share of a job is in BELAY_CONTROL_DIR: a
 * file for each CPU, locked by who uses it, one that is locked by who waits for CPUs (so that a large step is not overtaken for
 * ever), and one that grows by a byte with each step, which numbers them. All locks go with their process.
 *
 * SIGUSR1 and SIGUSR2 are not caught: belay asks programs that do for a save, and would have it for an answer.
 */
#include "cli/step.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "base/str.h"
#include "cli/slurm.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOT_WAIT_MS 50
#define LABEL_LINE_MAX 65536 /* a longer line is cut into several */

struct task {
    pid_t pid;
    bool ended;
    int status;
    int pipes[2]; /* read ends of stdout and stderr, with labels; -1 */
    struct buf lines[2];
};

struct run {
    const struct step *s;
    const char *command, *control, *node;
    int64_t job, id, nodes, node_rank;
    int signals;
    struct task *tasks;
    int64_t n;
    int *slots;
    int64_t n_slots;
};

static int64_t number_of(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t n;
    return text && str_to_i64(text, 0, INT64_MAX, name, &n, NULL) == 0 ? n : fallback;
}

static void error(const struct run *r, const char *text)
{
    slurm_error(r->s->program, "%s", text);
}

/* ---- what steps share ---- */

static int open_shared(const struct run *r, const char *name, int64_t number)
{
    char *path = number < 0 ? mem_printf("%s/%s", r->control, name) : mem_printf("%s/%s.%lld", r->control, name, (long long)number);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    free(path);
    return fd;
}

static int64_t next_step(const struct run *r)
{
    int fd = open_shared(r, "srun.steps", -1);
    off_t end = fd >= 0 && write(fd, ".", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : 1;
    if (fd >= 0)
        close(fd);
    return end > 0 ? end - 1 : 0;
}

static void release_slots(struct run *r)
{
    while (r->n_slots > 0)
        close(r->slots[--r->n_slots]);
    free(r->slots);
    r->slots = NULL;
}

/* Locks one more of the job's CPUs if one is free. */
static bool take_slot(struct run *r, int64_t cpus)
{
    for (int64_t i = 0; i < cpus; i++) {
        int fd = open_shared(r, "srun.cpu", i);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            r->slots[r->n_slots++] = fd;
            return true;
        }
        if (fd >= 0)
            close(fd);
    }
    return false;
}

/* Until the job's other steps leave as many CPUs as this one wants; the job's time limit is the end of that. */
static int take_slots(struct run *r, int64_t wanted)
{
    int64_t cpus = number_of("SLURM_CPUS_ON_NODE", wanted);
    const struct timespec pause = {.tv_nsec = SLOT_WAIT_MS * 1000000L};
    bool told = r->s->quiet;
    if (r->s->overlap || getenv("SLURM_STEP_ID"))
        return 0;
    if (wanted > cpus) {
        slurm_error(r->s->program, "Unable to create step for job %lld: More processors requested than permitted",
            (long long)r->job);
        return -1;
    }
    r->slots = mem_array((size_t)wanted, sizeof(*r->slots));
    int turn = open_shared(r, "srun.turn", -1);
    if (turn < 0 || flock(turn, LOCK_EX) != 0) {
        slurm_error(r->s->program, "the job's directory %s cannot be used: %s", r->control, strerror(errno));
        if (turn >= 0)
            close(turn);
        return -1;
    }
    while (r->n_slots < wanted) {
        if (take_slot(r, cpus))
            continue;
        if (!told)
            fprintf(stderr, "%s: Job %lld step creation temporarily disabled, retrying (Requested nodes are busy)\n",
                r->s->program, (long long)r->job);
        told = true;
        nanosleep(&pause, NULL);
    }
    close(turn);
    return 0;
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
        bool keep = strncmp(*p, "SLURM", 5) == 0 || strncmp(*p, "BELAY_", 6) == 0 || strncmp(*p, "PATH=", 5) == 0;
        while (!keep && slurm_next_item(&rest, &item))
            keep = str_eq(buf_str(&item), "ALL") || (item.len == len && strncmp(*p, buf_str(&item), len) == 0);
        if (keep)
            kept[n++] = *p;
    }
    environ = kept;
    while (slurm_next_item(&list, &item))
        if (strchr(buf_str(&item), '='))
            putenv(mem_strdup(buf_str(&item)));
    buf_deinit(&item);
}

static void set_environment(const struct run *r, int64_t i)
{
    const char *slash = strrchr(r->command, '/');
    struct buf ids = {0};
    for (int64_t k = 0; k < r->n; k++)
        buf_printf(&ids, "%s%lld", k ? "," : "", (long long)(r->node_rank * r->n + k));
    if (r->s->export)
        keep_only(r->s->export);
    set_number("SLURM_PROCID", r->node_rank * r->n + i);
    set_number("SLURM_LOCALID", i);
    set_number("SLURM_NODEID", r->node_rank);
    set_number("SLURM_NTASKS", r->n * r->nodes);
    set_number("SLURM_NPROCS", r->n * r->nodes);
    set_number("SLURM_STEP_ID", r->id);
    set_number("SLURM_STEPID", r->id);
    set_number("SLURM_STEP_NUM_TASKS", r->n * r->nodes);
    set_number("SLURM_STEP_NUM_NODES", r->nodes);
    set_number("SLURM_STEP_TASKS_PER_NODE", r->n);
    set_number("SLURM_TASK_PID", getpid());
    if (r->s->cpus_per_task > 0)
        set_number("SLURM_CPUS_PER_TASK", r->s->cpus_per_task);
    setenv("SLURM_STEP_NODELIST", r->node, 1);
    setenv("SLURM_GTIDS", buf_str(&ids), 1);
    setenv("SLURM_STEP_NAME", r->s->name ? r->s->name : slash ? slash + 1 : r->command, 1);
    buf_deinit(&ids);
}

static int open_file(const struct run *r, const char *pattern, int64_t i, int flags)
{
    char id[24], *name = NULL;
    struct err e;
    snprintf(id, sizeof(id), "%lld", (long long)r->id);
    const struct pattern_values v = {.job = r->job,
        .name = getenv("SLURM_JOB_NAME"),
        .user = getenv("USER"),
        .node = r->node,
        .step = id,
        .rank = r->node_rank * r->n + i,
        .restarts = number_of("SLURM_RESTART_COUNT", 0)};
    if (pattern_expand(pattern, &v, &name, &e) != 0) {
        error(r, e.text);
        return -1;
    }
    int fd = open(name, flags | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        slurm_error(r->s->program, "%s cannot be opened: %s", name, strerror(errno));
    free(name);
    return fd;
}

static int put(int fd, int at)
{
    return fd >= 0 && dup2(fd, at) >= 0 ? 0 : -1;
}

/* Labels come of what is piped to srun itself; files have none. */
static int set_files(const struct run *r, int64_t i, const int pipes[2])
{
    const struct step *s = r->s;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | (i == 0 || (s->output && pattern_tells_ranks(s->output)) ? O_TRUNC : 0);
    int rc = 0;
    if (s->input && !str_eq(s->input, "all"))
        rc = put(str_eq(s->input, "none") ? open("/dev/null", O_RDONLY) : open_file(r, s->input, i, O_RDONLY), 0);
    else if (i > 0)
        rc = put(open("/dev/null", O_RDONLY), 0);
    if (rc == 0 && s->output)
        rc = put(str_eq(s->output, "none") ? open("/dev/null", O_WRONLY) : open_file(r, s->output, i, flags), 1);
    else if (rc == 0 && pipes[0] >= 0)
        rc = put(pipes[0], 1);
    if (rc == 0 && s->error)
        rc = put(str_eq(s->error, "none") ? open("/dev/null", O_WRONLY) : open_file(r, s->error, i, flags), 2);
    else if (rc == 0 && s->output)
        rc = put(1, 2);
    else if (rc == 0 && pipes[1] >= 0)
        rc = put(pipes[1], 2);
    return rc;
}

static _Noreturn void be_task(const struct run *r, int64_t i, const int pipes[2], char **argv)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_environment(r, i);
    if (r->s->dir && chdir(r->s->dir) != 0) {
        slurm_error(r->s->program, "%s cannot be entered: %s", r->s->dir, strerror(errno));
        _exit(1);
    }
    if (set_files(r, i, pipes) != 0)
        _exit(1);
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
        be_task(r, i, (const int[]){out[1], err[1]}, argv);
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
    for (char *end; b->len > 0 && ((end = memchr(b->data, '\n', b->len)) || b->len > LABEL_LINE_MAX);) {
        size_t len = end ? (size_t)(end - b->data) + 1 : b->len;
        write_line(which, r->node_rank * r->n + i, b->data, len);
        buf_remove_front(b, len);
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    if (b->len > 0)
        write_line(which, r->node_rank * r->n + i, b->data, b->len);
    buf_deinit(b);
    close(t->pipes[which]);
    t->pipes[which] = -1;
}

/* ---- waiting ---- */

static void signal_all(const struct run *r, int number)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->tasks[i].pid > 0 && !r->tasks[i].ended)
            kill(r->tasks[i].pid, number);
}

static void tell_end(const struct run *r, int64_t i, int status)
{
    if (r->s->quiet || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return;
    long long task = r->node_rank * r->n + i;
    if (WIFSIGNALED(status))
        slurm_error(r->s->program, "%s: task %lld: %s", r->node, task, strsignal(WTERMSIG(status)));
    else
        slurm_error(r->s->program, "%s: task %lld: Exited with exit code %d", r->node, task, WEXITSTATUS(status));
}

static void reap(struct run *r)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int64_t i = 0; i < r->n; i++)
            if (r->tasks[i].pid == pid) {
                r->tasks[i].ended = true;
                r->tasks[i].status = status;
                tell_end(r, i, status);
                if (r->s->kill_on_bad_exit && status != 0)
                    signal_all(r, SIGTERM);
            }
}

static bool is_over(const struct run *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->tasks[i].pid > 0 && (!r->tasks[i].ended || r->tasks[i].pipes[0] >= 0 || r->tasks[i].pipes[1] >= 0))
            return false;
    return true;
}

static void wait_for_tasks(struct run *r)
{
    struct pollfd *p = mem_array((size_t)r->n * 2 + 1, sizeof(*p));
    struct signalfd_siginfo info;
    while (!is_over(r)) {
        p[0] = (struct pollfd){.fd = r->signals, .events = POLLIN};
        for (int64_t i = 0; i < r->n * 2; i++)
            p[i + 1] = (struct pollfd){.fd = r->tasks[i / 2].pid > 0 ? r->tasks[i / 2].pipes[i % 2] : -1, .events = POLLIN};
        if (poll(p, (nfds_t)(r->n * 2 + 1), -1) < 0 && errno != EINTR)
            break;
        while (read(r->signals, &info, sizeof(info)) == sizeof(info))
            if (info.ssi_signo != SIGCHLD)
                signal_all(r, (int)info.ssi_signo);
        reap(r);
        for (int64_t i = 0; i < r->n * 2; i++)
            if (p[i + 1].fd >= 0 && p[i + 1].revents)
                relay(r, i / 2, (int)(i % 2));
    }
    free(p);
}

static int exit_code(const struct run *r)
{
    int code = 0;
    for (int64_t i = 0; i < r->n; i++) {
        int status = r->tasks[i].status, one = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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

int step_run(const struct step *s, char **argv)
{
    const char *node = getenv("SLURMD_NODENAME");
    struct run r = {.s = s, .command = argv[0], .control = getenv("BELAY_CONTROL_DIR"), .node = node ? node : "localhost"};
    r.job = number_of("SLURM_JOB_ID", 0);
    r.nodes = number_of("SLURM_NNODES", 1);
    r.nodes = r.nodes > 0 ? r.nodes : 1;
    r.node_rank = number_of("SLURM_NODEID", 0);
    bool nested = getenv("SLURM_STEP_ID");
    r.n = s->tasks > 0 ? s->tasks : nested ? 1 : number_of("SLURM_NTASKS", r.nodes) / r.nodes;
    r.n = r.n < 1 ? 1 : r.n > STEP_TASKS_MAX ? STEP_TASKS_MAX : r.n;
    int code = 1;
    if (take_slots(&r, r.n * (s->cpus_per_task > 0 ? s->cpus_per_task : 1)) == 0) {
        r.id = next_step(&r);
        r.tasks = mem_array((size_t)r.n, sizeof(*r.tasks));
        catch_signals(&r);
        bool started = true;
        for (int64_t i = 0; started && i < r.n; i++)
            started = start(&r, i, argv) == 0;
        if (!started)
            signal_all(&r, SIGKILL);
        wait_for_tasks(&r);
        code = started ? exit_code(&r) : 1;
        free(r.tasks);
    }
    release_slots(&r);
    return code;
}
