/* SPDX-License-Identifier: Apache-2.0
 *
 * belay exec JOB -- COMMAND: a command in a running job's cgroup, as its user, with its environment. Two processes talk to belayd: this one
 * has what comes, its child what goes (struct client makes one call at a time). belay attach JOB: the job's log, and what is typed goes
 * to its standard input, by a command in it that writes there.
 */
#include "cli/verbs.h"

#include "base/frames.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
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

/* ---- beginning and ending ---- */

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

/* ---- attaching ---- */

#define CTRL_P 0x10
#define CTRL_Q 0x11
#define ALIVE_MS 20000 /* belayd is told this often that we are there */
#define TAIL_DEFAULT 10
#define TAIL_MAX 1000000

enum { VAL_TAIL = 1, VAL_NO_STDIN };

struct attach_choice {
    bool no_stdin;
    int64_t tail;
};

struct attached {
    struct session s;  /* id 0: output only */
    int64_t offset;    /* of what was typed */
    bool half;         /* the first of the two keys was */
    bool lets_go;
};

static int on_attach_option(void *ctx, int val, const char *arg)
{
    struct attach_choice *c = ctx;
    struct err e;
    if (val == VAL_NO_STDIN) {
        c->no_stdin = true;
    } else if (str_to_i64(arg, 1, TAIL_MAX, "--tail", &c->tail, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Was it submitted with --stdin? */
static int has_stdin(struct client *c, int64_t job, bool *ret_has, struct err *e)
{
    json_t *v = NULL;
    char *path = mem_printf("/api/v1/jobs/%lld", (long long)job);
    int rc = client_json(c, "GET", path, NULL, &v, e);
    free(path);
    if (rc != 0)
        return rc;
    const json_t *launch = json_object_get(json_object_get(v, "spec"), "launch");
    bool ended = str_eq(cli_text(json_object_get(v, "job"), "state"), "ended");
    *ret_has = !ended && str_eq(json_string_value(json_object_get(launch, "input")), "-");
    json_decref(v);
    return 0;
}

/* Keys as they are typed, not by lines. */
static void make_prompt(struct session *s)
{
    struct termios t;
    if (!s->tty || tcgetattr(STDIN_FILENO, &s->saved) != 0)
        return;
    t = s->saved;
    t.c_iflag &= ~(tcflag_t)IXON; /* ctrl-q is one of the two */
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHOCTL);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

/* Without the two keys that let go. */
static void add_typed(struct attached *a, const char *p, size_t n, struct buf *frames)
{
    struct buf typed = {0};
    for (size_t i = 0; i < n && !a->lets_go; i++) {
        a->lets_go = a->half && p[i] == CTRL_Q;
        if (a->half && !a->lets_go)
            buf_addc(&typed, CTRL_P);
        a->half = a->s.tty && p[i] == CTRL_P;
        if (!a->half && !a->lets_go)
            buf_addc(&typed, p[i]);
    }
    if (typed.len > 0)
        frame_add(frames, FRAME_IN, typed.data, typed.len);
    buf_deinit(&typed);
}

/* False: nothing more is read. */
static bool take_typed(struct attached *a, int *ret_rc, struct err *e)
{
    struct buf frames = {0};
    char text[PIECE];
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n > 0)
        add_typed(a, text, (size_t)n, &frames);
    if (a->s.id > 0 && frames.len > 0)
        *ret_rc = post(&a->s, a->s.client, &frames, &a->offset, e);
    buf_deinit(&frames);
    return n > 0;
}

static void tell_alive(struct attached *a)
{
    struct client_reply reply = {0};
    struct err e;
    char *path = mem_printf("/api/v1/channels/%lld/output?offset=0", (long long)a->s.id);
    if (a->s.id > 0)
        client_call(a->s.client, "GET", path, NULL, CALL_MS, &reply, &e); /* one that is gone shows when something is typed */
    client_reply_deinit(&reply);
    free(path);
}

/* Until the log has ended, which its process tells by its own end, or somebody lets go. */
static int type_on(struct attached *a, int signals, bool reads, struct err *e)
{
    int rc = 0;
    while (rc == 0 && !a->lets_go) {
        struct pollfd p[2] = {{.fd = signals, .events = POLLIN}, {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};
        int n = poll(p, 2, ALIVE_MS);
        struct signalfd_siginfo info;
        if (n == 0)
            tell_alive(a);
        if (n > 0 && p[1].revents)
            reads = take_typed(a, &rc, e);
        if (n > 0 && p[0].revents && read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            if (info.ssi_signo == SIGCHLD)
                return rc;
            a->lets_go = true;
        }
    }
    return rc;
}

static void show_log(int64_t job, int64_t tail)
{
    const struct log_part part = {.since = WALL_NONE, .tail = tail};
    struct client *c = NULL;
    struct err e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = cli_print_logs(c, job, &part, true, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    client_destroy(c);
    fflush(stdout);
    _exit(rc == 0 ? 0 : 1);
}

static int follow_attached(struct attached *a, int64_t job, const struct attach_choice *choice, bool reads, struct err *e)
{
    sigset_t set;
    int status;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    pid_t log = fork();
    if (log == 0) {
        signal(SIGINT, SIG_IGN);
        show_log(job, choice->tail);
    }
    make_prompt(&a->s);
    int rc = log < 0 ? err_errno(e, errno, "starting a process") : type_on(a, signals, reads, e);
    if (log > 0 && (rc != 0 || a->lets_go))
        kill(log, SIGKILL);
    if (log > 0)
        waitpid(log, &status, 0);
    make_sane(&a->s);
    close(signals);
    return rc;
}

static int attach(int64_t job, const struct attach_choice *choice, int *ret_exit, struct err *e)
{
    static const char *const writer[] = {"sh", "-c", "exec cat >\"$BELAY_STDIN\""};
    const struct choice in = {0};
    struct attached a = {.s.tty = isatty(STDIN_FILENO)};
    bool has = false;
    int rc = client_create(&a.s.client, e);
    if (rc == 0)
        rc = has_stdin(a.s.client, job, &has, e);
    if (rc == 0 && has && !choice->no_stdin)
        rc = begin(&a.s, job, &in, (const char **)(uintptr_t)writer, 3, e);
    if (rc == 0)
        rc = follow_attached(&a, job, choice, a.s.id > 0 || a.s.tty, e);
    if (a.s.id > 0)
        finish(&a.s);
    if (rc == 0 && !a.lets_go)
        rc = cli_wait_job(a.s.client, job, false, ret_exit, e);
    else if (rc == 0)
        fprintf(stderr, "\nbelay: let go of job %lld, which goes on\n", (long long)job);
    client_destroy(a.s.client);
    return rc;
}

static int run_attach(int argc, const char **argv)
{
    struct attach_choice choice = {.tail = TAIL_DEFAULT};
    struct cli_args a;
    struct err e = {0};
    int64_t job;
    int code = 0, rc = cli_parse(&verb_attach, argc, argv, false, on_attach_option, &choice, &a);
    if (rc == 0 && a.json) {
        cli_error("a session has no --json");
        rc = CLI_USAGE;
    }
    if (rc == 0 && !cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &job))
        rc = CLI_USAGE;
    if (rc == 0 && attach(job, &choice, &code, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_FAILED;
    } else if (rc == 0) {
        rc = code;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption attach_options[] = {
    {"tail", 'n', POPT_ARG_STRING, NULL, VAL_TAIL, "begin so many lines before the end of its output (default 10)", "N"},
    {"no-stdin", 0, POPT_ARG_NONE, NULL, VAL_NO_STDIN, "only look", NULL},
    POPT_TABLEEND,
};

const struct verb verb_attach = {
    "attach", "[OPTION...] JOB", "see a running job's output, and type to it", run_attach, attach_options, false};

static const struct poptOption options[] = {
    {"tty", 't', POPT_ARG_NONE, NULL, VAL_TTY, "with a terminal of its own there, for shells and editors", NULL},
    {"rank", 0, POPT_ARG_STRING, NULL, VAL_RANK, "of a job on several nodes: on this one, from 0 (default 0)", "N"},
    POPT_TABLEEND,
};

const struct verb verb_exec = {
    "exec", "[OPTION...] JOB -- COMMAND [ARG...]", "run a command inside a running job", run, options, false};
