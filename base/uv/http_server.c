/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server on libmicrohttpd (MHD), whose epoll descriptor stands in a uv_poll. The life of an
 * exchange:
 *
 *     READING --(whole request is here)--> HANDED --(http_reply*)--> ANSWERED --(sent, or peer gone)--> freed
 *        |                                                              ^
 *        +---- refused before any handler sees it: 400, 413 ------------+
 *
 * Invariants
 *  1. An exchange is HANDED while it stands in server.waiting: its handler owes it exactly one reply.
 *  2. HANDED and not the one in the handler right now = suspended in MHD, with its timer running.
 *  3. MHD is entered only by run_mhd, never from inside a handler: an answer given later is queued, and all
 * that were queued are resumed together (MHD's work for a resume grows with all that are suspended).
 *  4. MHD alone ends an exchange (on_completed), so a connection that breaks needs no case of its own.
 */
#include "base/uv/http_server.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_listen.h"
#include "base/uv/http_peer.h"
#include "base/uv/http_target.h"
#include "base/uv/loop.h"
#include <assert.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTION_MEMORY (16 * 1024) /* request line and headers, and MHD's buffers */
#define DEFAULT_WAIT_MS SECONDS_MS(30)
#define DEFAULT_IDLE_MS SECONDS_MS(60)
#define DEFAULT_CONNECTIONS 1000
#define STOP_ROUNDS 16   /* turns of MHD in which the last replies may leave */
#define RESUMES_A_MS 500 /* so many suspended ones delay a batch of answers by 1 ms */
#define RESUME_DELAY_MAX_MS 20

/* So much of a body over the limit is read and dropped, so that the client hears the 413: one that is still
 * sending when the server hangs up may not. */
#define DRAIN_MAX ((size_t)16 << 20)

enum exchange_state { READING, HANDED, ANSWERED };

struct header {
    char *name, *value;
};

struct http_exchange {
    struct link link; /* in server.waiting while HANDED, in server.answered while it waits to be resumed */
    struct http_server *server;
    struct MHD_Connection *conn;
    enum exchange_state state;
    bool is_begun, is_suspended;
    char *raw_target;
    struct http_target target;
    struct buf body;
    size_t dropped_bytes;
    struct http_server_request request;
    struct header *headers; /* for the reply */
    size_t n_headers;
    struct MHD_Response *response;
    int status;
    struct timer timer;
    http_wait_fn on_timeout, on_gone;
    void *wait_ctx;
};

struct http_server {
    struct MHD_Daemon *mhd;
    uv_poll_t poll; /* MHD's epoll descriptor */
    struct timers *timers;
    struct timer mhd_timer, resume_timer, finish_timer;
    struct list waiting, answered;
    size_t n_suspended;
    struct http_exchange *current; /* in the handler right now */
    bool is_in_mhd, is_stopping;
    http_handler_fn handler;
    void *ctx;
    size_t max_body_bytes;
    bool has_client_ca;
    int port;
    char *unix_path;
    struct stat unix_stat; /* what stood at unix_path when we had bound it */
    char mhd_error[256];   /* the last thing MHD complained of, for the error of a failed start */
};

/* ---- Replies ---- */

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

void http_reply_bytes(struct http_exchange *x, int status, const char *content_type, const void *p, size_t n)
{
    assert(x->state != ANSWERED && !x->response);
    assert(status >= 200 && status <= 599 && (content_type || n == 0));
    void *copy = n > 0 ? mem_dup(p, n) : NULL;
    x->response =
        MHD_create_response_from_buffer(n, copy, n > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    x->status = status;
    if (content_type)
        MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    for (size_t i = 0; i < x->n_headers; i++)
        if (MHD_add_response_header(x->response, x->headers[i].name, x->headers[i].value) != MHD_YES)
            log_warn("HTTP reply header left out: not a valid header", log_s("name", x->headers[i].name));
    set_answered(x);
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

static void reply_status_err(struct http_exchange *x, int status, const struct err *e)
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
    reply_status_err(x, http_status_of(e->kind), e);
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
    x->headers[x->n_headers++] = (struct header){.name = mem_strdup(name), .value = mem_strdup(value)};
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

static void fill_peer(struct http_exchange *x)
{
    struct http_server_request *r = &x->request;
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *addr =
        MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    http_peer_fill_address(fd ? fd->connect_fd : -1, addr ? addr->client_addr : NULL, r);
    if (!x->server->has_client_ca)
        return;
    struct http_peer_cert *c =
        MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!c->is_checked)
        http_peer_check_cert(
            MHD_get_connection_info(x->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session, c);
    if (c->error[0])
        r->peer_cert_error = c->error;
    else if (c->cn[0] && clock_wall(&clock_system).ms >= SECONDS_MS(c->verified_until))
        r->peer_cert_error = "the client certificate has expired since the connection was made";
    else if (c->cn[0])
        r->peer_cn = c->cn;
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
    timer_start(x->server->timers, &x->timer, max_wait_ms);
}

static void reply_stopping(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the server is stopping; try again");
    http_reply_err(x, &e);
}

/* ---- What MHD calls ---- */

static enum MHD_Result queue_response(struct http_exchange *x)
{
    return x->response ? MHD_queue_response(x->conn, (unsigned)x->status, x->response) : MHD_NO;
}

/* The whole request is here: to the handler with it. */
static void hand_over(struct http_exchange *x, const char *method)
{
    struct http_server *s = x->server;
    struct err e;
    if (http_target_parse(x->raw_target, &x->target, &e) < 0) {
        http_reply_err(x, &e);
        return;
    }
    x->request = (struct http_server_request){.method = method,
        .path = x->target.path,
        .raw_target = x->raw_target,
        .body = buf_str(&x->body),
        .body_len = x->body.len,
        .peer_uid = (uid_t)-1};
    fill_peer(x);
    x->state = HANDED;
    list_push_back(&s->waiting, &x->link);
    s->current = x;
    if (!s->is_stopping)
        s->handler(s->ctx, x, &x->request);
    s->current = NULL;
    if (x->state == HANDED && s->is_stopping)
        reply_stopping(x);
    if (x->state == HANDED && !timer_is_running(&x->timer))
        http_exchange_wait(x, DEFAULT_WAIT_MS, NULL, NULL, NULL);
}

static void suspend(struct http_exchange *x)
{
    x->is_suspended = true;
    x->server->n_suspended++;
    MHD_suspend_connection(x->conn);
}

static void reply_too_large(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_INVALID, "the request's body is larger than the %zu bytes allowed here",
        x->server->max_body_bytes);
    reply_status_err(x, MHD_HTTP_CONTENT_TOO_LARGE, &e);
}

/* Only the headers are here. A body far over the limit is refused now. */
static enum MHD_Result begin(struct http_exchange *x, struct MHD_Connection *conn)
{
    x->is_begun = true;
    x->conn = conn;
    const char *text = http_request_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t n;
    if (text && str_to_i64(text, 0, INT64_MAX, "Content-Length", &n, NULL) == 0 &&
        (uint64_t)n > x->server->max_body_bytes + DRAIN_MAX) {
        reply_too_large(x);
        return queue_response(x);
    }
    return MHD_YES;
}

/* A chunked body that goes on and on ends the connection. */
static enum MHD_Result take_body(struct http_exchange *x, const char *p, size_t *n)
{
    if (x->dropped_bytes > 0 || buf_add_limited(&x->body, p, *n, x->server->max_body_bytes, NULL) < 0)
        x->dropped_bytes += *n;
    *n = 0;
    return x->dropped_bytes <= DRAIN_MAX ? MHD_YES : MHD_NO;
}

/* MHD calls this when the headers are here, for each piece of the body, at the end, and after a resume. */
static enum MHD_Result on_access(void *cls, struct MHD_Connection *conn, const char *url, const char *method,
    const char *version, const char *upload, size_t *n_upload, void **con_cls)
{
    (void)cls, (void)url, (void)version;
    struct http_exchange *x = *con_cls;
    if (!x->is_begun)
        return begin(x, conn);
    if (*n_upload > 0)
        return take_body(x, upload, n_upload);
    if (x->state == READING && x->dropped_bytes > 0)
        reply_too_large(x);
    else if (x->state == READING)
        hand_over(x, method);
    if (x->state == ANSWERED)
        return queue_response(x);
    suspend(x);
    return MHD_YES;
}

/* The first that is heard of a request: its target, untouched. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *conn)
{
    (void)conn;
    struct http_exchange *x = mem_alloc(sizeof(*x));
    x->server = cls;
    x->raw_target = mem_strdup(target);
    timer_init(&x->timer, on_wait_over, x);
    return x;
}

static void on_completed(
    void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)conn, (void)why;
    struct http_exchange *x = *con_cls;
    if (!x)
        return;
    assert(x->state != HANDED && !link_is_in(&x->link));
    if (x->response)
        MHD_destroy_response(x->response);
    for (size_t i = 0; i < x->n_headers; i++) {
        free(x->headers[i].name);
        free(x->headers[i].value);
    }
    free(x->headers);
    http_target_deinit(&x->target);
    buf_deinit(&x->body);
    free(x->raw_target);
    free(x);
    *con_cls = NULL;
}

static void on_connection(
    void *cls, struct MHD_Connection *conn, void **socket_ctx, enum MHD_ConnectionNotificationCode code)
{
    (void)conn;
    const struct http_server *s = cls;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        free(*socket_ctx);
    else if (s->has_client_ca)
        *socket_ctx = mem_alloc(sizeof(struct http_peer_cert));
}

/* The target is decoded strictly, by http_target.c: MHD leaves it as it is. */
static size_t on_unescape(void *cls, struct MHD_Connection *conn, char *s)
{
    (void)cls, (void)conn;
    return strlen(s);
}

static void on_mhd_log(void *cls, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

static void on_mhd_log(void *cls, const char *fmt, va_list args)
{
    struct http_server *s = cls;
    vsnprintf(s->mhd_error, sizeof(s->mhd_error), fmt, args);
    s->mhd_error[strcspn(s->mhd_error, "\r\n")] = '\0';
    log_debug("HTTP server", log_s("event", s->mhd_error));
}

/* ---- The loop ---- */

static void run_mhd(struct http_server *s)
{
    assert(!s->is_in_mhd);
    s->is_in_mhd = true;
    MHD_run(s->mhd);
    s->is_in_mhd = false;
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(s->mhd, &ms) == MHD_YES)
        timer_start(
            s->timers, &s->mhd_timer, ms < (uint64_t)SECONDS_MS(3600) ? (int64_t)ms : SECONDS_MS(3600));
    else
        timer_stop(s->timers, &s->mhd_timer);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    (void)status, (void)events; /* whatever it is, MHD looks for itself */
    run_mhd(h->data);
}

static void on_mhd_timer(struct timer *t, void *ctx)
{
    (void)t;
    run_mhd(ctx);
}

static void resume_answered(struct http_server *s)
{
    struct link *l;
    while ((l = list_pop(&s->answered))) {
        struct http_exchange *x = LIST_ENTRY(l, struct http_exchange, link);
        x->is_suspended = false;
        s->n_suspended--;
        MHD_resume_connection(x->conn);
    }
}

static void on_resume_timer(struct timer *t, void *ctx)
{
    (void)t;
    resume_answered(ctx);
    run_mhd(ctx);
}

/* ---- Start ---- */

static int listen_on(const struct http_server_options *o, struct http_server *s, int *ret_fd, struct err *e)
{
    if (!o->unix_path)
        return http_listen_tcp(o->host, o->port, ret_fd, &s->port, e);
    int rc = http_listen_unix(o->unix_path, o->unix_mode, ret_fd, e);
    if (rc < 0)
        return rc;
    s->unix_path = mem_strdup(o->unix_path);
    if (lstat(s->unix_path, &s->unix_stat) < 0)
        s->unix_stat = (struct stat){0};
    return 0;
}

static const char tls_priorities[] = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1";

#define OPTIONS_MAX 5

static void tls_options(const struct http_server_options *o, struct MHD_OptionItem items[OPTIONS_MAX])
{
    size_t n = 0;
    if (o->cert_pem) {
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)o->cert_pem};
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)o->key_pem};
        items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)tls_priorities};
        if (o->client_ca_pem)
            items[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)o->client_ca_pem};
    }
    items[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

static struct MHD_Daemon *start_mhd(const struct http_server_options *o, struct http_server *s, int fd)
{
    int64_t idle_ms = o->idle_timeout_ms > 0 ? o->idle_timeout_ms : DEFAULT_IDLE_MS;
    int connections = o->max_connections > 0 ? o->max_connections : DEFAULT_CONNECTIONS;
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (o->cert_pem ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[OPTIONS_MAX];
    tls_options(o, tls);
    return MHD_start_daemon(flags, 0, NULL, NULL, on_access, s, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((idle_ms + 999) / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_target, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static void on_finish_timer(struct timer *t, void *ctx);

static void join_loop(struct http_server *s, uv_loop_t *loop)
{
    s->timers = uv_timers_create(loop);
    timer_init(&s->mhd_timer, on_mhd_timer, s);
    timer_init(&s->resume_timer, on_resume_timer, s);
    timer_init(&s->finish_timer, on_finish_timer, s);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    s->poll.data = s;
    int rc = uv_poll_init(loop, &s->poll, info->epoll_fd);
    assert(rc == 0);
    rc = uv_poll_start(&s->poll, UV_READABLE, on_poll);
    assert(rc == 0);
    (void)rc;
}

static void remove_unix_path(const struct http_server *s)
{
    struct stat st;
    if (s->unix_path && lstat(s->unix_path, &st) == 0 && st.st_dev == s->unix_stat.st_dev &&
        st.st_ino == s->unix_stat.st_ino)
        unlink(s->unix_path);
}

static void server_free(struct http_server *s)
{
    free(s->unix_path);
    free(s);
}

int http_server_start(
    uv_loop_t *loop, const struct http_server_options *o, struct http_server **ret_server, struct err *e)
{
    assert(o->handler && (o->host || o->unix_path) && (!o->cert_pem || o->key_pem));
    assert(!o->client_ca_pem || o->cert_pem);
    struct http_server *s = mem_alloc(sizeof(*s));
    s->handler = o->handler;
    s->ctx = o->ctx;
    s->max_body_bytes = o->max_body_bytes;
    s->has_client_ca = o->client_ca_pem != NULL;
    int fd;
    int rc = listen_on(o, s, &fd, e);
    if (rc < 0)
        goto out;
    s->mhd = start_mhd(o, s, fd);
    if (!s->mhd) {
        close(fd);
        remove_unix_path(s);
        rc = err_set(e, ERR_CONFIG, "cannot serve HTTP on %s: %s", o->unix_path ? o->unix_path : o->host,
            s->mhd_error[0] ? s->mhd_error : "libmicrohttpd did not start");
        goto out;
    }
    join_loop(s, loop);
    run_mhd(s);
    *ret_server = s;
    return 0;
out:
    server_free(s);
    return rc;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

/* ---- Stop ---- */

static void on_poll_closed(uv_handle_t *h)
{
    server_free(h->data);
}

/* Outside of MHD: lets the last replies leave, then closes all. */
static void finish(struct http_server *s)
{
    resume_answered(s);
    MHD_UNSIGNED_LONG_LONG ms = 0;
    for (int i = 0; i < STOP_ROUNDS && ms == 0; i++) {
        run_mhd(s);
        if (MHD_get_timeout(s->mhd, &ms) != MHD_YES)
            break;
    }
    uv_poll_stop(&s->poll);
    resume_answered(s);
    MHD_stop_daemon(s->mhd);
    uv_timers_destroy(s->timers);
    uv_close((uv_handle_t *)&s->poll, on_poll_closed);
}

static void on_finish_timer(struct timer *t, void *ctx)
{
    (void)t;
    finish(ctx);
}

void http_server_stop(struct http_server *s)
{
    if (!s || s->is_stopping)
        return;
    s->is_stopping = true;
    remove_unix_path(s);
    if (s->current)
        link_remove(&s->current->link); /* its handler called us and will answer, or hand_over will */
    struct link *l;
    while ((l = list_first(&s->waiting))) {
        struct http_exchange *x = LIST_ENTRY(l, struct http_exchange, link);
        if (x->on_gone)
            x->on_gone(x->wait_ctx, x);
        reply_stopping(x);
    }
    if (s->is_in_mhd)
        timer_start(s->timers, &s->finish_timer, 0);
    else
        finish(s);
}
