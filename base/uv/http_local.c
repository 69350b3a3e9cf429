/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP client for UNIX sockets. It exists because `belay` is started for each submit of a
 * script: loading libcurl and its libraries takes longer than a whole call to belayd. Each call has
 * its own connection, which is closed after the reply. That costs some 35 us more than a kept
 * connection, which the server could close just when a request is sent. As in http_client.c, a call
 * ends in one place, an iteration of the loop after its outcome is known:
 *
 *     CONNECTING --> UNDER_WAY --(reply | deadline | cancel | error)--> ENDED
 *     ENDED --(next iteration of the loop)--> done(), freed
 *
 * CONNECTING ends at once unless the server's queue is full. connect() reports a full queue by
 * EAGAIN; poll() does not.
 */
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_reading.h"
#include "base/uv/http_local.h"
#include "base/uv/timers.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define QUEUE_FULL_MS 10
#define READ_BYTES 65536
#define URL_BYTES_MAX 65535

struct http_local {
    struct http_client api; /* first: a struct http_client * is one of these */
    uv_loop_t *loop;
    struct timers *timers;
    struct list calls;
};

struct http_call {
    struct link link; /* in client.calls */
    struct http_local *client;
    struct sockaddr_un address;
    uv_poll_t *poll; /* NULL: not connected; on fd; closed and freed by itself */
    int fd;
    struct buf request;
    size_t n_sent;
    struct http_reading reading;
    bool has_ended;
    struct err error; /* ERR_NONE: the reply is good */
    struct timer retry, deadline, end;
    int64_t timeout_ms;
    char label[256]; /* "GET http://host/path", for errors: without query */
    http_done_fn done;
    void *ctx;
};

/* ---- The end of a call ---- */

static void on_poll_closed(uv_handle_t *h)
{
    free(h);
}

static void disconnect(struct http_call *call)
{
    if (!call->poll)
        return;
    /* uv_close stops the polling at once, so that fd may be closed here */
    uv_close((uv_handle_t *)call->poll, on_poll_closed);
    close(call->fd);
    call->poll = NULL;
}

static void call_finish(struct http_call *call)
{
    timer_stop(call->client->timers, &call->end);
    link_remove(&call->link);
    bool is_error = call->error.kind != ERR_NONE;
    call->done(call->ctx, is_error ? &call->error : NULL, is_error ? NULL : &call->reading.reply);
    http_reading_deinit(&call->reading);
    buf_wipe(&call->request);
    free(call);
}

static void on_end(struct timer *t, void *ctx)
{
    (void)t;
    call_finish(ctx);
}

/* Ends the call with call->error as its outcome. */
static void call_end(struct http_call *call)
{
    assert(!call->has_ended);
    call->has_ended = true;
    timer_stop(call->client->timers, &call->deadline);
    timer_stop(call->client->timers, &call->retry);
    disconnect(call);
    timer_start(call->client->timers, &call->end, 0);
}

static void on_deadline(struct timer *t, void *ctx)
{
    (void)t;
    struct http_call *call = ctx;
    err_set(&call->error, ERR_TIMEOUT, "%s: no complete reply within %lld ms", call->label,
        (long long)call->timeout_ms);
    call_end(call);
}

static void on_cancel(struct http_client *api, struct http_call *call)
{
    (void)api;
    if (call->has_ended)
        return;
    err_set(&call->error, ERR_CANCELLED, "%s: cancelled", call->label);
    call_end(call);
}

/* ---- What goes out and comes in ---- */

/* A server that does not read the rest may have answered already: its answer is read anyway. */
static void send_some(struct http_call *call)
{
    size_t left = call->request.len - call->n_sent;
    ssize_t n = send(call->fd, call->request.data + call->n_sent, left, MSG_NOSIGNAL);
    if (n >= 0)
        call->n_sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        call->n_sent = call->request.len;
}

static void receive_some(struct http_call *call)
{
    char bytes[READ_BYTES];
    ssize_t n = recv(call->fd, bytes, sizeof(bytes), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    int rc = n < 0 ? err_set(&call->error, ERR_IO, "%s: %s", call->label, strerror(errno))
                   : http_reading_feed(&call->reading, bytes, (size_t)n, &call->error);
    if (n > 0)
        explicit_bzero(bytes, (size_t)n);
    if (rc != 0 || call->reading.is_done)
        call_end(call);
}

static void on_poll(uv_poll_t *h, int status, int events);

static void watch(struct http_call *call)
{
    bool is_sending = call->n_sent < call->request.len;
    uv_poll_start(call->poll, UV_READABLE | (is_sending ? UV_WRITABLE : 0), on_poll);
}

/* libuv stops watching a socket in error. Using the socket returns the error, after the data that
 * had arrived. */
static void on_poll(uv_poll_t *h, int status, int events)
{
    struct http_call *call = h->data;
    bool was_sending = call->n_sent < call->request.len;
    if (status < 0)
        events = UV_READABLE | UV_WRITABLE;
    if (was_sending && events & UV_WRITABLE)
        send_some(call);
    if (was_sending || status < 0)
        watch(call);
    if (events & UV_READABLE)
        receive_some(call);
}

/* ---- Start ---- */

/* Sets call->error if the connection fails. With a full queue it retries until the deadline. */
static void try_connect(struct http_call *call)
{
    const struct sockaddr *address = (const struct sockaddr *)&call->address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, address, sizeof(call->address)) == 0) {
        call->fd = fd;
        call->poll = mem_alloc(sizeof(*call->poll));
        call->poll->data = call;
        int rc = uv_poll_init(call->client->loop, call->poll, fd);
        assert(rc == 0); /* a socket that was just opened */
        (void)rc;
        watch(call);
        return;
    }
    if (fd >= 0 && errno == EAGAIN)
        timer_start(call->client->timers, &call->retry, QUEUE_FULL_MS);
    else
        err_set(&call->error, fd < 0 ? ERR_IO : ERR_UNAVAILABLE, "%s: cannot connect to %s: %s",
            call->label, call->address.sun_path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void on_retry(struct timer *t, void *ctx)
{
    (void)t;
    struct http_call *call = ctx;
    try_connect(call);
    if (call->error.kind != ERR_NONE)
        call_end(call);
}

static int set_address(struct http_call *call, const struct http_request *r, struct err *e)
{
    call->address.sun_family = AF_UNIX;
    if (!STR_COPY(call->address.sun_path, r->unix_socket))
        return err_set(e, ERR_UNAVAILABLE, "%s: a socket's path has at most %zu bytes: %s",
            call->label, sizeof(call->address.sun_path) - 1, r->unix_socket);
    if (r->may_connect &&
        !r->may_connect(r->may_connect_ctx, (const struct sockaddr *)&call->address))
        return err_set(
            e, ERR_UNAVAILABLE, "%s: %s may not be connected to", call->label, r->unix_socket);
    return 0;
}

/* The parts of "http://HOST[PATH][?QUERY]", which is in printable ASCII without blanks. The server
 * checks HOST. */
struct url {
    const char *host, *path, *query; /* path and query may be "" */
    int n_host, n_path;
};

static int split_url(const char *text, struct url *u, const char *method, struct err *e)
{
    static const char scheme[] = "http://";
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~' || c - text >= URL_BYTES_MAX)
            return err_set(e, ERR_INVALID, "HTTP %s: malformed URL", method);
    if (!str_starts(text, scheme))
        return err_set(
            e, ERR_INVALID, "HTTP %s: the URL's scheme must be http on a UNIX socket", method);
    u->host = text + strlen(scheme);
    u->n_host = (int)strcspn(u->host, "/?#");
    u->path = u->host + u->n_host;
    u->n_path = (int)strcspn(u->path, "?#");
    u->query = u->path + u->n_path;
    if (memchr(u->host, '@', (size_t)u->n_host))
        return err_set(
            e, ERR_INVALID, "HTTP %s: a URL must not carry a user name or password", method);
    if (u->n_host == 0 || strchr(u->query, '#'))
        return err_set(e, ERR_INVALID, "HTTP %s: malformed URL", method);
    return 0;
}

static int make_head(struct http_call *call, const struct http_request *r, struct err *e)
{
    struct url u;
    int rc = split_url(r->url, &u, r->method, e);
    if (rc != 0)
        return rc;
    snprintf(call->label, sizeof(call->label), "%s http://%.*s%.*s", r->method, u.n_host, u.host,
        u.n_path, u.path);
    buf_printf(&call->request, "%s %.*s%s HTTP/1.1\r\n", r->method, u.n_path ? u.n_path : 1,
        u.n_path ? u.path : "/", u.query);
    if (!http_request_has_header(r, "Host"))
        buf_printf(&call->request, "Host: %.*s\r\n", u.n_host, u.host);
    buf_adds(&call->request, "Accept: */*\r\nConnection: close\r\n");
    return 0;
}

static int add_headers(struct http_call *call, const struct http_request *r, struct err *e)
{
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++) {
        if (!http_header_is_line(r->headers[i]))
            return err_set(e, ERR_INVALID,
                "%s: request header %zu is not \"Name: value\" in one line", call->label, i + 1);
        buf_adds(&call->request, r->headers[i]);
        buf_adds(&call->request, "\r\n");
    }
    return 0;
}

/* The maximum size of the request in bytes, for one allocation: growing would leave copies of a
 * secret. */
static size_t request_bytes(const struct http_request *r)
{
    size_t n = strlen(r->method) + 2 * strlen(r->url) + r->body_len + 256;
    for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
        n += strlen(r->headers[i]) + 2;
    return n;
}

static int make_request(struct http_call *call, const struct http_request *r, struct err *e)
{
    buf_reserve(&call->request, request_bytes(r));
    int rc = make_head(call, r, e);
    if (rc == 0)
        rc = add_headers(call, r, e);
    if (rc != 0)
        return rc;
    if (r->body_len > 0 || str_eq(r->method, "PUT") || str_eq(r->method, "POST"))
        buf_printf(&call->request, "Content-Length: %zu\r\n", r->body_len);
    buf_adds(&call->request, "\r\n");
    buf_add(&call->request, r->body, r->body_len);
    return 0;
}

static struct http_call *on_start(
    struct http_client *api, const struct http_request *r, http_done_fn done, void *ctx)
{
    struct http_local *c = (struct http_local *)api;
    struct http_call *call = mem_alloc(sizeof(*call));
    assert(r->method && r->url && r->unix_socket && r->timeout_ms > 0 && r->max_reply_bytes > 0);
    call->client = c;
    call->done = done;
    call->ctx = ctx;
    call->timeout_ms = r->timeout_ms;
    timer_init(&call->retry, on_retry, call);
    timer_init(&call->deadline, on_deadline, call);
    timer_init(&call->end, on_end, call);
    list_push_back(&c->calls, &call->link);
    timer_start(c->timers, &call->deadline, r->timeout_ms);
    http_reading_init(&call->reading, r, call->label);
    if (make_request(call, r, &call->error) == 0 && set_address(call, r, &call->error) == 0)
        try_connect(call);
    if (call->error.kind != ERR_NONE)
        call_end(call);
    return call;
}

struct http_client *uv_http_local_create(uv_loop_t *loop)
{
    struct http_local *c = mem_alloc(sizeof(*c));
    c->api = (struct http_client){.start = on_start, .cancel = on_cancel};
    c->loop = loop;
    c->timers = uv_timers_create(loop);
    return &c->api;
}

void uv_http_local_destroy(struct http_client *api)
{
    struct http_local *c = (struct http_local *)api;
    if (!c)
        return;
    for (struct link *l; (l = list_first(&c->calls));) {
        struct http_call *call = LIST_ENTRY(l, struct http_call, link);
        on_cancel(api, call);
        call_finish(call);
    }
    uv_timers_destroy(c->timers);
    free(c);
}
