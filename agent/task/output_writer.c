/* SPDX-License-Identifier: Apache-2.0
 *
 * The position of each copy is in memory shared with the supervisor, so that a second process can
 * continue where a killed one stopped. A position moves after the write, so a piece may be written
 * twice, but none is lost.
 */
#include "agent/task/output_writer.h"

#include "agent/open_in_time.h"

#include "base/log.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REPORT_WAIT_MS 5000 /* beyond open_wait_ms, for the child's report on opening its files */
#define FINISH_WAIT_MS 10000
#define POLL_MS 1000 /* detects writes that inotify did not report (its queue was full) */
#define PIECE_BYTES (64 << 10)

struct output_writer_progress {
    off_t at[OUTPUT_WRITER_SOURCES];
};

/* The child's report: 0, or errno and the file that could not be opened. */
struct opened {
    int copy; /* -1 = the directory or the user */
    int error;
};

/* ---- the child ---- */

static void write_all(int *fd, const char *p, size_t n)
{
    while (n > 0 && *fd >= 0) {
        ssize_t done = write(*fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            close(*fd);
            *fd = -1;
            return;
        }
        p += done;
        n -= (size_t)done;
    }
}

static void copy(int from, off_t *at, int targets[OUTPUT_WRITER_TARGETS])
{
    char piece[PIECE_BYTES];
    ssize_t n;
    while ((n = pread(from, piece, sizeof(piece), *at)) > 0) {
        for (int i = 0; i < OUTPUT_WRITER_TARGETS; i++)
            write_all(&targets[i], piece, (size_t)n);
        *at += n;
    }
}

static bool is_fifo(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

int output_writer_open_files(const struct output_writer *s, bool again,
    int ret_fds[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS], int *ret_copy)
{
    *ret_copy = -1;
    umask(022);
    if (user_become(s->user) < 0 || chdir(s->cwd) < 0)
        return errno;
    const int64_t until = clock_mono(&clock_system).ms + s->open_wait_ms;
    for (int i = 0; i < OUTPUT_WRITER_SOURCES; i++) {
        const struct output_writer_copy *c = &s->copies[i];
        int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY |
                    (c->truncate && !again ? O_TRUNC : 0);
        int64_t left_ms = until - clock_mono(&clock_system).ms;
        bool is_wanted = c->from >= 0 && c->file && !(again && is_fifo(c->file));
        ret_fds[i][0] = is_wanted ? open_in_time(c->file, flags, 0666, left_ms) : -1;
        ret_fds[i][1] = c->from >= 0 ? c->also : -1;
        *ret_copy = i;
        if (is_wanted && ret_fds[i][0] < 0)
            return errno;
    }
    return 0;
}

static int watch_sources(const struct output_writer *s)
{
    char path[64];
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (int i = 0; fd >= 0 && i < OUTPUT_WRITER_SOURCES; i++)
        if (s->copies[i].from >= 0) {
            snprintf(path, sizeof(path), "/proc/self/fd/%d", s->copies[i].from);
            inotify_add_watch(fd, path, IN_MODIFY);
        }
    return fd; /* if -1, the files are read every POLL_MS */
}

/* Closes the supervisor's lock, socket and pipes, which must not stay open after its end. */
static void close_others(const struct output_writer *s, int stop, int report)
{
    int last = stop > report ? stop : report;
    for (int i = 0; i < OUTPUT_WRITER_SOURCES; i++) {
        last = s->copies[i].from > last ? s->copies[i].from : last;
        last = s->copies[i].also > last ? s->copies[i].also : last;
    }
    for (int fd = 3; fd <= last; fd++) {
        bool kept = fd == stop || fd == report;
        for (int i = 0; i < OUTPUT_WRITER_SOURCES; i++)
            kept = kept || fd == s->copies[i].from || fd == s->copies[i].also;
        if (!kept)
            close(fd);
    }
    close_range((unsigned)last + 1, ~0U, 0);
}

static _Noreturn void serve(const struct output_writer *s, int stop, int report, bool again)
{
    int targets[OUTPUT_WRITER_SOURCES][OUTPUT_WRITER_TARGETS];
    char events[4096];
    bool stopped = false;
    for (int n = 1; n < NSIG; n++)
        /* signals to the task do not concern this process */
        signal(n, n == SIGCHLD ? SIG_DFL : SIG_IGN);
    close_others(s, stop, report);
    int watch = watch_sources(s); /* as the agent's user: the job's user may not open these paths */
    struct opened o = {0};
    o.error = output_writer_open_files(s, again, targets, &o.copy);
    ssize_t n = write(report, &o, sizeof(o));
    close(report);
    while (n == sizeof(o) && o.error == 0) {
        for (int i = 0; i < OUTPUT_WRITER_SOURCES; i++)
            if (s->copies[i].from >= 0)
                copy(s->copies[i].from, &s->progress->at[i], targets[i]);
        if (stopped)
            break;
        struct pollfd p[2] = {{.fd = stop, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
        poll(p, 2, POLL_MS);
        while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
            ;
        stopped = p[0].revents != 0;
    }
    _exit(o.error ? 1 : 0);
}

/* ---- the supervisor's side ---- */

static int begin(struct output_writer *s, bool again, int *ret_report, struct err *e)
{
    int stop[2], report[2];
    if (pipe2(stop, O_CLOEXEC) < 0)
        return err_errno(e, errno, "making a pipe");
    if (pipe2(report, O_CLOEXEC) < 0) {
        int rc = err_errno(e, errno, "making a pipe");
        close(stop[0]);
        close(stop[1]);
        return rc;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(stop[1]);
        close(report[0]);
        serve(s, stop[0], report[1], again);
    }
    int why = errno;
    close(stop[0]);
    close(report[1]);
    if (pid < 0) {
        close(stop[1]);
        close(report[0]);
        return err_errno(e, why, "starting a process");
    }
    s->pid = pid;
    s->stop = stop[1];
    *ret_report = report[0];
    return 0;
}

static int await_opened(const struct output_writer *s, int report, struct err *e)
{
    struct opened o;
    struct pollfd p = {.fd = report, .events = POLLIN};
    int64_t wait_ms = s->open_wait_ms + REPORT_WAIT_MS;
    int ready = poll(&p, 1, (int)wait_ms);
    ssize_t n = ready > 0 ? read(report, &o, sizeof(o)) : 0;
    close(report);
    if (n != sizeof(o))
        return err_set(e, ERR_CONFIG, "its output files in %.150s could not be opened in %d s",
            s->cwd, (int)(wait_ms / 1000));
    if (o.error != 0 && o.copy < 0)
        return err_set(e, ERR_CONFIG, "the working directory %.150s cannot be entered: %s", s->cwd,
            strerror(o.error));
    if (o.error == ETIMEDOUT)
        return err_set(e, ERR_CONFIG,
            "its output %.150s could not be opened in %d s: if it is a FIFO, no program reads it",
            s->copies[o.copy].file, (int)(s->open_wait_ms / 1000));
    if (o.error != 0)
        return err_set(e, ERR_CONFIG, "its output cannot be written to %.150s: %s",
            s->copies[o.copy].file, strerror(o.error));
    return 0;
}

static void drop(struct output_writer *s)
{
    if (s->stop >= 0)
        close(s->stop);
    s->stop = -1;
    s->pid = 0;
}

int output_writer_start(struct output_writer *s, struct err *e)
{
    int report;
    s->progress =
        mmap(NULL, sizeof(*s->progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->progress == MAP_FAILED) {
        s->progress = NULL;
        return err_errno(e, errno, "sharing memory");
    }
    int rc = begin(s, false, &report, e);
    rc = rc ? rc : await_opened(s, report, e);
    if (rc && s->pid > 0) {
        kill(s->pid, SIGKILL);
        drop(s);
    }
    return rc;
}

/* Waits until the child has copied everything. False if it was killed with the task. */
static bool wait_for(struct output_writer *s)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int64_t until = clock_mono(&clock_system).ms + FINISH_WAIT_MS;
    int status;
    for (;;) {
        pid_t pid = waitpid(s->pid, &status, WNOHANG);
        if (pid == s->pid)
            return WIFEXITED(status);
        if (pid < 0 && errno != EINTR)
            return false; /* already reaped with the cgroup */
        if (clock_mono(&clock_system).ms > until)
            break;
        nanosleep(&pause, NULL);
    }
    log_warn("a job's output could not be written to its file in time", log_s("cwd", s->cwd));
    kill(s->pid, SIGKILL);
    return true;
}

int64_t output_writer_copied(const struct output_writer *s, int i)
{
    const volatile off_t *at = s->progress ? &s->progress->at[i] : NULL;
    return at && s->copies[i].from >= 0 ? (int64_t)*at : INT64_MAX;
}

void output_writer_finish(struct output_writer *s)
{
    struct err e;
    int report;
    if (s->pid == 0)
        return;
    close(s->stop);
    s->stop = -1;
    bool done = wait_for(s);
    drop(s);
    if (!done && begin(s, true, &report, &e) == 0) {
        if (await_opened(s, report, &e) == 0) {
            close(s->stop);
            s->stop = -1;
            wait_for(s);
        } else {
            kill(s->pid, SIGKILL);
        }
        drop(s);
    }
    munmap(s->progress, sizeof(*s->progress));
    s->progress = NULL;
}
