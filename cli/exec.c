/* SPDX-License-Identifier: Apache-2.0
 *
 * belay exec JOB -- COMMAND runs a command in a running job's cgroup, as its user, with its
 * environment (cli/session.h). belay attach JOB shows the job's log and sends typed text to the
 * job's standard input, through a command in the job that writes it there.
 */
#include "cli/verbs.h"

#include "base/frames.h"
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
#include <sys/stat.h>
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

static int exec_in(int64_t job, const struct choice *choice, const char **words, int n,
    int *ret_exit, struct err *e)
{
    const struct session_request request = {
        .job = job, .rank = choice->rank, .words = words, .n_words = n, .tty = choice->tty};
    struct client *c = NULL;
    int rc = client_create(&c, e);
    if (rc == 0)
        rc = session_run(c, &request, NULL, ret_exit, e);
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
        cli_error("the output of a session is the command's: leave --json out");
        rc = CLI_USAGE;
    }
    if (rc == 0 && a.n_rest < 2) {
        cli_error("expected a job and a command: belay exec [-t] JOB -- COMMAND [ARG...]");
        rc = CLI_USAGE;
    }
    if (rc == 0 && choice.tty && !isatty(STDIN_FILENO)) {
        cli_error("-t: standard input is not a terminal");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = cli_job_id(a.rest[0], &job);
    if (rc == 0) {
        bool dashes = str_eq(a.rest[1], "--");
        if (a.n_rest == 2 && dashes) {
            cli_error("expected a command: belay exec [-t] JOB -- COMMAND [ARG...]");
            rc = CLI_USAGE;
        } else if (exec_in(job, &choice, a.rest + 1 + dashes, a.n_rest - 1 - dashes, &code, &e) !=
                   0) {
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

#define CTRL_D 0x04
#define CTRL_P 0x10
#define CTRL_Q 0x11
#define ALIVE_MS 20000 /* interval of requests that keep the session alive */
#define RECEIVE_MS 500 /* wait for the writer's end, before signals are looked at again */
/* wait for the job's end to be reported, after a failure that it may have caused */
#define END_MS 10000
#define TAIL_DEFAULT 10
#define TAIL_MAX 1000000

enum { VAL_TAIL = 1, VAL_NO_STDIN, VAL_KEEP_OPEN };

struct attach_choice {
    bool no_stdin, keep_open;
    int64_t tail;
};

struct attached {
    struct session s;    /* id 0 = output only */
    int64_t job, offset; /* offset in the typed text */
    const char *name;    /* the job as the user named it */
    bool keep_open;
    bool had_ctrl_p;    /* ctrl-p was typed, and ctrl-q would follow */
    bool at_line_start; /* nothing was typed yet in this line */
    bool ends;          /* EOF was typed or reached: the job's input is to be closed */
    bool detaches;
    int ended_by;    /* the signal; 0 = ended by the user */
    bool log_failed; /* the process that prints the log failed, and has printed why */
};

/* The task's supervisor keeps the job's input open until something is written to the pipe
 * $BELAY_STDIN.end, and then removes that pipe. `writer` copies its input to the job's, `asker`
 * succeeds while the job's input is open, `ender` closes it. */
static const char *const writer[] = {
    "sh", "-c", "[ -p \"$BELAY_STDIN.end\" ] && exec cat >\"$BELAY_STDIN\"; exit 3"};
static const char *const asker[] = {"sh", "-c", "[ -p \"$BELAY_STDIN.end\" ]"};
static const char *const ender[] = {
    "sh", "-c", "[ ! -p \"$BELAY_STDIN.end\" ] || echo >\"$BELAY_STDIN.end\""};

static int on_attach_option(void *ctx, int val, const char *arg)
{
    struct attach_choice *c = ctx;
    struct err e;
    if (val == VAL_NO_STDIN) {
        c->no_stdin = true;
    } else if (val == VAL_KEEP_OPEN) {
        c->keep_open = true;
    } else if (str_to_i64(arg, 1, TAIL_MAX, "--tail", &c->tail, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Runs `asker` or `ender`. */
static int run_in(const struct attached *a, const char *const *words, int *ret_exit, struct err *e)
{
    const struct session_request request = {.job = a->job, .words = words, .n_words = 3};
    bool begun;
    return session_feed(a->s.client, &request, NULL, 0, &begun, ret_exit, e);
}

/* Whether the job was submitted with --stdin and has not ended. */
static int has_stdin(struct client *c, int64_t job, bool *ret_has, struct err *e)
{
    json_t *v = NULL;
    int rc = client_json(c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)job), NULL, &v, e);
    if (rc != 0)
        return rc;
    const json_t *launch = json_object_get(json_object_get(v, "spec"), "launch");
    bool ended = str_eq(cli_text(json_object_get(v, "job"), "state"), "ended");
    *ret_has = !ended && str_eq(json_string_value(json_object_get(launch, "input")), "-");
    json_decref(v);
    return 0;
}

/* A device other than a terminal, usually /dev/null, means that belay was started without input. */
static bool has_input(void)
{
    struct stat st;
    return isatty(STDIN_FILENO) || (fstat(STDIN_FILENO, &st) == 0 && !S_ISCHR(st.st_mode));
}

/* Passes keys on as they are typed, not by lines. */
static void make_prompt(struct session *s)
{
    struct termios t;
    s->tty = s->tty && tcgetattr(STDIN_FILENO, &s->saved) == 0;
    if (!s->tty)
        return;
    t = s->saved;
    t.c_iflag &= ~(tcflag_t)IXON; /* ctrl-q is one of the two keys */
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHOCTL);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    session_set_terminal(s, &t);
}

/* Handles a key typed in a terminal. False if it is not for the job: ctrl-p ctrl-q detaches; ctrl-d
 * means EOF where a terminal would take it as such, at the beginning of a line or when typed twice.
 */
static bool is_for_job(struct attached *a, char key, struct buf *typed)
{
    a->detaches = a->had_ctrl_p && key == CTRL_Q;
    if (a->had_ctrl_p && !a->detaches)
        buf_addc(typed, CTRL_P);
    a->had_ctrl_p = key == CTRL_P;
    a->ends = a->ends || (key == CTRL_D && a->at_line_start);
    a->at_line_start = key == CTRL_D || key == '\n' || key == '\r';
    return !a->detaches && !a->had_ctrl_p && key != CTRL_D;
}

static void add_typed(struct attached *a, const char *p, size_t n, struct buf *frames)
{
    struct buf typed = {0};
    for (size_t i = 0; i < n && !a->detaches && !a->ends; i++)
        if (!a->s.tty || is_for_job(a, p[i], &typed))
            buf_addc(&typed, p[i]);
    if (typed.len > 0)
        frame_add(frames, FRAME_IN, typed.data, typed.len);
    buf_deinit(&typed);
}

/* False at EOF or after an error of standard input. */
static bool take_typed(struct attached *a, int *ret_rc, struct err *e)
{
    struct buf frames = {0};
    char text[PIECE];
    bool had_end = a->ends;
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n > 0)
        add_typed(a, text, (size_t)n, &frames);
    a->ends = a->s.id > 0 && !a->keep_open && (a->ends || n == 0);
    if (a->ends && !had_end)
        frame_add(&frames, FRAME_EOF, NULL, 0);
    if (a->s.id > 0 && frames.len > 0)
        *ret_rc = session_post(&a->s, a->s.client, &frames, &a->offset, e);
    buf_deinit(&frames);
    return n > 0;
}

/* Closes the job's input once the writer has ended without an error, so that the job has the whole
 * text. */
static int end_input(struct attached *a, struct err *e)
{
    int code = -1, rc = session_receive(&a->s, RECEIVE_MS, &code, e);
    if (rc == 0 && code < 0)
        return 0;
    session_finish(&a->s);
    a->ends = false;
    if (rc == 0 && code != 0)
        return err_set(
            e, ERR_CONFLICT, "not all of the typed text reached the job's input, which stays open");
    if (rc == 0)
        rc = run_in(a, ender, &code, e);
    return rc == 0 && code != 0 ? err_set(e, ERR_CONFLICT, "the job's input could not be closed")
                                : rc;
}

static void keep_alive(struct attached *a)
{
    struct client_reply reply = {0};
    struct err e;
    const char *path = CLI_PATH("/api/v1/channels/%lld/output?offset=0", (long long)a->s.id);
    if (a->s.id > 0)
        /* a session that has ended is noticed at the next input */
        client_call(a->s.client, "GET", path, NULL, CALL_MS, &reply, &e);
    client_reply_deinit(&reply);
}

/* True if the process that prints the log has ended. */
static bool take_signal(struct attached *a, int signals)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return false;
    a->detaches = info.ssi_signo != SIGCHLD;
    a->ended_by = info.ssi_signo == SIGINT || info.ssi_signo == SIGCHLD ? 0 : (int)info.ssi_signo;
    return info.ssi_signo == SIGCHLD;
}

/* Runs until the process that prints the log has ended, or the user detaches. A failure to send may
 * be caused by the job's end, which is not an error: it waits END_MS for the end of the log first.
 */
static int relay_typed(struct attached *a, int signals, bool reads, struct err *e)
{
    int rc = 0;
    while (!a->detaches) {
        struct pollfd p[2] = {{.fd = signals, .events = POLLIN},
            {.fd = reads && rc == 0 ? STDIN_FILENO : -1, .events = POLLIN}};
        int n = poll(p, 2, rc != 0 ? END_MS : a->ends ? 0 : ALIVE_MS);
        if (n == 0 && rc != 0)
            return rc;
        if (n == 0 && !a->ends)
            keep_alive(a);
        if (n > 0 && p[1].revents)
            reads = take_typed(a, &rc, e);
        if (n > 0 && p[0].revents && take_signal(a, signals))
            return 0;
        if (rc == 0 && a->ends && !a->detaches)
            rc = end_input(a, e);
    }
    return 0;
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

static int follow_attached(
    struct attached *a, int64_t job, const struct attach_choice *choice, bool reads, struct err *e)
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
    int rc =
        log < 0 ? err_errno(e, errno, "starting a process") : relay_typed(a, signals, reads, e);
    if (log > 0 && (rc != 0 || a->detaches))
        kill(log, SIGKILL);
    if (log > 0)
        waitpid(log, &status, 0);
    a->log_failed = log > 0 && rc == 0 && !a->detaches && status != 0;
    session_restore_terminal(&a->s);
    close(signals);
    return rc;
}

/* An earlier attach may have closed the job's input. Then only its output is shown. */
static int begin_typing(struct attached *a, struct err *e)
{
    const struct session_request in = {.job = a->job, .words = writer, .n_words = 3};
    int code = -1, rc = run_in(a, asker, &code, e);
    if (rc == 0 && code != 0)
        cli_warn("the input of job %s is already closed: showing its output", a->name);
    return rc == 0 && code == 0 ? session_begin(&a->s, &in, e) : rc;
}

static int attach(
    int64_t job, const char *name, const struct attach_choice *choice, int *ret_exit, struct err *e)
{
    struct attached a = {.s.tty = isatty(STDIN_FILENO),
        .job = job,
        .name = name,
        .keep_open = choice->keep_open,
        .at_line_start = true};
    bool has = false;
    int rc = client_create(&a.s.client, e);
    if (rc == 0)
        rc = has_stdin(a.s.client, job, &has, e);
    if (rc == 0 && has && !choice->no_stdin && has_input())
        rc = begin_typing(&a, e);
    if (rc == 0)
        rc = follow_attached(&a, job, choice, a.s.id > 0 || a.s.tty, e);
    session_finish(&a.s);
    if (rc == 0 && a.log_failed)
        *ret_exit = CLI_FAILED;
    else if (rc == 0 && !a.detaches)
        rc = cli_wait_job(a.s.client, job, false, ret_exit, e);
    else if (rc == 0)
        fprintf(stderr, "\nbelay: detached from job %s, which keeps running\n", name);
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
        cli_error("the output of a session is the command's: leave --json out");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &job);
    if (rc == 0 && attach(job, a.rest[0], &choice, &code, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_FAILED;
    } else if (rc == 0) {
        rc = code;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption attach_options[] = {
    {"tail", 'n', POPT_ARG_STRING, NULL, VAL_TAIL,
        "start this many lines before the end of its output (default 10)", "N"},
    {"no-stdin", 0, POPT_ARG_NONE, NULL, VAL_NO_STDIN, "show the output only, send no input", NULL},
    {"keep-open", 0, POPT_ARG_NONE, NULL, VAL_KEEP_OPEN,
        "keep the job's stdin open after local EOF", NULL},
    POPT_TABLEEND,
};

const struct verb verb_attach = {"attach", "[OPTION...] JOB",
    "show a running job's output, and send it input", run_attach, attach_options, false,
    .examples = "belay attach 42\n"};

static const struct poptOption options[] = {
    {"tty", 't', POPT_ARG_NONE, NULL, VAL_TTY, "allocate a terminal, for shells and editors", NULL},
    {"rank", 0, POPT_ARG_STRING, NULL, VAL_RANK,
        "rank to run on, for a job on several nodes, from 0 (default 0)", "N"},
    POPT_TABLEEND,
};

const struct verb verb_exec = {"exec", "[OPTION...] JOB -- COMMAND [ARG...]",
    "run a command inside a running job", run, options, false,
    .examples = "belay exec 42 -- nvidia-smi\n"
                "belay exec -t 42 -- bash\n"};
