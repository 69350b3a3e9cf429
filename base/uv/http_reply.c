/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers of the HTTP server call: looking at the request, waiting, replying.
 */
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/uv/http_exchange.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESUMES_A_MS 500 /* so many suspended ones delay a batch of answers by 1 ms */
#define RESUME_DELAY_MAX_MS 20
#define FILE_PIECE ((size_t)32 << 10) /* one turn of the loop sends so much of a file */

static void queue_resume(struct http_exchange *x)
{
    struct http_server *s = x->server;
    list_push_back(&s->answered, &x->link);
    size_t delay_ms = s->n_suspended / RESUMES_A_MS;
    if (!timer_is_running(&s->resume_timer))
        timer_start(s->timers, &s->resume_timer,
            delay_ms < RESUME_DELAY_MAX_MS ? (int64_t)delay_ms : RESUME_DELAY_MAX_MS);
}

static void set_answered(struct http_exchange *x)
{
    x->state = ANSWERED;
    timer_stop(x->server->timers, &x->timer);
    link_remove(&x->link);
    if (x->is_suspended)
        queue_resume(x);
}

static void reply(
    struct http_exchange *x, int status, const char *content_type, struct MHD_Response *response)
{
    assert(x->state != ANSWERED && !x->response);
    x->response = response;
    x->status = status;
    if (content_type)
        MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    for (size_t i = 0; i < x->n_headers; i++)
        if (MHD_add_response_header(x->response, x->headers[i].name, x->headers[i].value) != MHD_YES)
            log_warn("HTTP reply header left out: not a valid header", log_s("name", x->headers[i].name));
    set_answered(x);
}

void http_reply_bytes(struct http_exchange *x, int status, const char *content_type, const void *p, size_t n)
{
    assert(status >= 200 && status <= 599 && (content_type || n == 0));
    void *copy = n > 0 ? mem_dup(p, n) : NULL;
    reply(x, status, content_type,
        MHD_create_response_from_buffer(n, copy, n > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT));
}

struct file_reply {
    struct http_server *server;
    int fd;
};

static ssize_t on_read_file(void *cls, uint64_t at, char *buf, size_t max)
{
    const struct file_reply *f = cls;
    ssize_t n;
    do
        n = pread(f->fd, buf, max, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void on_free_file(void *cls)
{
    struct file_reply *f = cls;
    f->server->n_files--;
    free(f);
}

void http_reply_file(struct http_exchange *x, const char *content_type, int fd, uint64_t n)
{
    struct http_server *s = x->server;
    struct err e;
    if (s->n_files >= HTTP_FILES_MAX) {
        err_set(&e, ERR_UNAVAILABLE, "%d files are being sent already; try again later", HTTP_FILES_MAX);
        http_reply_err(x, &e);
        return;
    }
    struct file_reply *f = mem_alloc(sizeof(*f));
    *f = (struct file_reply){.server = s, .fd = fd};
    s->n_files++;
    reply(x, 200, content_type,
        MHD_create_response_from_callback(n, FILE_PIECE, on_read_file, f, on_free_file));
}

struct torn_reply {
    char *bytes;
    size_t n_sent;
};

static ssize_t on_read_torn(void *cls, uint64_t at, char *buf, size_t max)
{
    const struct torn_reply *t = cls;
    size_t n = at < t->n_sent ? t->n_sent - (size_t)at : 0;
    if (n == 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    n = n < max ? n : max;
    memcpy(buf, t->bytes + at, n);
    return (ssize_t)n;
}

static void on_free_torn(void *cls)
{
    struct torn_reply *t = cls;
    free(t->bytes);
    free(t);
}

void http_reply_torn(
    struct http_exchange *x, int status, const char *content_type, const void *p, size_t n, size_t n_sent)
{
    struct torn_reply *t = mem_alloc(sizeof(*t));
    assert(n_sent <= n);
    *t = (struct torn_reply){.bytes = mem_dup(p, n), .n_sent = n_sent};
    reply(x, status, content_type, MHD_create_response_from_callback(n, FILE_PIECE, on_read_torn, t, on_free_torn));
}

void http_reply_none(struct http_exchange *x)
{
    assert(x->state != ANSWERED && !x->response);
    set_answered(x);
}

void http_reply_text(struct http_exchange *x, int status, const char *content_type, const char *text)
{
    http_reply_bytes(x, status, content_type, text, strlen(text));
}

void http_reply_status_err(struct http_exchange *x, int status, const struct err *e)
{
    json_t *body = json_object(), *error = json_object();
    json_object_set_new(error, "kind", json_string(err_kind_name(e->kind)));
    json_object_set_new(error, "text", json_text(e->text));
    json_object_set_new(body, "error", error);
    char *text = json_dump_text(body);
    json_decref(body);
    http_reply_text(x, status, "application/json", text);
    free(text);
}

void http_reply_err(struct http_exchange *x, const struct err *e)
{
    http_reply_status_err(x, http_status_of(e->kind), e);
}

int http_status_of(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE:
        return 200;
    case ERR_INVALID:
        return 400;
    case ERR_DENIED:
        return 403;
    case ERR_NOT_FOUND:
        return 404;
    case ERR_CONFLICT:
        return 409;
    case ERR_CONFIG:
        return 422;
    case ERR_THROTTLED:
    case ERR_QUOTA:
        return 429;
    case ERR_UNSUPPORTED:
        return 501;
    case ERR_CANCELLED:
    case ERR_NO_CAPACITY:
    case ERR_UNAVAILABLE:
        return 503;
    case ERR_TIMEOUT:
        return 504;
    case ERR_NO_SPACE:
        return 507;
    case ERR_IO:
    case ERR_CORRUPT:
    case ERR_INTERNAL:
        break;
    }
    return 500;
}

void http_reply_add_header(struct http_exchange *x, const char *name, const char *value)
{
    x->headers = mem_resize(x->headers, x->n_headers + 1, sizeof(*x->headers));
    x->headers[x->n_headers++] = (struct reply_header){.name = mem_strdup(name), .value = mem_strdup(value)};
}

/* ---- Reading the request ---- */

const char *http_request_header(struct http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->conn, MHD_HEADER_KIND, name);
}

const char *http_request_query(struct http_exchange *x, const char *name)
{
    return http_target_query(&x->target, name);
}

void http_request_each_query(struct http_exchange *x, http_each_fn fn, void *ctx)
{
    for (size_t i = 0; i < x->target.n_query; i++)
        fn(ctx, x->target.query[i].name, x->target.query[i].value);
}

struct each {
    http_each_fn fn;
    void *ctx;
};

static enum MHD_Result on_each_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    const struct each *each = cls;
    each->fn(each->ctx, name, value ? value : "");
    return MHD_YES;
}

void http_request_each_header(struct http_exchange *x, http_each_fn fn, void *ctx)
{
    struct each each = {.fn = fn, .ctx = ctx};
    MHD_get_connection_values(x->conn, MHD_HEADER_KIND, on_each_header, &each);
}

/* ---- Waiting ---- */

static void on_wait_over(struct timer *t, void *ctx)
{
    (void)t;
    struct http_exchange *x = ctx;
    if (x->on_timeout) {
        x->on_timeout(x->wait_ctx, x);
        return;
    }
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the request was not answered in time; try again");
    http_reply_err(x, &e);
}

void http_exchange_wait(
    struct http_exchange *x, int64_t max_wait_ms, http_wait_fn on_timeout, http_wait_fn on_gone, void *ctx)
{
    assert(x->state == HANDED);
    x->on_timeout = on_timeout;
    x->on_gone = on_gone;
    x->wait_ctx = ctx;
    timer_stop(x->server->timers, &x->timer);
    timer_init(&x->timer, on_wait_over, x);
    timer_start(x->server->timers, &x->timer, max_wait_ms);
}

bool http_exchange_peer_left(const struct http_exchange *x)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd p = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void http_reply_stopping(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is stopping; try again");
    http_reply_err(x, &e);
}
