/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies that go on (http_stream.h). The connection is STREAMING while the handler may write, and
 * SENDING after the end, like after any other reply.
 */
#include "base/uv/http_stream.h"
#include "base/uv/http_server_private.h"
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define RECEIVED_MAX ((size_t)16 << 10) /* dropped in all during a stream */
#define CHUNK_OVERHEAD 20               /* of its size and line ends */

static bool is_streaming(const struct http_exchange *x)
{
    return x->reply_kind == REPLY_STREAM && x->state == ANSWERED && !x->stream.is_ended;
}

void http_stream_begin(struct http_exchange *x, const struct http_stream_options *o)
{
    assert(x->state == HANDED && o->content_type && o->on_closed);
    x->stream = (struct http_streaming){.is_chunked = !x->head.is_1_0,
        .max_waiting = o->max_waiting_bytes,
        .on_closed = o->on_closed,
        .ctx = o->ctx};
    if (!x->stream.is_chunked)
        x->conn->is_last = true;
    if (!x->request.is_unix) {
        unsigned int ms = (unsigned int)x->server->idle_ms;
        setsockopt(x->conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    }
    http_reply_stream(x, o->content_type);
}

size_t http_stream_waiting(const struct http_exchange *x)
{
    return x->conn->out.len - x->conn->out_at;
}

static void add_piece(struct http_exchange *x, const void *p, size_t n)
{
    struct http_conn *c = x->conn;
    if (http_stream_waiting(x) == 0)
        http_conn_postpone(c, clock_mono(x->server->timers->clock).ms - c->moved_at_ms);
    if (x->stream.is_chunked)
        buf_printf(&c->out, "%zx\r\n", n);
    buf_add(&c->out, p, n);
    if (x->stream.is_chunked)
        buf_adds(&c->out, "\r\n");
}

bool http_stream_write(struct http_exchange *x, const void *p, size_t n)
{
    struct err e;
    assert(is_streaming(x) && n > 0);
    if (http_stream_waiting(x) + n > x->stream.max_waiting ||
        !http_conn_take_bytes(x->conn, n + CHUNK_OVERHEAD, &e))
        return false;
    x->stream.n_counted += n + CHUNK_OVERHEAD;
    add_piece(x, p, n);
    http_conn_wake(x->conn);
    return true;
}

/* No more pieces will come. */
static void finish(struct http_exchange *x)
{
    x->stream.is_ended = true;
    if (x->stream.is_chunked)
        buf_adds(&x->conn->out, "0\r\n\r\n");
    http_conn_set_phase(x->conn, CONN_SENDING);
    http_conn_wake(x->conn);
}

void http_stream_end(struct http_exchange *x, const void *p, size_t n)
{
    assert(is_streaming(x) && n <= HTTP_STREAM_LAST_MAX);
    if (n > 0)
        add_piece(x, p, n);
    finish(x);
}

void http_stream_stop(struct http_exchange *x)
{
    x->stream.on_closed(x->stream.ctx);
    finish(x);
}

void http_stream_drop(struct http_exchange *x)
{
    if (x->reply_kind != REPLY_STREAM)
        return;
    http_admission_give_back(&x->server->admission, &x->conn->holder, x->stream.n_counted);
    if (!x->stream.is_ended)
        x->stream.on_closed(x->stream.ctx);
}

void http_stream_sent(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    size_t waiting = http_stream_waiting(x);
    if (x->stream.n_counted > waiting) {
        http_admission_give_back(&x->server->admission, &c->holder, x->stream.n_counted - waiting);
        x->stream.n_counted = waiting;
    }
    if (c->out_at > 0 && waiting > 0) {
        buf_remove_front(&c->out, c->out_at);
        c->out_at = 0;
    } else if (waiting == 0) {
        buf_deinit(&c->out); /* many streams have nothing to send most of the time */
        c->out_at = 0;
    }
}

bool http_stream_may_receive(struct http_exchange *x, size_t n)
{
    x->conn->is_last = x->conn->lingers = true;
    x->stream.n_received += n;
    return x->stream.n_received <= RECEIVED_MAX;
}
