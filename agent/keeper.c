/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles live on the heap and know their keeper through `data`; NULL there means that the keeper has let go,
 * so a callback that comes late finds nothing to do.
 */
#include "agent/keeper.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES_MAX 12
#define RETRY_MS 100            /* x try */
#define HANDSHAKE_WAIT_MS 30000 /* it may have to kill what an earlier one left */

static void look(struct keeper *k);

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void let_go(uv_pipe_t **pipe)
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

static void later(struct keeper *k, int64_t delay_ms)
{
    timer_start(k->timers, &k->timer, delay_ms);
}

static bool has_ended(const struct keeper *k)
{
    return faccessat(k->dirfd, "exit.json", F_OK, 0) == 0;
}

static void end(struct keeper *k, const struct err *e)
{
    let_go(&k->ctl);
    let_go(&k->handshake);
    k->ended(k->ctx, e);
}

/* ---- a living supervisor ---- */

static void on_answer(struct keeper *k)
{
    int count;
    k->line[k->n_line] = '\0';
    if (sscanf(k->line, "signalled %d", &count) == 1)
        k->signalled(k->ctx, count);
    else if (str_eq(k->line, "ready"))
        k->ready(k->ctx);
    k->n_line = 0;
}

static void on_ctl_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    struct keeper *k = stream->data;
    for (ssize_t i = 0; k && i < n; i++) {
        if (b->base[i] == '\n')
            on_answer(k);
        else if (k->n_line < sizeof(k->line) - 1)
            k->line[k->n_line++] = b->base[i];
        k = stream->data; /* the answer may have made the caller let go */
    }
    free(b->base);
    if (!k || n >= 0)
        return;
    k->is_up = false;
    let_go(&k->ctl);
    later(k, 0);
}

static void start_supervisor(struct keeper *k);

static void on_connected(uv_connect_t *request, int status)
{
    struct keeper *k = request->handle->data;
    free(request);
    if (!k)
        return;
    if (status < 0) {
        let_go(&k->ctl);
        if (has_ended(k)) /* meanwhile */
            end(k, NULL);
        else
            start_supervisor(k);
        return;
    }
    k->is_up = true;
    k->tries = 0;
    k->n_line = 0;
    uv_read_start((uv_stream_t *)k->ctl, on_alloc, on_ctl_read);
    k->up(k->ctx);
}

static void connect_ctl(struct keeper *k)
{
    char path[64]; /* the directory's own path may be too long for a socket's address */
    snprintf(path, sizeof(path), "/proc/self/fd/%d/ctl.sock", k->dirfd);
    k->ctl = mem_alloc(sizeof(*k->ctl));
    uv_pipe_init(k->loop, k->ctl, 0);
    k->ctl->data = k;
    uv_pipe_connect(mem_alloc(sizeof(uv_connect_t)), k->ctl, path, on_connected);
}

/* ---- starting one ---- */

static void on_handshake_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    struct keeper *k = stream->data;
    for (ssize_t i = 0; k && i < n && k->n_said < sizeof(k->said) - 1; i++)
        k->said[k->n_said++] = b->base[i];
    free(b->base);
    if (!k || n >= 0)
        return;
    k->said[k->n_said] = '\0';
    let_go(&k->handshake);
    bool fine = str_eq(k->said, "ok\n");
    if (!fine)
        log_warn("a supervisor could not take its task", log_s("dir", k->dir),
            log_s("error", k->n_said ? k->said : "it died"));
    later(k, fine ? 0 : (int64_t)RETRY_MS * k->tries);
}

/* The end that is read of the hand-shake, for the loop. */
static void read_handshake(struct keeper *k, int fd)
{
    k->handshake = mem_alloc(sizeof(*k->handshake));
    uv_pipe_init(k->loop, k->handshake, 0);
    k->handshake->data = k;
    uv_pipe_open(k->handshake, fd);
    k->n_said = 0;
    uv_read_start((uv_stream_t *)k->handshake, on_alloc, on_handshake_read);
}

static int request_supervisor(struct keeper *k, struct err *e)
{
    int ends[2];
    if (k->dirfd < 0)
        return err_set(e, ERR_NOT_FOUND, "%s cannot be opened", k->dir);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, errno, "making a pipe");
    int rc = nursery_fork(k->nursery, k->dir, k->node, ends[1], e);
    close(ends[1]);
    if (rc)
        close(ends[0]);
    else
        read_handshake(k, ends[0]);
    return rc;
}

static void start_supervisor(struct keeper *k)
{
    struct err e;
    if (k->tries++ >= TRIES_MAX) {
        err_set(&e, ERR_IO, "no supervisor could be started: %s", k->n_said ? k->said : "it died");
        end(k, &e);
        return;
    }
    int rc = request_supervisor(k, &e);
    if (rc) {
        STR_COPY(k->said, e.text);
        k->n_said = strlen(k->said);
    }
    later(k, rc ? (int64_t)RETRY_MS * k->tries : HANDSHAKE_WAIT_MS);
}

/* ---- */

static void look(struct keeper *k)
{
    let_go(&k->handshake); /* of a supervisor that hangs */
    if (has_ended(k))
        end(k, NULL);
    else
        connect_ctl(k);
}

static void on_timer(struct timer *timer, void *ctx)
{
    (void)timer;
    look(ctx);
}

void keeper_start(struct keeper *k)
{
    timer_init(&k->timer, on_timer, k);
    k->started = true;
    k->dirfd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    later(k, 0); /* without the directory: connecting and starting fail, and that is told */
}

static void command(struct keeper *k, const char *text)
{
    uv_buf_t b = uv_buf_init((char *)(uintptr_t)text, (unsigned)strlen(text));
    if (k->is_up && uv_try_write((uv_stream_t *)k->ctl, &b, 1) != (int)b.len)
        log_warn("a command did not reach the supervisor", log_s("dir", k->dir), log_s("command", text));
}

void keeper_signal(struct keeper *k, int signum)
{
    char text[32];
    snprintf(text, sizeof(text), "signal %d\n", signum);
    command(k, text);
}

void keeper_terminate(struct keeper *k, int64_t delay_ms, int64_t grace_ms)
{
    char text[64];
    snprintf(text, sizeof(text), "terminate %lld %lld\n", (long long)delay_ms, (long long)grace_ms);
    command(k, text);
}

void keeper_limit(struct keeper *k, int64_t ms)
{
    char text[32];
    snprintf(text, sizeof(text), "limit %lld\n", (long long)ms);
    command(k, text);
}

void keeper_kill(struct keeper *k)
{
    command(k, "kill\n");
}

void keeper_await_ready(struct keeper *k)
{
    command(k, "ready\n");
}

void keeper_stop(struct keeper *k)
{
    if (!k->started)
        return;
    timer_stop(k->timers, &k->timer);
    let_go(&k->ctl);
    let_go(&k->handshake);
    if (k->dirfd >= 0)
        close(k->dirfd);
    k->dirfd = -1;
    k->started = false;
}
