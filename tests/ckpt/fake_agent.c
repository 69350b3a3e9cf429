/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/fake_agent.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vformat.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 2
#define PATIENCE_MS 60000

struct fake {
    struct scratch *s;
    struct fake_attempt *a;
    char control[400], checkpoint[400], notice[400];
    pid_t pid;
    int output_fd;
    bool asked;
    int64_t served; /* commits answered */
};

static void set_env(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void set_env(const char *name, const char *fmt, ...)
{
    char value[2048];

    VFORMAT(value, fmt);
    setenv(name, value, 1);
}

_Noreturn static void run_program(const struct fake *f, int output_fd)
{
    const struct fake_attempt *a = f->a;

    setsid();
    dup2(output_fd, 1);
    dup2(output_fd, 2);
    set_env("BELAY_CONTROL_DIR", "%s", f->control);
    set_env("BELAY_CHECKPOINT_DIR", "%s", f->checkpoint);
    set_env("BELAY_NOTICE_FILE", "%s", f->notice);
    set_env("BELAY_RESTORED", "%d", a->restored_progress != INT64_MIN);
    set_env("BELAY_ATTEMPT", "%lld", (long long)a->attempt);
    set_env("PYTHONDONTWRITEBYTECODE", "1");
    if (a->path_add)
        set_env("PATH", "%s:%s", a->path_add, getenv("PATH"));
    if (!a->cwd || chdir(a->cwd) == 0)
        execvp(a->argv[0], (char *const *)a->argv);
    _exit(127);
}

static void start(struct fake *f)
{
    struct ckpt_restored r;
    struct err e;
    int fds[2];

    OK(ckpt_fence(&f->s->job, f->a->attempt, &e));
    OK(ckpt_restore(&f->s->job, f->a->attempt, f->checkpoint, NULL, &r, &e));
    f->a->restored_progress = r.id.attempt ? r.progress : INT64_MIN;
    f->a->last_progress = -1;
    OK(fs_remove_tree(f->control, &e));
    OK(fs_mkdirs(f->control, 0700, &e));
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(NULL);
    f->pid = fork();
    assert_true(f->pid >= 0);
    if (f->pid == 0)
        run_program(f, fds[1]);
    close(fds[1]);
    f->output_fd = fds[0];
}

static void put(const char *path, const char *text)
{
    struct err e;

    OK(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static void ask(struct fake *f)
{
    long long deadline_ms = clock_wall(&clock_system).ms + 120000;
    char text[200];

    f->asked = true;
    if (strcmp(f->a->reason, "notice") == 0) {
        snprintf(text, sizeof(text),
            "{\"kind\":\"reclaim\",\"deadline_ms\":%lld,\"seconds_left\":120}", deadline_ms);
        put(f->notice, text);
    }
    if (f->a->signal) {
        kill(f->pid, f->a->signal);
        return;
    }
    snprintf(text, sizeof(text), "{\"id\":1,\"reason\":\"%s\",\"deadline_ms\":%lld}", f->a->reason,
        deadline_ms);
    put(path_in(f->control, "request"), text);
}

/* A number from a file of the program, or -1. */
static int64_t read_number(const char *path, const char *key)
{
    struct buf text = {0};
    json_t *v = NULL;
    struct err e;
    int64_t n = -1;

    if (!fs_read(path, 4096, &text, &e)) {
        OK(json_parse(buf_str(&text), text.len, 4096, &v, &e));
        if (json_is_integer(json_object_get(v, key)))
            n = json_integer_value(json_object_get(v, key));
        json_decref(v);
    }
    buf_deinit(&text);
    return n;
}

static void serve_commit(struct fake *f, const char *commit, const char *result)
{
    struct fake_attempt *a = f->a;
    struct ckpt_stats stats;
    char text[300];
    struct err e;

    a->last_progress = read_number(commit, "progress");
    if (a->refuse) {
        snprintf(text, sizeof(text), "{\"ok\":false,\"error\":\"%s\"}", a->refuse);
    } else {
        OK(ckpt_save(&f->s->job, (struct ckpt_id){a->attempt, ++a->commits}, f->checkpoint,
            a->last_progress, NULL, &stats, &e));
        snprintf(text, sizeof(text), "{\"ok\":true,\"attempt\":%d,\"sequence\":%d}",
            (int)a->attempt, a->commits);
    }
    unlink(path_in(f->control, "request"));
    OK(fs_create_atomic(result, text, strlen(text), 0600, &e));
}

static void tick(struct fake *f)
{
    char commit[500], result[500];

    if (!f->asked && f->a->ask_at && f->a->output.data && strstr(f->a->output.data, f->a->ask_at))
        ask(f);
    snprintf(commit, sizeof(commit), "%s/commit.%d", f->control, (int)f->served + 1);
    snprintf(result, sizeof(result), "%s/result.%d", f->control, (int)f->served + 1);
    if (fs_exists(result)) {
        f->served++; /* the program no longer waits for it */
    } else if (fs_exists(commit)) {
        serve_commit(f, commit, result);
        f->served++;
    }
}

/* False at end of file. */
static bool read_output(struct fake *f)
{
    struct pollfd p = {.fd = f->output_fd, .events = POLLIN};
    char text[4096];
    ssize_t n;

    if (poll(&p, 1, TICK_MS) <= 0)
        return true;
    n = read(f->output_fd, text, sizeof(text));
    if (n > 0)
        buf_add(&f->a->output, text, (size_t)n);
    return n > 0;
}

void fake_attempt_run(struct scratch *s, struct fake_attempt *a)
{
    struct fake f = {.s = s, .a = a};
    int64_t end = clock_mono(&clock_system).ms + PATIENCE_MS, progress;
    int status;

    snprintf(f.control, sizeof(f.control), "%s/control", s->dir);
    snprintf(f.checkpoint, sizeof(f.checkpoint), "%s/checkpoint", s->dir);
    snprintf(f.notice, sizeof(f.notice), "%s/control/notice", s->dir);
    start(&f);
    while (read_output(&f)) {
        tick(&f);
        if (clock_mono(&clock_system).ms > end) {
            print_error("%s does not end; so far: %s\n", a->argv[0], buf_str(&a->output));
            kill(-f.pid, SIGKILL);
            fail();
        }
    }
    close(f.output_fd);
    assert_int_equal(waitpid(f.pid, &status, 0), f.pid);
    a->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    progress = read_number(path_in(f.control, "progress"), "done");
    if (progress > a->last_progress)
        a->last_progress = progress;
    /* with the signal method the files present now are the checkpoint */
    if (a->signal && a->exit_code == 85) {
        struct ckpt_stats stats;
        struct err e;

        OK(ckpt_save(&s->job, (struct ckpt_id){a->attempt, ++a->commits}, f.checkpoint, -1, NULL,
            &stats, &e));
    }
}
