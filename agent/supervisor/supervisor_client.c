/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles are on the heap and point to their client with `data`. It is NULL once the client has
 * detached, so that a late callback does nothing.
 */
#include "agent/supervisor/supervisor_client.h"

#include "agent/supervisor/supervisor.h"
#include "agent/task/record.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES_MAX 12
#define TRIES_FULL_MAX 3 /* on a full disk: another node may have space */
#define RETRY_MS 100     /* times the number of tries */
/* 9 minutes in all: giving up a live supervisor loses its program */
#define LOCKED_TRIES 600
#define LOCKED_TRIES_SOON 40
#define LOCKED_SOON_MS 50
#define LOCKED_LATER_MS 1000
#define ANSWER_WAIT_MS 30000 /* a supervisor may first kill an earlier one's processes */

static void advance(struct supervisor_client *k);

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void close_pipe(uv_pipe_t **pipe)
{
    if (!*pipe)
        return;
    (*pipe)->data = NULL;
    uv_close((uv_handle_t *)*pipe, on_closed);
    *pipe = NULL;
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
    (void)h;
    *b = uv_buf_init(mem_alloc(256), 256);
    (void)suggested;
}

static void start_timer(struct supervisor_client *k, int64_t delay_ms)
{
    timer_start(k->timers, &k->timer, delay_ms);
}

static bool has_ended(const struct supervisor_client *k)
{
    return record_exists(k->dir, "exit.json");
}

/* For a short path to ctl.sock. Not needed when this client started the supervisor. */
static void open_dir(struct supervisor_client *k)
{
    if (k->dirfd < 0)
        k->dirfd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* True if a live supervisor holds the task; it may not listen on ctl.sock yet. */
static bool is_locked(const struct supervisor_client *k)
{
    int fd = openat(k->dirfd, "supervisor.pid", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return locked;
}

static void end(struct supervisor_client *k, const struct err *e)
{
    close_pipe(&k->ctl);
    k->ended(k->ctx, e);
}

/* ---- a living supervisor ---- */

static void set_up(struct supervisor_client *k)
{
    k->is_up = true;
    k->tries = k->waits = 0;
    timer_stop(k->timers, &k->timer);
    k->up(k->ctx);
}

/* The supervisor's task is over, and it can take another. */
static void release_supervisor(struct supervisor_client *k)
{
    uv_pipe_t *pipe = k->ctl;
    k->ctl = NULL;
    k->is_up = false;
    supervisor_pool_return(k->supervisors, pipe);
    advance(k);
}

static void note_message(struct supervisor_client *k)
{
    k->has_no_space = str_starts(k->line, SUPERVISOR_NO_SPACE);
    STR_SHORTEN(k->message, k->line + (k->has_no_space ? strlen(SUPERVISOR_NO_SPACE) : 0));
}

/* False if the pipe no longer belongs to the client. */
static bool on_answer(struct supervisor_client *k)
{
    int count;
    k->line[k->n_line] = '\0';
    k->n_line = 0;
    if (sscanf(k->line, "signalled %d", &count) == 1)
        k->signalled(k->ctx, count);
    else if (str_eq(k->line, "ready"))
        k->ready(k->ctx);
    else if (k->is_up && str_eq(k->line, "unknown"))
        k->is_old = true;
    else if (k->is_own && !k->is_up && str_eq(k->line, "ok"))
        set_up(k);
    else if (!k->is_up)
        note_message(k);
    else if (k->is_own && str_eq(k->line, "free")) {
        release_supervisor(k);
        return false;
    }
    return true;
}

static void on_disconnected(struct supervisor_client *k)
{
    bool was_up = k->is_up;
    k->is_up = false;
    close_pipe(&k->ctl);
    if (!was_up && !has_ended(k))
        log_warn("a supervisor could not take its task", log_s("dir", k->dir),
            log_s("error", *k->message ? k->message : "it died"));
    start_timer(k, was_up || has_ended(k) ? 0 : (int64_t)RETRY_MS * k->tries);
}

static void on_ctl_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    struct supervisor_client *k = stream->data;
    bool continues = true;
    for (ssize_t i = 0; k && continues && i < n; i++) {
        if (b->base[i] == '\n')
            continues = on_answer(k);
        else if (k->n_line < sizeof(k->line) - 1)
            k->line[k->n_line++] = b->base[i];
        k = continues ? stream->data : NULL; /* the callback may have detached the client */
    }
    free(b->base);
    if (k && n < 0)
        on_disconnected(k);
}

static void start_supervisor(struct supervisor_client *k);

static void on_connected(uv_connect_t *request, int status)
{
    struct supervisor_client *k = request->handle->data;
    free(request);
    if (!k)
        return;
    if (status < 0) {
        close_pipe(&k->ctl);
        if (has_ended(k)) /* it has ended meanwhile */
            end(k, NULL);
        else if (is_locked(k) && k->waits++ < LOCKED_TRIES)
            start_timer(k, k->waits < LOCKED_TRIES_SOON ? LOCKED_SOON_MS : LOCKED_LATER_MS);
        else
            start_supervisor(k);
        return;
    }
    k->n_line = 0;
    uv_read_start((uv_stream_t *)k->ctl, on_alloc, on_ctl_read);
    set_up(k);
}

static void connect_ctl(struct supervisor_client *k)
{
    char path[64]; /* the directory's own path may be too long for a socket's address */
    open_dir(k);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/ctl.sock", k->dirfd);
    k->is_own = false;
    k->ctl = mem_alloc(sizeof(*k->ctl));
    uv_pipe_init(k->loop, k->ctl, 0);
    k->ctl->data = k;
    uv_pipe_connect(mem_alloc(sizeof(uv_connect_t)), k->ctl, path, on_connected);
}

/* ---- starting one ---- */

static int request_supervisor(struct supervisor_client *k, struct err *e)
{
    int rc = supervisor_pool_request(k->supervisors, k->dir, k->node, &k->ctl, e);
    if (rc)
        return rc;
    k->is_own = true;
    k->has_no_space = false;
    k->n_line = 0;
    k->message[0] = '\0';
    k->ctl->data = k;
    uv_read_start((uv_stream_t *)k->ctl, on_alloc, on_ctl_read);
    return 0;
}

static void start_supervisor(struct supervisor_client *k)
{
    struct err e;
    if (k->tries++ >= (k->has_no_space ? TRIES_FULL_MAX : TRIES_MAX)) {
        err_set(&e, k->has_no_space ? ERR_NO_SPACE : ERR_IO, "no supervisor could be started: %s",
            *k->message ? k->message : "it died");
        end(k, &e);
        return;
    }
    int rc = request_supervisor(k, &e);
    if (rc)
        STR_SHORTEN(k->message, e.text);
    start_timer(k, rc ? (int64_t)RETRY_MS * k->tries : ANSWER_WAIT_MS);
}

/* ---- */

static void advance(struct supervisor_client *k)
{
    close_pipe(&k->ctl); /* of a supervisor that has not answered in time */
    if (has_ended(k)) {
        end(k, NULL);
    } else if (k->is_new) {
        k->is_new = false;
        start_supervisor(k);
    } else {
        connect_ctl(k);
    }
}

static void on_timer(struct timer *timer, void *ctx)
{
    (void)timer;
    advance(ctx);
}

void supervisor_client_start(struct supervisor_client *k)
{
    timer_init(&k->timer, on_timer, k);
    k->started = true;
    k->dirfd = -1;
    start_timer(k, 0); /* without the directory, connecting and starting fail and report it */
}

static void command(struct supervisor_client *k, const char *text)
{
    uv_buf_t b = uv_buf_init((char *)(uintptr_t)text, (unsigned)strlen(text));
    if (k->is_up && uv_try_write((uv_stream_t *)k->ctl, &b, 1) != (int)b.len)
        log_warn(
            "a command did not reach the supervisor", log_s("dir", k->dir), log_s("command", text));
}

void supervisor_client_signal(struct supervisor_client *k, int signum)
{
    char text[32];
    snprintf(text, sizeof(text), "signal %d\n", signum);
    command(k, text);
}

void supervisor_client_terminate(struct supervisor_client *k, int64_t delay_ms, int64_t grace_ms)
{
    char text[64];
    snprintf(text, sizeof(text), "terminate %lld %lld\n", (long long)delay_ms, (long long)grace_ms);
    command(k, text);
}

void supervisor_client_limit(struct supervisor_client *k, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof(text), "limit %lld\n", (long long)ms);
    command(k, text);
}

void supervisor_client_shipped(struct supervisor_client *k, int64_t bytes)
{
    char text[32];
    snprintf(text, sizeof(text), "shipped %lld\n", (long long)bytes);
    if (k->is_up && !k->is_old)
        command(k, text);
}

void supervisor_client_kill(struct supervisor_client *k)
{
    command(k, "kill\n");
}

void supervisor_client_await_ready(struct supervisor_client *k)
{
    command(k, "ready\n");
}

int supervisor_client_shell(struct supervisor_client *k, int fd)
{
    static const char text[] = "shell\n";
    int to;
    if (!k->is_up || uv_fileno((uv_handle_t *)k->ctl, &to) != 0)
        return -ENOTCONN;
    return fds_send(to, text, sizeof(text) - 1, &fd, 1);
}

void supervisor_client_stop(struct supervisor_client *k)
{
    if (!k->started)
        return;
    timer_stop(k->timers, &k->timer);
    close_pipe(&k->ctl);
    if (k->dirfd >= 0)
        close(k->dirfd);
    k->dirfd = -1;
    k->started = false;
}
