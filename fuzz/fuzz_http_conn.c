/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection of the HTTP server: consecutive requests, their bodies, trailers and limits. The
 * first byte gives the size of the pieces of the rest. The handler sees the same requests as
 * without splitting, and the bytes counted for the connection are those that it holds. With a small
 * limit more is refused, but the count stays right. The socket is one of a pair; no timer runs.
 */
#include "base/mem.h"
#include "base/uv/http_server_private.h"
#include "base/vtimers.h"
#include "fuzz/check.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_MAX 300
#define PLENTY ((size_t)1 << 20)
#define TIGHT 400
#define PIECE_MAX 64

struct rig {
    uv_loop_t loop;
    struct vtimers timers;
    struct http_server *server;
    struct http_conn *conn; /* NULL once closed */
    int peer;
    struct buf seen; /* what the handler received */
};

struct outcome {
    struct buf seen;
    enum conn_phase phase;
    int64_t malformed, bodies_refused;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct rig *rig = ctx;
    const char *body = r->body;
    assert(r->body_len <= BODY_MAX && body[r->body_len] == '\0');
    buf_printf(&rig->seen, "%s %s %zu:", r->method, r->raw_target, r->body_len);
    buf_add(&rig->seen, body, r->body_len);
    http_reply_bytes(x, 200, "text/plain", body, r->body_len);
}

static void ignore_timer(struct timer *t, void *ctx)
{
    (void)t, (void)ctx;
}

static void start(struct rig *r, size_t max_bytes)
{
    const struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
    int fds[2];
    *r = (struct rig){.server = mem_alloc(sizeof(*r->server))};
    struct http_server *s = r->server;
    int rc = uv_loop_init(&r->loop);
    assert(rc == 0);
    rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds);
    assert(rc == 0);
    vtimers_init(&r->timers, 0);
    s->loop = &r->loop;
    s->timers = &r->timers.timers;
    timer_init(&s->turns_timer, ignore_timer, s); /* run() gives all turns */
    s->n_open = 1;                                /* held by this rig, which frees the server */
    s->handler = handle;
    s->ctx = r;
    s->max_body_bytes = BODY_MAX;
    s->admission.classes[HTTP_STRANGER].limits =
        (struct http_class_limits){.max_connections = 1, .max_bytes = max_bytes};
    r->peer = fds[1];
    r->conn = http_conn_open(s, fds[0], &addr);
    assert(r->conn);
}

/* Between turns no answer is waiting to be sent, because everything sent is read here. */
static void check_count(const struct rig *r)
{
    const struct http_conn *c = r->conn;
    size_t n = c->in.len + (c->x ? c->x->head_bytes + c->x->body.len : 0);
    assert(c->phase == CONN_HEAD || c->phase == CONN_BODY || c->phase == CONN_LINGERING);
    assert(c->holder.bytes == n && r->server->admission.classes[HTTP_STRANGER].bytes == n);
    assert((c->x != NULL) == (c->phase == CONN_BODY) && list_is_empty(&r->server->waiting));
    assert(c->phase != CONN_LINGERING || n == 0);
}

static void run(struct rig *r)
{
    char reply[4096];
    while (r->conn) {
        http_conn_run(r->conn);
        ssize_t n, n_all = 0;
        while ((n = recv(r->peer, reply, sizeof(reply), 0)) > 0)
            n_all += n;
        if (r->conn->phase == CONN_CLOSED)
            r->conn = NULL;
        else if (n_all == 0 && !link_is_in(&r->conn->holder.turn))
            break;
    }
    if (r->conn)
        check_count(r);
}

static void feed(struct rig *r, const char *p, size_t n, size_t piece)
{
    for (size_t at = 0; r->conn && at < n;) {
        size_t left = n - at;
        ssize_t sent = send(r->peer, p + at, left < piece ? left : piece, MSG_NOSIGNAL);
        assert(sent > 0 || errno == EAGAIN);
        at += sent > 0 ? (size_t)sent : 0;
        run(r);
    }
}

static void end(struct rig *r, struct outcome *ret)
{
    struct http_server *s = r->server;
    ret->phase = r->conn ? r->conn->phase : CONN_CLOSED;
    ret->malformed = s->stats.malformed;
    ret->bodies_refused = s->stats.bodies_refused;
    ret->seen = r->seen;
    shutdown(r->peer, SHUT_WR);
    run(r);
    assert(!r->conn); /* the peer has ended */
    uv_run(&r->loop, UV_RUN_DEFAULT);
    assert(s->n_open == 1 && list_is_empty(&s->conns) && s->n_files == 0);
    assert(s->admission.classes[HTTP_STRANGER].bytes == 0);
    assert(s->admission.classes[HTTP_STRANGER].n_holders == 0);
    http_admission_deinit(&s->admission);
    timer_stop(s->timers, &s->turns_timer);
    vtimers_deinit(&r->timers);
    int rc = uv_loop_close(&r->loop);
    assert(rc == 0);
    close(r->peer);
    free(s);
}

static void play(const char *p, size_t n, size_t piece, size_t max_bytes, struct outcome *ret)
{
    struct rig r;
    start(&r, max_bytes);
    feed(&r, p, n, piece);
    end(&r, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole, cut, tight;
    if (size < 2)
        return 0;
    const char *p = (const char *)data + 1;
    size_t n = size - 1, piece = data[0] % PIECE_MAX + 1;
    play(p, n, n, PLENTY, &whole);
    play(p, n, piece, PLENTY, &cut);
    play(p, n, piece, TIGHT, &tight);
    assert(whole.phase == cut.phase && whole.malformed == cut.malformed);
    assert(whole.bodies_refused == cut.bodies_refused && whole.seen.len == cut.seen.len);
    assert(memcmp(buf_str(&whole.seen), buf_str(&cut.seen), cut.seen.len) == 0);
    assert(tight.seen.len <= cut.seen.len); /* the first of the same requests */
    assert(memcmp(buf_str(&tight.seen), buf_str(&cut.seen), tight.seen.len) == 0);
    buf_deinit(&whole.seen);
    buf_deinit(&cut.seen);
    buf_deinit(&tight.seen);
    return 0;
}
