/* SPDX-License-Identifier: Apache-2.0
 *
 *     claim --> command started --> streams --> end reported  --> all output sent   --> freed
 *       |             |               |                                                       ^
 *       +-------------+---------------+-- belayd does not know it, or no longer wants it -----+
 *
 * A channel is freed when none of its calls is under way.
 */
#include "agent/channels.h"

#include "agent/supervisor/mask.h"
#include "agent/supervisor/shells.h"
#include "base/fds.h"
#include "base/frames.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE_MAX 65536         /* bytes per call */
#define PENDING_MAX (256 << 10) /* unsent output, beyond which no more is read */
/* input not yet read by the command, beyond which no more is requested */
#define INPUT_MAX (256 << 10)
#define WAIT_MS 20000
#define CALL_MS (WAIT_MS + 15000)
#define RETRY_MS 500
#define FAILURES_MAX 20
#define CTRL_D 4
/* how long the beginning of a secret is held back on a terminal */
#define HOLD_MS 300

enum { OUT, ERR, AGENT, IN, N_FDS };

struct channel;

struct watcher {
    uv_poll_t poll;
    struct channel *channel; /* NULL while closing */
    int which;
};

struct channel {
    struct link in_all;
    struct channels *of;
    int64_t id, job, attempt;
    bool tty, is_signal, is_over; /* is_over: the session is no longer wanted */
    int fds[N_FDS];               /* -1 = closed. With a terminal OUT and IN refer to the same */
    struct watcher *watchers[N_FDS];
    struct http_call *claiming, *posting, *asking;
    struct buf out, in; /* frames not yet sent to belayd; bytes not yet read by the command */
    struct buf frames;  /* received, up to a complete frame */
    int64_t out_offset, in_offset;
    bool in_ends, ends, end_posted;
    int failures;
    struct timer retry;
    struct mask *mask;             /* secrets of the job; NULL = none */
    struct mask_stream *masked[2]; /* of OUT and ERR; NULL = nothing is masked */
    struct timer hold;             /* of a terminal */
};

static void post_output(struct channel *ch);
static void request_input(struct channel *ch);

/* ---- descriptors ---- */

static void on_closed(uv_handle_t *h)
{
    free(LIST_ENTRY(h, struct watcher, poll));
}

static void unwatch(struct channel *ch, int which)
{
    struct watcher *w = ch->watchers[which];
    if (!w)
        return;
    w->channel = NULL;
    ch->watchers[which] = NULL;
    uv_close((uv_handle_t *)&w->poll, on_closed);
}

static void close_fd(struct channel *ch, int which)
{
    unwatch(ch, which);
    if (ch->fds[which] >= 0)
        close(ch->fds[which]);
    ch->fds[which] = -1;
}

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct channel *ch, int which, int events)
{
    struct watcher *w = ch->watchers[which];
    if (!w && ch->fds[which] >= 0) {
        w = mem_alloc(sizeof(*w));
        *w = (struct watcher){.channel = ch, .which = which};
        ch->watchers[which] = w;
        uv_poll_init(ch->of->loop, &w->poll, ch->fds[which]);
    }
    if (w)
        uv_poll_start(&w->poll, events, on_ready);
}

/* ---- the end ---- */

static void free_if_done(struct channel *ch)
{
    if (!ch->is_over || ch->claiming || ch->posting || ch->asking)
        return;
    timer_stop(ch->of->timers, &ch->retry);
    timer_stop(ch->of->timers, &ch->hold);
    for (int i = 0; i < N_FDS; i++)
        close_fd(ch, i);
    mask_stream_destroy(ch->masked[OUT]);
    mask_stream_destroy(ch->masked[ERR]);
    mask_destroy(ch->mask);
    link_remove(&ch->in_all);
    buf_deinit(&ch->out);
    buf_deinit(&ch->in);
    buf_deinit(&ch->frames);
    free(ch);
}

/* Closing AGENT makes the minder hang up the command (shells.c). */
static void give_up(struct channel *ch)
{
    struct http_client *http = ch->of->peer->http;
    if (ch->is_over)
        return;
    ch->is_over = true;
    for (int i = 0; i < N_FDS; i++)
        close_fd(ch, i);
    if (ch->claiming)
        http_cancel(http, ch->claiming);
    if (ch->posting)
        http_cancel(http, ch->posting);
    if (ch->asking)
        http_cancel(http, ch->asking);
}

static void add_frames(struct channel *ch, int which, const char *p, size_t n)
{
    for (size_t piece; n > 0; p += piece, n -= piece) {
        piece = n < FRAME_BYTES_MAX ? n : FRAME_BYTES_MAX;
        frame_add(&ch->out, which == ERR ? FRAME_ERR : FRAME_OUT, p, piece);
    }
}

/* is_last: no more of this stream follows. */
static void add_output(struct channel *ch, int which, const char *text, size_t n, bool is_last)
{
    if (!ch->masked[which]) {
        add_frames(ch, which, text, n);
        return;
    }
    size_t room = mask_room(ch->mask, n);
    char *p = mem_alloc(room);
    memcpy(p, text, n);
    add_frames(ch, which, p, mask_turn(ch->masked[which], p, n, is_last));
    explicit_bzero(p, room);
    free(p);
    if (is_last) {
        mask_stream_destroy(ch->masked[which]);
        ch->masked[which] = NULL;
    }
}

static void on_hold(struct timer *timer, void *ctx)
{
    struct channel *ch = ctx;
    (void)timer;
    if (!ch->masked[OUT] || ch->ends)
        return;
    char *p = mem_alloc(mask_room(ch->mask, 0));
    add_frames(ch, OUT, p, mask_release(ch->masked[OUT], p));
    free(p);
    post_output(ch);
    free_if_done(ch);
}

/* Queues the last frame. */
static void end(struct channel *ch, enum frame_type type, const void *p, size_t n)
{
    if (ch->ends)
        return;
    add_output(ch, OUT, "", 0, true);
    add_output(ch, ERR, "", 0, true);
    frame_add(&ch->out, type, p, n);
    ch->ends = true;
    close_fd(ch, OUT);
    close_fd(ch, ERR);
    close_fd(ch, IN);
    close_fd(ch, AGENT);
    if (ch->asking)
        http_cancel(ch->of->peer->http, ch->asking);
    post_output(ch);
}

static void fail(struct channel *ch, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct channel *ch, const char *fmt, ...)
{
    char text[256];
    VFORMAT(text, fmt);
    end(ch, FRAME_FAIL, text, strlen(text));
}

/* ---- output ---- */

/* False if nothing could be read. */
static bool read_some(struct channel *ch, int which)
{
    char text[16384];
    ssize_t n = ch->fds[which] < 0 ? 0 : read(ch->fds[which], text, sizeof(text));
    if (n > 0) {
        add_output(ch, which, text, (size_t)n, false);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        add_output(ch, which, "", 0, true);
        close_fd(ch, which);
    }
    return n > 0;
}

/* Takes the job's secrets, which come before all output. Returns whether they were next. */
static bool take_secrets(struct channel *ch)
{
    struct shell_report r;
    int file;
    if (ch->fds[AGENT] < 0 ||
        recv(ch->fds[AGENT], &r, sizeof(r), MSG_DONTWAIT | MSG_PEEK) != (ssize_t)sizeof(r) ||
        r.step != SHELL_SECRETS || ch->mask)
        return false;
    if (fds_receive(ch->fds[AGENT], &r, sizeof(r), MSG_DONTWAIT, &file, 1, NULL) < 0)
        file = -1;
    ch->mask = file >= 0 ? mask_load(file) : NULL;
    if (file >= 0)
        close(file);
    if (ch->mask) {
        ch->masked[OUT] = mask_stream_create(ch->mask);
        ch->masked[ERR] = mask_stream_create(ch->mask);
    } else {
        fail(ch, "the job's secrets cannot be hidden in the output of the command");
    }
    return true;
}

static void on_output(struct channel *ch, int which)
{
    take_secrets(ch);
    if (ch->ends)
        return;
    read_some(ch, which);
    if (ch->tty && ch->mask)
        timer_start(ch->of->timers, &ch->hold, HOLD_MS);
    if (ch->out.len >= PENDING_MAX) {
        unwatch(ch, OUT);
        unwatch(ch, ERR);
    }
    post_output(ch);
}

/* Reads what the command wrote before it ended, without waiting for others that have the pipe
 * open. */
static void read_rest(struct channel *ch)
{
    while (read_some(ch, OUT) || read_some(ch, ERR))
        ;
}

static void send_end(struct channel *ch, const struct shell_report *r)
{
    const char *why = strerror(r->value);
    if (r->step == SHELL_ENDED) {
        char code =
            (char)(WIFSIGNALED(r->value) ? 128 + WTERMSIG(r->value) : WEXITSTATUS(r->value));
        end(ch, FRAME_EXIT, &code, 1);
    } else if (r->step == SHELL_EXEC) {
        fail(ch, "%s: %s",
            ch->is_signal ? "the signal cannot be sent" : "the command cannot be executed", why);
    } else if (r->step == SHELL_CWD) {
        fail(ch, "the job's working directory cannot be entered: %s", why);
    } else if (r->step == SHELL_IMAGE) {
        fail(ch, "the job's container has not been started yet");
    } else if (r->step == SHELL_REFUSED) {
        fail(ch,
            r->value ? "this task already has the maximum of %d commands"
                     : "the task's supervisor refused it",
            SHELLS_MAX);
    } else {
        fail(ch, "the command cannot be started: %s", why);
    }
}

static void on_report(struct channel *ch)
{
    struct shell_report r;
    if (take_secrets(ch))
        return;
    ssize_t n = recv(ch->fds[AGENT], &r, sizeof(r), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    read_rest(ch);
    if (n == (ssize_t)sizeof(r))
        send_end(ch, &r);
    else
        fail(ch, "the job has ended, and this session with it");
}

static void retry_later(struct channel *ch)
{
    if (++ch->failures > FAILURES_MAX)
        give_up(ch);
    else
        timer_start(ch->of->timers, &ch->retry, RETRY_MS * ch->failures);
}

/* True if the call failed; the failure is then handled. */
static bool has_failed(struct channel *ch, const struct err *failed, const struct http_reply *reply)
{
    struct err e;
    int rc = peer_check(failed, reply, &e);
    if (rc == ERR_CANCELLED || ch->is_over)
        return true;
    if (rc == ERR_NOT_FOUND || rc == ERR_CONFLICT || rc == ERR_INVALID || rc == ERR_DENIED)
        give_up(ch);
    else if (rc != 0)
        retry_later(ch);
    else
        ch->failures = 0;
    return rc != 0;
}

static void on_posted(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct channel *ch = ctx;
    struct err e;
    json_t *v = NULL;
    ch->posting = NULL;
    if (!has_failed(ch, failed, reply)) {
        int64_t size = -1;
        if (json_parse(buf_str(&reply->body), reply->body.len, 4096, &v, &e) == 0)
            size = json_integer_value(json_object_get(v, "size"));
        json_decref(v);
        int64_t taken = size - ch->out_offset;
        if (taken < 0 || taken > (int64_t)ch->out.len) {
            give_up(ch);
        } else {
            buf_remove_front(&ch->out, (size_t)taken);
            ch->out_offset = size;
            if (ch->end_posted && ch->out.len == 0)
                ch->is_over = true;
            else
                post_output(ch);
        }
    }
    free_if_done(ch);
}

static void post_output(struct channel *ch)
{
    char path[128];
    size_t n = ch->out.len < PIECE_MAX ? ch->out.len : PIECE_MAX;
    bool is_last = ch->ends && n == ch->out.len;
    if (!ch->ends && ch->out.len < PENDING_MAX) {
        watch(ch, OUT, UV_READABLE);
        watch(ch, ERR, UV_READABLE);
    }
    if (ch->is_over || ch->posting || timer_is_running(&ch->retry) || (n == 0 && !is_last))
        return;
    ch->end_posted = is_last;
    snprintf(path, sizeof(path), "/agent/v1/channels/%lld/output?offset=%lld&end=%d",
        (long long)ch->id, (long long)ch->out_offset, is_last);
    ch->posting = peer_post(ch->of->peer, path, ch->out.data, n, CALL_MS, on_posted, ch);
}

/* ---- input ---- */

static void flush_input(struct channel *ch)
{
    while (ch->in.len > 0 && ch->fds[IN] >= 0) {
        ssize_t n = write(ch->fds[IN], ch->in.data, ch->in.len);
        if (n < 0 && errno == EAGAIN) {
            watch(ch, IN, UV_WRITABLE);
            return;
        }
        if (n < 0 && errno != EINTR) {
            close_fd(ch, IN); /* no process reads it */
            buf_clear(&ch->in);
        } else if (n > 0) {
            buf_remove_front(&ch->in, (size_t)n);
        }
    }
    unwatch(ch, IN);
    if (ch->in_ends && ch->in.len == 0 && !ch->tty)
        close_fd(ch, IN);
    request_input(ch);
}

static void take_frame(struct channel *ch, const struct frame *f)
{
    const unsigned char *b = (const unsigned char *)f->p;
    if (f->type == FRAME_IN && ch->fds[IN] >= 0) {
        buf_add(&ch->in, f->p, f->n);
    } else if (f->type == FRAME_EOF) {
        ch->in_ends = true;
        if (ch->tty)
            buf_addc(&ch->in, CTRL_D);
    } else if (f->type == FRAME_SIZE && ch->tty && ch->fds[IN] >= 0) {
        const struct winsize w = {.ws_row = (unsigned short)(b[0] << 8 | b[1]),
            .ws_col = (unsigned short)(b[2] << 8 | b[3])};
        ioctl(ch->fds[IN], TIOCSWINSZ, &w);
    } else if (f->type == FRAME_SIGNAL && ch->fds[AGENT] >= 0) {
        if (send(ch->fds[AGENT], f->p, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            log_debug("a signal did not reach a session's command");
    }
}

/* Takes all complete frames. False if one is malformed. */
static bool take_frames(struct channel *ch)
{
    struct frame f;
    struct err e;
    size_t used;
    int rc;
    while ((rc = frame_read(buf_str(&ch->frames), ch->frames.len, &f, &used, &e)) == 1) {
        take_frame(ch, &f);
        buf_remove_front(&ch->frames, used);
    }
    return rc == 0;
}

static void on_input(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct channel *ch = ctx;
    ch->asking = NULL;
    if (!has_failed(ch, failed, reply)) {
        buf_add(&ch->frames, reply->body.data, reply->body.len);
        ch->in_offset += (int64_t)reply->body.len;
        if (!take_frames(ch))
            give_up(ch);
        else
            flush_input(ch);
    }
    free_if_done(ch);
}

/* This call also shows belayd that the node is alive, and its answer says when the session is no
 * longer wanted. */
static void request_input(struct channel *ch)
{
    char path[128];
    if (ch->is_over || ch->ends || ch->asking || ch->in.len >= INPUT_MAX ||
        timer_is_running(&ch->retry))
        return;
    snprintf(path, sizeof(path), "/agent/v1/channels/%lld/input?offset=%lld&wait_ms=%d",
        (long long)ch->id, (long long)ch->in_offset, WAIT_MS);
    ch->asking = peer_post(ch->of->peer, path, "", 0, CALL_MS, on_input, ch);
}

static void on_retry(struct timer *timer, void *ctx)
{
    struct channel *ch = ctx;
    (void)timer;
    post_output(ch);
    request_input(ch);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watcher *w = LIST_ENTRY(poll, struct watcher, poll);
    struct channel *ch = w->channel;
    (void)status, (void)events;
    if (!ch)
        return;
    if (w->which == IN)
        flush_input(ch);
    else if (w->which == AGENT)
        on_report(ch);
    else
        on_output(ch, w->which);
    free_if_done(ch);
}

/* ---- the start ---- */

static int make_pipes(struct channel *ch, int theirs[SHELL_FDS])
{
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return -1;
    ch->fds[IN] = in[1];
    theirs[0] = in[0];
    if (pipe2(out, O_CLOEXEC) < 0)
        return -1;
    ch->fds[OUT] = out[0];
    theirs[1] = out[1];
    if (pipe2(err, O_CLOEXEC) < 0)
        return -1;
    ch->fds[ERR] = err[0];
    theirs[2] = err[1];
    return 0;
}

static int make_terminal(struct channel *ch, const struct winsize *size, int theirs[SHELL_FDS])
{
    char name[64];
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ch->fds[OUT] = master;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof(name)) != 0)
        return -1;
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return -1;
    ioctl(master, TIOCSWINSZ, size);
    ch->fds[IN] = fcntl(master, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        theirs[i] = i == 0 ? slave : fcntl(slave, F_DUPFD_CLOEXEC, 3);
    return 0;
}

/* Returns the agent's end of the connection, or -1 with errno set. */
static int connect_shell(const struct channel *ch)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    int rc = ch->of->shell(ch->of->ctx, ch->job, ch->attempt, ends[1]);
    close(ends[1]);
    if (rc == 0)
        return ends[0];
    close(ends[0]);
    errno = -rc;
    return -1;
}

static int open_files(struct channel *ch, const struct winsize *size, int theirs[SHELL_FDS])
{
    int minder[2];
    if ((ch->tty ? make_terminal(ch, size, theirs) : make_pipes(ch, theirs)) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, minder) < 0)
        return -1;
    ch->fds[AGENT] = minder[0];
    theirs[3] = minder[1];
    for (int i = 0; i < N_FDS; i++)
        if (ch->fds[i] >= 0)
            fcntl(ch->fds[i], F_SETFL, fcntl(ch->fds[i], F_GETFL) | O_NONBLOCK);
    return 0;
}

static void start(struct channel *ch, const char *order, const struct winsize *size)
{
    int theirs[SHELL_FDS] = {-1, -1, -1, -1};
    int fd = connect_shell(ch);
    if (fd < 0)
        fail(ch, "the job's processes have not been started yet, or have ended: %s",
            strerror(errno));
    else if (open_files(ch, size, theirs) < 0 ||
             fds_send(fd, order, strlen(order), theirs, SHELL_FDS) < 0)
        fail(ch, "the command cannot be started: %s", strerror(errno));
    for (int i = 0; i < SHELL_FDS; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    if (fd >= 0)
        close(fd);
    if (ch->ends)
        return;
    watch(ch, OUT, UV_READABLE);
    watch(ch, ERR, UV_READABLE);
    watch(ch, AGENT, UV_READABLE);
    request_input(ch);
}

/* text: {"command": [...], "tty": false, "term": "", "rows": 24, "columns": 80}, or
 * {"signal": 10, "to": "programs"}. */
static void take_order(struct channel *ch, const char *text, size_t n)
{
    struct err e;
    struct json_reader r;
    const char *words[SHELL_WORDS_MAX + 1] = {0};
    char term[64];
    size_t i;
    const json_t *list, *word;
    json_t *v = NULL;
    if (json_parse(text, n, SHELL_MESSAGE_MAX, &v, &e) != 0) {
        fail(ch, "malformed request from belayd: %.150s", e.text);
        return;
    }
    json_reader_init(&r, v, "order", &e);
    int signum = (int)json_opt_i64(&r, "signal", 1, 64, 0);
    enum shell_to to = (enum shell_to)json_opt_enum(&r, "to", shell_to_names, SHELL_TO_PROGRAMS);
    list = signum ? NULL : json_req_array(&r, "command", SHELL_WORDS_MAX);
    ch->tty = json_opt_bool(&r, "tty", false);
    json_opt_strcpy(&r, "term", term, sizeof(term), "");
    struct winsize size = {.ws_row = (unsigned short)json_opt_i64(&r, "rows", 0, 65535, 0),
        .ws_col = (unsigned short)json_opt_i64(&r, "columns", 0, 65535, 0)};
    json_array_foreach(list, i, word) words[i] =
        json_string_value(word) ? json_string_value(word) : "";
    if (json_reader_finish_lenient(&r) != 0) {
        fail(ch, "malformed request from belayd: %.150s", e.text);
    } else {
        char *order = signum ? shell_format_signal(signum, to) : shell_format(words, ch->tty, term);
        ch->is_signal = signum != 0;
        start(ch, order, &size);
        free(order);
    }
    json_decref(v);
}

static void on_claimed(void *ctx, const struct err *failed, const struct http_reply *reply)
{
    struct channel *ch = ctx;
    struct err e;
    ch->claiming = NULL;
    if (peer_check(failed, reply, &e) != 0)
        give_up(ch); /* unknown whether it was claimed, so it is not run */
    else if (!ch->is_over)
        take_order(ch, buf_str(&reply->body), reply->body.len);
    free_if_done(ch);
}

static void claim(struct channels *c, const struct wire_channel *w)
{
    struct channel *ch = mem_alloc(sizeof(*ch));
    char path[128];
    *ch = (struct channel){
        .of = c, .id = w->id, .job = w->job, .attempt = w->attempt, .fds = {-1, -1, -1, -1}};
    timer_init(&ch->retry, on_retry, ch);
    timer_init(&ch->hold, on_hold, ch);
    list_push_back(&c->all, &ch->in_all);
    snprintf(path, sizeof(path), "/agent/v1/channels/%lld/claim", (long long)w->id);
    ch->claiming = peer_post(c->peer, path, "", 0, CALL_MS, on_claimed, ch);
}

/* ---- the list ---- */

void channels_desired(struct channels *c, const struct wire_desired *d)
{
    LIST_FOREACH (&c->all, n) {
        struct channel *ch = LIST_ENTRY(n, struct channel, in_all);
        bool wanted = false;
        for (size_t i = 0; i < d->n_channels; i++)
            wanted = wanted || d->channels[i].id == ch->id;
        if (!wanted && !ch->ends) {
            give_up(ch);
            free_if_done(ch);
        }
    }
    for (size_t i = 0; i < d->n_channels; i++) {
        bool known = false;
        LIST_FOREACH (&c->all, n)
            known = known || LIST_ENTRY(n, struct channel, in_all)->id == d->channels[i].id;
        if (!known)
            claim(c, &d->channels[i]);
    }
}

void channels_stop(struct channels *c)
{
    LIST_FOREACH (&c->all, n) {
        struct channel *ch = LIST_ENTRY(n, struct channel, in_all);
        give_up(ch);
        ch->is_over = true;
        free_if_done(ch);
    }
}

bool channels_is_idle(const struct channels *c)
{
    return list_is_empty(&c->all);
}
