/* SPDX-License-Identifier: Apache-2.0
 *
 * belay exec JOB -- COMMAND: a command in a running job's cgroup, as its user, with its environment. Two processes talk to belayd: this one
 * has what comes, its child what goes (struct client makes one call at a time).
 */
#include "cli/verbs.h"

#include "base/frames.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define WAIT_MS 20000
#define CALL_MS (WAIT_MS + 30000)
#define RANK_MAX 255
#define PIECE 32768

enum { VAL_TTY = 1, VAL_RANK };

struct choice {
    bool tty;
    int64_t rank;
};

struct session {
    struct client *client;
    int64_t id;
    bool tty;
    struct termios saved;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct err e;
    if (val == VAL_TTY) {
        c->tty = true;
    } else if (str_to_i64(arg, 0, RANK_MAX, "--rank", &c->rank, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* ---- the terminal ---- */

static void make_raw(struct session *s)
{
    struct termios raw;
    if (!s->tty || tcgetattr(STDIN_FILENO, &s->saved) != 0)
        return;
    raw = s->saved;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void make_sane(const struct session *s)
{
    if (s->tty)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &s->saved);
}

static void add_size(struct buf *out)
{
    struct winsize w = {0};
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) != 0)
        return;
    const unsigned char b[4] = {(unsigned char)(w.ws_row >> 8), (unsigned char)w.ws_row, (unsigned char)(w.ws_col >> 8),
        (unsigned char)w.ws_col};
    frame_add(out, FRAME_SIZE, b, sizeof(b));
}

/* ---- what goes: the child ---- */

/* All of it, from *offset on; belayd answers when it has room. */
static int post(struct session *s, struct client *c, const struct buf *frames, int64_t *offset, struct err *e)
{
    for (size_t at = 0; at < frames->len;) {
        struct client_reply reply = {0};
        json_t *v = NULL;
        char *path = mem_printf("/api/v1/channels/%lld/input?offset=%lld", (long long)s->id, (long long)*offset);
        int rc = client_call_bytes(c, path, frames->data + at, frames->len - at, CALL_MS, &reply, e);
        free(path);
        if (rc == 0)
            rc = json_parse(buf_str(&reply.body), reply.body.len, 4096, &v, e);
        client_reply_deinit(&reply);
        if (rc != 0)
            return rc;
        int64_t taken = cli_int(v, "size", *offset) - *offset;
        json_decref(v);
        if (taken <= 0 || taken > (int64_t)(frames->len - at))
            return err_set(e, ERR_IO, "belayd took %lld of %zu bytes", (long long)taken, frames->len - at);
        at += (size_t)taken;
        *offset += taken;
    }
    return 0;
}

/* False: there is no more. */
static bool read_input(struct buf *frames)
{
    char text[PIECE];
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n > 0)
        frame_add(frames, FRAME_IN, text, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        frame_add(frames, FRAME_EOF, NULL, 0);
    else
        return true;
    return n > 0;
}

static void read_signal(int signals, struct buf *frames)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo == SIGWINCH) {
        add_size(frames);
    } else {
        const char signum = (char)info.ssi_signo;
        frame_add(frames, FRAME_SIGNAL, &signum, 1);
    }
}

static int open_signals(bool tty)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    if (tty)
        sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Until the session is no more, or its parent ends it. */
static void send_all(struct session *s)
{
    struct client *c = NULL;
    struct err e;
    int64_t offset = 0;
    bool open = true;
    int signals = open_signals(s->tty), rc = client_create(&c, &e);
    while (rc == 0) {
        struct buf frames = {0};
        struct pollfd p[2] = {{.fd = signals, .events = POLLIN}, {.fd = open ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(p, 2, -1) > 0) {
            if (p[0].revents)
                read_signal(signals, &frames);
            if (p[1].revents)
                open = read_input(&frames);
            rc = post(s, c, &frames, &offset, &e);
        }
        buf_deinit(&frames);
    }
    client_destroy(c);
    _exit(0);
}

static pid_t start_sender(struct session *s)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    send_all(s);
    return 0;
}

/* ---- what comes ---- */

static int write_all(int fd, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_errno(e, errno, "writing the command's output");
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* *ret_exit stays -1 until it is known. */
static int take(const struct frame *f, int *ret_exit, struct err *e)
{
    switch (f->type) {
    case FRAME_OUT:
        return write_all(STDOUT_FILENO, f->p, f->n, e);
    case FRAME_ERR:
        return write_all(STDERR_FILENO, f->p, f->n, e);
    case FRAME_EXIT:
        *ret_exit = (unsigned char)f->p[0];
        return 0;
    case FRAME_FAIL:
        return err_set(e, ERR_IO, "%.*s", (int)(f->n < 400 ? f->n : 400), f->p);
    default:
        return err_set(e, ERR_INVALID, "belayd sent what no job sends (type %d)", (int)f->type);
    }
}

static int receive(struct session *s, int *ret_exit, struct err *e)
{
    struct buf frames = {0};
    int64_t offset = 0;
    int rc = 0;
    bool ends = false;
    while (rc == 0 && *ret_exit < 0 && !ends) {
        struct client_reply reply = {0};
        struct frame f;
        size_t used;
        int got;
        char *path =
            mem_printf("/api/v1/channels/%lld/output?offset=%lld&wait_ms=%d", (long long)s->id, (long long)offset, WAIT_MS);
        rc = client_call(s->client, "GET", path, NULL, CALL_MS, &reply, e);
        free(path);
        if (rc == ERR_UNAVAILABLE || rc == ERR_IO || rc == ERR_TIMEOUT)
            err_wrap(e, "the session has ended with belayd, which went away");
        offset += (int64_t)reply.body.len;
        ends = reply.channel_end;
        buf_add(&frames, reply.body.data, reply.body.len);
        client_reply_deinit(&reply);
        while (rc == 0 && (got = frame_read(buf_str(&frames), frames.len, &f, &used, e)) != 0) {
            rc = got < 0 ? got : take(&f, ret_exit, e);
            if (rc == 0)
                buf_remove_front(&frames, used);
        }
    }
    if (rc == 0 && *ret_exit < 0)
        rc = err_set(e, ERR_IO, "the session broke off");
    buf_deinit(&frames);
    return rc;
}

/* ---- the verb ---- */

static int begin(struct session *s, int64_t job, const struct choice *choice, const char **words, int n, struct err *e)
{
    struct winsize w = {0};
    const char *term = getenv("TERM");
    json_t *command = json_array(), *v = NULL;
    for (int i = 0; i < n; i++)
        json_array_append_new(command, json_text(words[i]));
    if (choice->tty)
        ioctl(STDIN_FILENO, TIOCGWINSZ, &w);
    json_t *body = json_pack("{s:o,s:I,s:b,s:o,s:i,s:i}", "command", command, "rank", (json_int_t)choice->rank, "tty",
        (int)choice->tty, "term", json_text(choice->tty && term ? term : ""), "rows", (int)w.ws_row, "columns", (int)w.ws_col);
    char *path = mem_printf("/api/v1/jobs/%lld/exec", (long long)job);
    int rc = client_json(s->client, "POST", path, body, &v, e);
    free(path);
    json_decref(body);
    s->id = cli_int(v, "id", 0);
    json_decref(v);
    return rc;
}

static void finish(struct session *s)
{
    struct err e;
    json_t *v = NULL;
    char *path = mem_printf("/api/v1/channels/%lld/close", (long long)s->id);
    client_json(s->client, "POST", path, NULL, &v, &e); /* one that is gone needs none */
    json_decref(v);
    free(path);
}

static int exec_in(int64_t job, const struct choice *choice, const char **words, int n, int *ret_exit, struct err *e)
{
    struct session s = {.tty = choice->tty};
    int rc = client_create(&s.client, e);
    if (rc == 0)
        rc = begin(&s, job, choice, words, n, e);
    if (rc == 0) {
        make_raw(&s);
        signal(SIGINT, SIG_IGN); /* the child passes them on */
        signal(SIGQUIT, SIG_IGN);
        pid_t sender = start_sender(&s);
        rc = receive(&s, ret_exit, e);
        if (sender > 0) {
            kill(sender, SIGKILL);
            waitpid(sender, NULL, 0);
        }
        make_sane(&s);
        finish(&s);
    }
    client_destroy(s.client);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice choice = {0};
    struct cli_args a;
    struct err e = {0};
    int64_t job;
    int code = -1, rc = cli_parse(&verb_exec, argc, argv, true, on_option, &choice, &a);
    if (rc == 0 && a.json) {
        cli_error("a session has no --json");
        rc = CLI_USAGE;
    }
    if (rc == 0 && a.n_rest < 2) {
        cli_error("which command, in which job? belay exec [-t] JOB -- COMMAND [ARG...]");
        rc = CLI_USAGE;
    }
    if (rc == 0 && choice.tty && !isatty(STDIN_FILENO)) {
        cli_error("-t: standard input is no terminal");
        rc = CLI_USAGE;
    }
    if (rc == 0 && !cli_job_id(a.rest[0], &job))
        rc = CLI_USAGE;
    if (rc == 0) {
        bool dashes = str_eq(a.rest[1], "--");
        if (a.n_rest == 2 && dashes) {
            cli_error("which command? belay exec [-t] JOB -- COMMAND [ARG...]");
            rc = CLI_USAGE;
        } else if (exec_in(job, &choice, a.rest + 1 + dashes, a.n_rest - 1 - dashes, &code, &e) != 0) {
            cli_error("%s", e.text);
            rc = CLI_FAILED;
        } else {
            rc = code;
        }
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"tty", 't', POPT_ARG_NONE, NULL, VAL_TTY, "with a terminal of its own there, for shells and editors", NULL},
    {"rank", 0, POPT_ARG_STRING, NULL, VAL_RANK, "of a job on several nodes: on this one, from 0 (default 0)", "N"},
    POPT_TABLEEND,
};

const struct verb verb_exec = {
    "exec", "[OPTION...] JOB -- COMMAND [ARG...]", "run a command inside a running job", run, options, false};
