/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server as a whole: listening, limits over all connections, start and stop. The whole
 * picture is in http_server_private.h.
 *
 * The listening socket is in the loop like any other, and a new connection is always accepted. At a
 * limit an older connection gives way or the new one is closed, so the listener never stops.
 */
#include "base/uv/http_server.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_server_private.h"
#include "base/uv/http_listen.h"
#include "base/uv/timers.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_IDLE_MS SECONDS_MS(60)
#define DEFAULT_CONNECTIONS 1000
#define DEFAULT_BYTES ((size_t)256 << 20)
#define ACCEPTS_AN_ITERATION 64
/* time for connections in an iteration of the loop, which has other work too */
#define TURNS_MS 10
#define LAST_TURNS_MS 1000 /* time to send the last replies when the server stops */
#define SCAN_MS 250
#define LATE_MS 1000 /* a scan this late shows that the loop was held up */
/* Memory is returned to the kernel after this number of closed TLS connections, at most once in
 * TRIM_MS, and for at most one part in TRIM_PART of the time. */
#define TRIM_AFTER 64
#define TRIM_MS SECONDS_MS(1)
#define TRIM_PART 100
#define ACCEPT_PAUSE_MS 100 /* pause without a free descriptor if no connection may give way */
#define LOG_DROPPED_MS SECONDS_MS(60)

/* ---- Accepting ---- */

static void on_listener(uv_poll_t *h, int status, int events);

/* No descriptor is free: closes a stranger's connection, or pauses the listener for a moment. */
static void free_descriptor(struct http_server *s)
{
    struct http_holder *victim = http_admission_victim(&s->admission, HTTP_STRANGER);
    if (victim) {
        http_conn_give_way(LIST_ENTRY(victim, struct http_conn, holder), false);
        return;
    }
    s->stats.refused++;
    uv_poll_stop(&s->listener);
    timer_start(s->timers, &s->accept_timer, ACCEPT_PAUSE_MS);
}

static void on_accept_timer(struct timer *t, void *ctx)
{
    (void)t;
    struct http_server *s = ctx;
    uv_poll_start(&s->listener, UV_READABLE, on_listener);
}

static void start_scans(struct http_server *s)
{
    if (timer_is_running(&s->scan_timer))
        return;
    s->scan_due_ms = clock_mono(s->timers->clock).ms + SCAN_MS;
    timer_start(s->timers, &s->scan_timer, SCAN_MS);
}

static void on_listener(uv_poll_t *h, int status, int events)
{
    struct http_server *s = h->data;
    (void)status, (void)events;
    for (int i = 0; i < ACCEPTS_AN_ITERATION; i++) {
        struct sockaddr_storage addr = {0};
        socklen_t len = sizeof(addr);
        int fd =
            accept4(s->listen_fd, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            free_descriptor(s);
            break;
        }
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
            break;
        if (fd < 0)
            continue;
        s->stats.accepted++;
        http_conn_open(s, fd, &addr);
    }
    start_scans(s);
}

/* ---- The loop ---- */

/* Runs as many turns as connections wait now, for at most max_ms. */
static void run_turns(struct http_server *s, int64_t max_ms)
{
    int64_t began_ms = clock_mono(s->timers->clock).ms;
    struct http_holder *h;
    for (int n = s->turns.n; n > 0 && (h = http_turns_next(&s->turns)); n--) {
        uint64_t from_ns = uv_hrtime();
        http_conn_run(LIST_ENTRY(h, struct http_conn, holder));
        http_turns_used(&s->turns, (int64_t)((uv_hrtime() - from_ns) / 1000));
        if (clock_mono(s->timers->clock).ms - began_ms >= max_ms)
            break;
    }
}

static void on_turns_timer(struct timer *t, void *ctx)
{
    (void)t;
    struct http_server *s = ctx;
    run_turns(s, TURNS_MS);
    if (s->turns.n > 0 && !timer_is_running(&s->turns_timer))
        timer_start(s->timers, &s->turns_timer, 0);
}

/* Logs at most one line a minute, with all drops since the last one. */
static void log_dropped(struct http_server *s, int64_t now_ms)
{
    int64_t n = s->stats.refused + s->stats.gave_way + s->stats.too_slow + s->stats.bodies_refused +
                s->stats.replies_refused;
    if (n == s->n_dropped_logged || now_ms < s->dropped_logged_at_ms + LOG_DROPPED_MS)
        return;
    log_warn("HTTP connections or bodies were dropped, at a limit or for slowness; totals since "
             "the start (see the metrics belay_http_*)",
        log_i("gave_way", s->stats.gave_way), log_i("refused", s->stats.refused),
        log_i("too_slow", s->stats.too_slow), log_i("bodies_refused", s->stats.bodies_refused),
        log_i("replies_refused", s->stats.replies_refused),
        log_i("strangers", s->admission.classes[HTTP_STRANGER].n_holders));
    s->n_dropped_logged = n;
    s->dropped_logged_at_ms = now_ms;
}

/* Memory of closed connections in OpenSSL is scattered between memory of open ones, and most of it
 * is from handshakes. Without trimming, the heap would keep the size of the largest burst. */
static void trim_memory(struct http_server *s, int64_t now_ms)
{
    if (s->n_tls_closed < TRIM_AFTER || now_ms < s->trim_after_ms)
        return;
    s->n_tls_closed = 0;
    mem_trim();
    int64_t took_ms = clock_mono(s->timers->clock).ms - now_ms;
    s->trim_after_ms = now_ms + TRIM_MS + TRIM_PART * took_ms;
}

void http_server_scan(struct http_server *s, int64_t now_ms)
{
    int64_t late_ms = now_ms - s->scan_due_ms;
    LIST_FOREACH (&s->conns, l) {
        struct http_conn *c = LIST_ENTRY(l, struct http_conn, link);
        if (late_ms >= LATE_MS)
            http_conn_postpone(c, late_ms);
        http_conn_check_deadline(c, now_ms);
    }
}

static void on_scan(struct timer *t, void *ctx)
{
    (void)t;
    struct http_server *s = ctx;
    int64_t now_ms = clock_mono(s->timers->clock).ms;
    http_server_scan(s, now_ms);
    log_dropped(s, now_ms);
    trim_memory(s, now_ms);
    if (!list_is_empty(&s->conns) || s->n_tls_closed >= TRIM_AFTER)
        start_scans(s);
}

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats)
{
    *ret_stats = s->stats;
    for (size_t i = 0; i < HTTP_CLASSES; i++)
        ret_stats->connections[i] = s->admission.classes[i].n_holders;
}

/* ---- Start ---- */

static int listen_on(
    const struct http_server_options *o, struct http_server *s, int *ret_fd, struct err *e)
{
    if (o->listen_fd > 0) {
        *ret_fd = o->listen_fd;
        s->port = o->port;
        return 0;
    }
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

static void on_finish_timer(struct timer *t, void *ctx);

static void join_loop(struct http_server *s, uv_loop_t *loop)
{
    s->loop = loop;
    s->timers = uv_timers_create(loop);
    timer_init(&s->scan_timer, on_scan, s);
    timer_init(&s->turns_timer, on_turns_timer, s);
    timer_init(&s->accept_timer, on_accept_timer, s);
    timer_init(&s->finish_timer, on_finish_timer, s);
    s->dropped_logged_at_ms = clock_mono(s->timers->clock).ms - LOG_DROPPED_MS;
    s->listener.data = s;
    int rc = uv_poll_init(loop, &s->listener, s->listen_fd);
    assert(rc == 0);
    rc = uv_poll_start(&s->listener, UV_READABLE, on_listener);
    assert(rc == 0);
    (void)rc;
    s->n_open = 1;
}

static void set_limits(const struct http_server_options *o, struct http_server *s)
{
    for (size_t i = 0; i < HTTP_CLASSES; i++) {
        struct http_class_limits *l = &s->admission.classes[i].limits;
        *l = o->limits[i];
        if (l->max_connections == 0)
            l->max_connections = DEFAULT_CONNECTIONS;
        if (l->max_bytes == 0)
            l->max_bytes = DEFAULT_BYTES;
    }
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
    tls_server_destroy(s->tls);
    http_admission_deinit(&s->admission);
    free(s->unix_path);
    free(s);
}

int http_server_start(uv_loop_t *loop, const struct http_server_options *o,
    struct http_server **ret_server, struct err *e)
{
    assert(o->handler && (o->host || o->unix_path) && (!o->cert_pem || o->key_pem));
    assert(!o->client_ca_pem || o->cert_pem);
    struct http_server *s = mem_alloc(sizeof(*s));
    s->handler = o->handler;
    s->ctx = o->ctx;
    s->max_body_bytes = o->max_body_bytes;
    s->identify = o->identify;
    s->idle_ms = o->idle_timeout_ms > 0 ? o->idle_timeout_ms : DEFAULT_IDLE_MS;
    s->has_client_ca = o->client_ca_pem != NULL;
    s->is_unix = o->unix_path != NULL;
    set_limits(o, s);
    int rc = 0;
    if (o->cert_pem)
        rc = tls_server_create(o->cert_pem, o->key_pem, o->client_ca_pem, &s->tls, e);
    if (rc == 0)
        rc = listen_on(o, s, &s->listen_fd, e);
    if (rc != 0) {
        server_free(s);
        return rc;
    }
    join_loop(s, loop);
    *ret_server = s;
    return 0;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

/* ---- Stop ---- */

void http_server_handle_closed(struct http_server *s)
{
    if (s->n_open == 0)
        server_free(s);
}

static void on_listener_closed(uv_handle_t *h)
{
    struct http_server *s = h->data;
    s->n_open--;
    http_server_handle_closed(s);
}

/* Runs turns until no connection waits for one, for at most LAST_TURNS_MS: a large reply takes
 * several turns. */
static void run_last_turns(struct http_server *s)
{
    int64_t until_ms = clock_mono(s->timers->clock).ms + LAST_TURNS_MS;
    while (s->turns.n > 0 && clock_mono(s->timers->clock).ms < until_ms)
        run_turns(s, LAST_TURNS_MS);
}

/* Runs outside of any connection's turn: sends the last replies, then closes all connections. */
static void finish(struct http_server *s)
{
    struct link *l;
    run_last_turns(s);
    while ((l = list_first(&s->conns)))
        http_conn_close(LIST_ENTRY(l, struct http_conn, link));
    uv_timers_destroy(s->timers);
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
    close(s->listen_fd);
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
        link_remove(
            &s->current->link); /* answered by the handler that called us, or by hand_over */
    struct link *l;
    while ((l = list_first(&s->waiting))) {
        struct http_exchange *x = LIST_ENTRY(l, struct http_exchange, link);
        if (x->on_gone)
            x->on_gone(x->wait_ctx, x);
        http_reply_stopping(x);
    }
    LIST_FOREACH (&s->conns, at) {
        struct http_conn *c = LIST_ENTRY(at, struct http_conn, link);
        if (c->phase == CONN_STREAMING)
            http_stream_stop(c->x);
    }
    if (s->n_running > 0)
        timer_start(s->timers, &s->finish_timer, 0);
    else
        finish(s);
}
