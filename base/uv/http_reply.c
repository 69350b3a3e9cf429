/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers of the HTTP server call: looking at the request, waiting, replying.
 */
#include "base/http_date.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_server_private.h"
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void http_exchange_tell_answer(struct http_exchange *x, int status)
{
    int n = x->n_answers;
    x->n_answers = 0;
    for (int i = 0; i < n; i++)
        x->answers[i].fn(x->answers[i].ctx, status);
}

static void set_answered(struct http_exchange *x)
{
    http_exchange_tell_answer(x, x->status);
    x->state = ANSWERED;
    timer_stop(x->server->timers, &x->timer);
    link_remove(&x->link);
    if (x->conn)
        http_conn_answered(x->conn);
}

static void start_reply(
    struct http_exchange *x, enum reply_kind kind, int status, const char *content_type)
{
    assert(x->state != ANSWERED && status >= 200 && status <= 599);
    x->reply_kind = kind;
    x->status = status;
    if (content_type)
        buf_printf(&x->reply_fields, "Content-Type: %s\r\n", content_type);
}

void http_reply_bytes(
    struct http_exchange *x, int status, const char *content_type, const void *p, size_t n)
{
    assert(content_type || n == 0);
    start_reply(x, REPLY_BYTES, status, content_type);
    buf_add(&x->reply_body, p, n);
    x->reply_length = n;
    set_answered(x);
}

void http_reply_file(struct http_exchange *x, const char *content_type, int fd, uint64_t n)
{
    struct http_server *s = x->server;
    struct err e;
    if (s->n_files >= HTTP_FILES_MAX) {
        err_set(&e, ERR_UNAVAILABLE, "%d files are being sent already; try again later",
            HTTP_FILES_MAX);
        http_reply_err(x, &e);
        return;
    }
    s->n_files++;
    start_reply(x, REPLY_FILE, 200, content_type);
    x->file_fd = fd;
    x->reply_length = n;
    set_answered(x);
}

void http_reply_torn(struct http_exchange *x, int status, const char *content_type, const void *p,
    size_t n, size_t n_sent)
{
    assert(n_sent <= n);
    start_reply(x, REPLY_TORN, status, content_type);
    buf_add(&x->reply_body, p, n_sent);
    x->reply_length = n;
    set_answered(x);
}

void http_reply_stream(struct http_exchange *x, const char *content_type)
{
    start_reply(x, REPLY_STREAM, 200, content_type);
    set_answered(x);
}

void http_reply_none(struct http_exchange *x)
{
    start_reply(x, REPLY_NONE, 200, NULL);
    set_answered(x);
}

/* ---- The head of a reply ---- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"},
        {206, "Partial Content"}, {301, "Moved Permanently"}, {302, "Found"}, {304, "Not Modified"},
        {307, "Temporary Redirect"}, {400, "Bad Request"}, {401, "Unauthorized"},
        {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
        {408, "Request Timeout"}, {409, "Conflict"}, {411, "Length Required"},
        {412, "Precondition Failed"}, {413, "Content Too Large"}, {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"}, {422, "Unprocessable Content"}, {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
        {501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
        {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Status";
}

bool http_reply_has_body(const struct http_exchange *x)
{
    bool is_to_head = x->head.method && strcmp(x->head.method, "HEAD") == 0;
    return !is_to_head && x->status != 204 && x->status != 304 && x->reply_kind != REPLY_NONE;
}

void http_reply_head(const struct http_exchange *x, bool keeps_alive, struct buf *out)
{
    char date[HTTP_DATE_MAX];
    buf_printf(out, "HTTP/1.1 %d %s\r\n", x->status, reason_of(x->status));
    if (!x->has_date) {
        http_date_write(clock_wall(&clock_system), date);
        buf_printf(out, "Date: %s\r\n", date);
    }
    if (!keeps_alive)
        buf_adds(out, "Connection: close\r\n");
    buf_add(out, x->reply_fields.data, x->reply_fields.len);
    if (x->reply_kind == REPLY_STREAM)
        buf_adds(out, x->stream.is_chunked ? "Transfer-Encoding: chunked\r\n" : "");
    else if (x->status != 204 && x->status != 304)
        buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)x->reply_length);
    buf_adds(out, "\r\n");
}

void http_reply_text(
    struct http_exchange *x, int status, const char *content_type, const char *text)
{
    http_reply_bytes(x, status, content_type, text, strlen(text));
}

static char *error_text(const struct http_exchange *x, int status, const struct err *e)
{
    json_t *body = json_object(), *error = json_object();
    json_object_set_new(error, "kind", json_string(err_kind_name(e->kind)));
    json_object_set_new(error, "text", json_text(e->text));
    if (status >= 500 && x->id[0])
        json_object_set_new(error, "request", json_string(x->id));
    json_object_set_new(body, "error", error);
    char *text = json_dump_text(body);
    json_decref(body);
    return text;
}

void http_reply_status_err(struct http_exchange *x, int status, const struct err *e)
{
    char *text = error_text(x, status, e);
    if (status == 500 && x->id[0])
        log_error("a request failed", log_s("request", x->id), log_s("method", x->request.method),
            log_s("path", x->request.path), log_err(e));
    http_reply_text(x, status, "application/json", text);
    free(text);
}

void http_reply_instead(struct http_exchange *x, const struct err *e)
{
    char *text = error_text(x, http_status_of(e->kind), e);
    assert(x->state == ANSWERED && x->reply_kind != REPLY_FILE);
    buf_deinit(&x->reply_body);
    buf_deinit(&x->reply_fields);
    buf_adds(&x->reply_fields, "Content-Type: application/json\r\n");
    if (x->id[0])
        buf_printf(&x->reply_fields, "X-Request-Id: %s\r\n", x->id);
    buf_adds(&x->reply_body, text);
    x->reply_kind = REPLY_BYTES;
    x->status = http_status_of(e->kind);
    x->reply_length = x->reply_body.len;
    x->has_date = false;
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
    case ERR_NO_CREDENTIALS:
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
    if (!http_field_is_valid(name, value)) {
        log_warn("HTTP reply header left out: not a valid header", log_s("name", name));
        return;
    }
    if (strcasecmp(name, "Date") == 0)
        x->has_date = true;
    buf_printf(&x->reply_fields, "%s: %s\r\n", name, value);
}

/* ---- Reading the request ---- */

const char *http_request_header(struct http_exchange *x, const char *name)
{
    return http_head_field(&x->head, name);
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

void http_request_each_header(struct http_exchange *x, http_each_fn fn, void *ctx)
{
    for (size_t i = 0; i < x->head.n_fields; i++)
        fn(ctx, x->head.fields[i].name, x->head.fields[i].value);
}

void http_exchange_on_answer(struct http_exchange *x, http_answer_fn fn, void *ctx)
{
    assert(x->state != ANSWERED && x->n_answers < HTTP_ANSWER_FNS);
    x->answers[x->n_answers].fn = fn;
    x->answers[x->n_answers++].ctx = ctx;
}

void http_exchange_set_id(struct http_exchange *x, const char *id)
{
    STR_COPY(x->id, id);
    http_reply_add_header(x, "X-Request-Id", id);
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

void http_exchange_wait(struct http_exchange *x, int64_t max_wait_ms, http_wait_fn on_timeout,
    http_wait_fn on_gone, void *ctx)
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
    struct pollfd p = {.fd = x->conn->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void http_reply_stopping(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is stopping; try again");
    http_reply_err(x, &e);
}
