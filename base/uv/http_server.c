/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server on libmicrohttpd (MHD), whose epoll descriptor stands in a uv_poll: listening, the loop,
 * the end. The whole picture is in http_exchange.h.
 */
#include "base/uv/http_server.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/uv/http_exchange.h"
#include "base/uv/http_listen.h"
#include "base/uv/http_peer.h"
#include "base/uv/loop.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTION_MEMORY (16 * 1024) /* request line and headers, and MHD's buffers */
#define DEFAULT_IDLE_MS SECONDS_MS(60)
#define DEFAULT_CONNECTIONS 1000
#define DEFAULT_BUFFERED ((size_t)256 << 20)
#define STOP_ROUNDS 16 /* turns of MHD in which the last replies may leave */

/* ---- What MHD calls, but for exchanges ---- */

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
    return MHD_start_daemon(flags, 0, NULL, NULL, http_exchange_on_access, s, MHD_OPTION_EXTERNAL_LOGGER,
        on_mhd_log, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((idle_ms + 999) / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        http_exchange_on_target, s, MHD_OPTION_NOTIFY_COMPLETED, http_exchange_on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
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
    s->body_limit = o->body_limit;
    s->known.max_bytes = o->max_buffered_bytes > 0 ? o->max_buffered_bytes : DEFAULT_BUFFERED;
    s->strangers.max_bytes = s->known.max_bytes / 8;
    s->known.max_bytes -= s->strangers.max_bytes;
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
        http_reply_stopping(x);
    }
    if (s->is_in_mhd)
        timer_start(s->timers, &s->finish_timer, 0);
    else
        finish(s);
}
