/* SPDX-License-Identifier: Apache-2.0
 *
 * See session.h. Two processes talk to belayd, because struct client makes one call at a time: this
 * one receives, its child sends. A thread waits for fatal signals, so that the terminal is restored
 * and the command ended.
 */
#include "cli/session.h"

#include "base/frames.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000
#define CALL_MS (WAIT_MS + 30000)
#define PIECE 32768
#define POST_MAX 65536 /* bytes of one call */

/* ---- the terminal ---- */

void session_set_terminal(struct session *s, const struct termios *t)
{
    if (s->tty)
        tcsetattr(STDIN_FILENO, TCSADRAIN, t);
}

void session_restore_terminal(const struct session *s)
{
    if (s->tty)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &s->saved);
}

static void make_raw(struct session *s)
{
    struct termios raw = s->saved;
    cfmakeraw(&raw);
    session_set_terminal(s, &raw);
}

static void add_size(struct buf *out)
{
    struct winsize w = {0};
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) != 0)
        return;
    const unsigned char b[4] = {(unsigned char)(w.ws_row >> 8), (unsigned char)w.ws_row,
        (unsigned char)(w.ws_col >> 8), (unsigned char)w.ws_col};
    frame_add(out, FRAME_SIZE, b, sizeof(b));
}

/* ---- sending: the child ---- */

int session_post(const struct session *s, struct client *c, const struct buf *frames,
    int64_t *offset, struct err *e)
{
    for (size_t at = 0; at < frames->len;) {
        struct client_reply reply = {0};
        json_t *v = NULL;
        char *path = mem_printf(
            "/api/v1/channels/%lld/input?offset=%lld", (long long)s->id, (long long)*offset);
        size_t n = frames->len - at < POST_MAX ? frames->len - at : POST_MAX;
        int rc = client_call_bytes(c, path, frames->data + at, n, CALL_MS, &reply, e);
        free(path);
        if (rc == 0)
            rc = json_parse(buf_str(&reply.body), reply.body.len, 4096, &v, e);
        client_reply_deinit(&reply);
        if (rc != 0)
            return rc;
        int64_t taken = cli_int(v, "size", *offset) - *offset;
        json_decref(v);
        if (taken < 0 || taken > (int64_t)n) /* 0: belayd waited for space, and found none */
            return err_set(
                e, ERR_IO, "belayd accepted %lld of %zu bytes of input", (long long)taken, n);
        at += (size_t)taken;
        *offset += taken;
    }
    return 0;
}

/* False at EOF or after an error. */
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

/* Runs until the session is over, or the parent ends it. */
static void send_all(struct session *s, bool no_input)
{
    struct client *c = NULL;
    struct err e;
    int64_t offset = 0;
    bool open = !no_input;
    int signals = open_signals(s->tty), rc = client_create(&c, &e);
    if (rc == 0 && no_input) {
        struct buf end = {0};
        frame_add(&end, FRAME_EOF, NULL, 0);
        rc = session_post(s, c, &end, &offset, &e);
        buf_deinit(&end);
    }
    while (rc == 0) {
        struct buf frames = {0};
        struct pollfd p[2] = {
            {.fd = signals, .events = POLLIN}, {.fd = open ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(p, 2, -1) > 0) {
            if (p[0].revents)
                read_signal(signals, &frames);
            if (p[1].revents)
                open = read_input(&frames);
            rc = session_post(s, c, &frames, &offset, &e);
        }
        buf_deinit(&frames);
    }
    client_destroy(c);
    _exit(0);
}

static pid_t start_sender(struct session *s, bool no_input)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    send_all(s, no_input);
    return 0;
}

/* ---- receiving ---- */

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

static int handle_frame(const struct frame *f, int *ret_exit, struct err *e)
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
        return err_set(e, ERR_INVALID, "belayd sent an invalid frame (type %d)", (int)f->type);
    }
}

int session_receive(struct session *s, int64_t wait_ms, int *ret_exit, struct err *e)
{
    struct client_reply reply = {0};
    struct frame f;
    size_t used;
    int got, before = *ret_exit;
    const char *path = CLI_PATH("/api/v1/channels/%lld/output?offset=%lld&wait_ms=%lld",
        (long long)s->id, (long long)s->taken, (long long)wait_ms);
    int rc = client_call(s->client, "GET", path, NULL, CALL_MS, &reply, e);
    if (rc == ERR_UNAVAILABLE || rc == ERR_IO || rc == ERR_TIMEOUT)
        err_wrap(e, "the session ended because belayd went away");
    bool ends = reply.channel_end;
    s->taken += (int64_t)reply.body.len;
    buf_add(&s->came, reply.body.data, reply.body.len);
    client_reply_deinit(&reply);
    while (rc == 0 && (got = frame_read(buf_str(&s->came), s->came.len, &f, &used, e)) != 0) {
        rc = got < 0 ? got : handle_frame(&f, ret_exit, e);
        if (rc == 0)
            buf_remove_front(&s->came, used);
    }
    if (rc == 0 && ends && *ret_exit == before)
        rc = err_set(e, ERR_IO, "the session ended without an exit code of the command");
    return rc;
}

/* *ret_exit must be -1 before. */
static int receive(struct session *s, int *ret_exit, struct err *e)
{
    int rc = 0;
    while (rc == 0 && *ret_exit < 0)
        rc = session_receive(s, WAIT_MS, ret_exit, e);
    return rc;
}

/* ---- beginning and ending ---- */

int session_begin(struct session *s, const struct session_request *request, struct err *e)
{
    struct winsize w = {0};
    const char *term = getenv("TERM");
    json_t *command = json_array(), *v = NULL;
    for (int i = 0; i < request->n_words; i++)
        json_array_append_new(command, json_text(request->words[i]));
    if (request->tty)
        ioctl(STDIN_FILENO, TIOCGWINSZ, &w);
    json_t *body = request->signal
                       ? json_pack("{s:i,s:s,s:I}", "signal", request->signal, "to", request->to,
                             "rank", (json_int_t)request->rank)
                       : json_pack("{s:O,s:I,s:b,s:o,s:i,s:i}", "command", command, "rank",
                             (json_int_t)request->rank, "tty", (int)request->tty, "term",
                             json_text(request->tty && term ? term : ""), "rows", (int)w.ws_row,
                             "columns", (int)w.ws_col);
    const char *path = CLI_PATH("/api/v1/jobs/%lld/exec", (long long)request->job);
    int rc = client_json(s->client, "POST", path, body, &v, e);
    json_decref(body);
    json_decref(command);
    s->id = cli_int(v, "id", 0);
    json_decref(v);
    return rc;
}

static void close_session(struct client *c, int64_t id)
{
    struct err e;
    json_t *v = NULL;
    const char *path = CLI_PATH("/api/v1/channels/%lld/close", (long long)id);
    client_json(c, "POST", path, NULL, &v, &e); /* no-op if it has ended */
    json_decref(v);
}

void session_finish(struct session *s)
{
    if (s->id > 0)
        close_session(s->client, s->id);
    s->id = 0;
    buf_deinit(&s->came);
}

/* ---- fatal signals ---- */

struct guard {
    const struct session *s;
    pid_t sender;
    sigset_t signals, before;
    pthread_t thread;
};

/* The next signal not to be forwarded. The child also gets signals from the terminal; other signals
 * are forwarded by us. */
static int next_signal(const struct guard *g)
{
    for (;;) {
        siginfo_t info;
        int signum = sigwaitinfo(&g->signals, &info);
        if (signum != SIGINT && signum != SIGQUIT && signum > 0)
            return signum;
        if (signum > 0 && info.si_code != SI_KERNEL && g->sender > 0)
            kill(g->sender, signum);
    }
}

/* Receives the signals, which are blocked in all threads. SIGUSR2 ends the thread. */
static void *await_fatal_signal(void *ctx)
{
    const struct guard *g = ctx;
    struct client *c = NULL;
    struct err e;
    int signum = next_signal(g);
    if (signum == SIGUSR2)
        return NULL;
    session_restore_terminal(g->s);
    if (g->sender > 0)
        kill(g->sender, SIGKILL);
    if (client_create(&c, &e) == 0)
        close_session(c, g->s->id);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signum);
    signal(signum, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(signum);
    return NULL;
}

static bool guard_start(struct guard *g)
{
    sigemptyset(&g->signals);
    sigaddset(&g->signals, SIGTERM);
    sigaddset(&g->signals, SIGHUP);
    sigaddset(&g->signals, SIGINT);
    sigaddset(&g->signals, SIGQUIT);
    sigaddset(&g->signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &g->signals, &g->before);
    return pthread_create(&g->thread, NULL, await_fatal_signal, g) == 0;
}

static void guard_stop(struct guard *g, bool started)
{
    if (started) {
        pthread_kill(g->thread, SIGUSR2);
        pthread_join(g->thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &g->before, NULL);
}

/* ---- the session ---- */

static int run_terminal(struct session *s, bool no_input, int *ret_exit, struct err *e)
{
    signal(SIGINT, SIG_IGN); /* until the thread waits for them; the child forwards them */
    signal(SIGQUIT, SIG_IGN);
    struct guard g = {.s = s, .sender = start_sender(s, no_input)};
    bool guarded = guard_start(&g);
    make_raw(s);
    int rc = g.sender < 0 ? err_errno(e, errno, "starting a process") : receive(s, ret_exit, e);
    session_restore_terminal(s);
    guard_stop(&g, guarded);
    if (g.sender > 0) {
        kill(g.sender, SIGKILL);
        waitpid(g.sender, NULL, 0);
    }
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    return rc;
}

int session_run(struct client *c, const struct session_request *request, bool *ret_begun,
    int *ret_exit, struct err *e)
{
    struct session s = {.client = c};
    s.tty = request->tty && tcgetattr(STDIN_FILENO, &s.saved) == 0;
    *ret_exit = -1;
    int rc = session_begin(&s, request, e);
    if (ret_begun)
        *ret_begun = rc == 0;
    if (rc == 0)
        rc = run_terminal(&s, request->no_input, ret_exit, e);
    session_finish(&s);
    return rc;
}

int session_feed(struct client *c, const struct session_request *request, const void *p, size_t n,
    bool *ret_begun, int *ret_exit, struct err *e)
{
    struct session s = {.client = c};
    struct buf frames = {0};
    int64_t offset = 0;
    *ret_exit = -1;
    for (size_t at = 0; at < n; at += PIECE)
        frame_add(&frames, FRAME_IN, (const char *)p + at, n - at < PIECE ? n - at : PIECE);
    frame_add(&frames, FRAME_EOF, NULL, 0);
    int rc = session_begin(&s, request, e);
    *ret_begun = rc == 0;
    if (rc == 0)
        rc = session_post(&s, c, &frames, &offset, e);
    if (rc == 0)
        rc = receive(&s, ret_exit, e);
    buf_wipe(&frames);
    session_finish(&s);
    return rc;
}
