/* SPDX-License-Identifier: Apache-2.0
 *
 * belay exec JOB -- COMMAND: a command in a running job's cgroup, as its user, with its environment (cli/session.h). belay attach JOB:
 * the job's log, and what is typed goes to its standard input, by a command in it that writes there.
 */
#include "cli/verbs.h"

#include "base/frames.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/session.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_MS 50000
#define RANK_MAX 255
#define PIECE 32768

enum { VAL_TTY = 1, VAL_RANK };

struct choice {
    bool tty;
    int64_t rank;
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

static int exec_in(int64_t job, const struct choice *choice, const char **words, int n, int *ret_exit, struct err *e)
{
    const struct session_ask ask = {.job = job, .rank = choice->rank, .words = words, .n_words = n, .tty = choice->tty};
    struct client *c = NULL;
    int rc = client_create(&c, e);
    if (rc == 0)
        rc = session_run(c, &ask, NULL, ret_exit, e);
    client_destroy(c);
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
    int ended_by;      /* the signal; 0: by nobody but its user */
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
    s->tty = s->tty && tcgetattr(STDIN_FILENO, &s->saved) == 0;
    if (!s->tty)
        return;
    t = s->saved;
    t.c_iflag &= ~(tcflag_t)IXON; /* ctrl-q is one of the two */
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHOCTL);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    session_set_terminal(s, &t);
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
        *ret_rc = session_post(&a->s, a->s.client, &frames, &a->offset, e);
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
            a->ended_by = info.ssi_signo == SIGINT ? 0 : (int)info.ssi_signo;
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
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
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
    session_restore_terminal(&a->s);
    close(signals);
    return rc;
}

static int attach(int64_t job, const struct attach_choice *choice, int *ret_exit, struct err *e)
{
    static const char *const writer[] = {"sh", "-c", "exec cat >\"$BELAY_STDIN\""};
    const struct session_ask in = {.job = job, .words = writer, .n_words = 3};
    struct attached a = {.s.tty = isatty(STDIN_FILENO)};
    bool has = false;
    int rc = client_create(&a.s.client, e);
    if (rc == 0)
        rc = has_stdin(a.s.client, job, &has, e);
    if (rc == 0 && has && !choice->no_stdin)
        rc = session_begin(&a.s, &in, e);
    if (rc == 0)
        rc = follow_attached(&a, job, choice, a.s.id > 0 || a.s.tty, e);
    session_finish(&a.s);
    if (rc == 0 && !a.lets_go)
        rc = cli_wait_job(a.s.client, job, false, ret_exit, e);
    else if (rc == 0)
        fprintf(stderr, "\nbelay: let go of job %lld, which goes on\n", (long long)job);
    client_destroy(a.s.client);
    if (rc == 0 && a.ended_by)
        *ret_exit = 128 + a.ended_by;
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
