/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/uv/rig.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/http_local.h"
#include "base/uv/http_stream.h"
#include "base/uv/timers.h"
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static void on_park_over(void *ctx, struct http_exchange *x)
{
    struct rig *r = ctx;
    r->n_wait_over++;
    if (r->parked == x)
        r->parked = NULL;
    http_reply_bytes(x, 204, NULL, NULL, 0);
}

static void on_park_gone(void *ctx, struct http_exchange *x)
{
    struct rig *r = ctx;
    r->n_gone++;
    if (r->parked == x)
        r->parked = NULL;
}

static void reply_whoami(struct http_exchange *x, const struct http_server_request *q)
{
    char *text = mem_printf("cn=%s;error=%s;unix=%d;uid=%ld;pid=%ld;addr=%s",
        q->peer_cn ? q->peer_cn : "-", q->peer_cert_error ? q->peer_cert_error : "-", q->is_unix,
        (long)q->peer_uid, (long)q->peer_pid, q->peer_address);
    http_reply_text(x, 200, "text/plain", text);
    free(text);
}

static void reply_target(struct http_exchange *x, const struct http_server_request *q)
{
    const char *value = http_request_query(x, "x");
    char *text = mem_printf("%s|%s|%s", q->path, q->raw_target, value ? value : "(none)");
    http_reply_text(x, 200, "text/plain", text);
    free(text);
}

static void reply_big(struct http_exchange *x)
{
    size_t n = (size_t)1 << 20;
    char *p = mem_alloc(n);
    memset(p, 'x', n);
    http_reply_bytes(x, 200, "application/octet-stream", p, n);
    free(p);
}

static void park(struct rig *r, struct http_exchange *x, int64_t wait_ms)
{
    r->parked = x;
    r->n_parked++;
    http_exchange_wait(x, wait_ms, on_park_over, on_park_gone, r);
}

static void on_stream_closed(void *ctx)
{
    struct rig *r = ctx;
    r->n_closed++;
    r->stream = NULL;
}

static void stream(struct rig *r, struct http_exchange *x)
{
    r->stream = x;
    r->n_streams++;
    http_stream_begin(x, &(struct http_stream_options){.content_type = "text/event-stream",
                             .max_waiting_bytes = 64 << 10,
                             .on_closed = on_stream_closed,
                             .ctx = r});
}

static void reply_fail(struct http_exchange *x)
{
    struct err e;
    err_set(&e, ERR_CONFLICT, "there is \"one\" already\n");
    http_reply_err(x, &e);
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_server_request *q)
{
    struct rig *r = ctx;
    r->n_requests++;
    if (str_eq(q->path, "/hello")) {
        http_reply_text(x, 200, "text/plain", "hello");
    } else if (str_eq(q->path, "/echo")) {
        http_reply_bytes(x, 200, "application/octet-stream", q->body, q->body_len);
    } else if (str_eq(q->path, "/whoami")) {
        reply_whoami(x, q);
    } else if (str_starts(q->path, "/target")) {
        reply_target(x, q);
    } else if (str_eq(q->path, "/park")) {
        park(r, x, PATIENCE_MS);
    } else if (str_eq(q->path, "/park-default")) {
        r->parked = x;
        r->n_parked++;
    } else if (str_eq(q->path, "/park-short")) {
        park(r, x, 20);
    } else if (str_eq(q->path, "/stop")) {
        http_server_stop(r->server);
        r->server = NULL;
        http_reply_text(x, 200, "text/plain", "stopping");
    } else if (str_eq(q->path, "/headers")) {
        http_reply_add_header(x, "ETag", "\"abc\"");
        http_reply_add_header(x, "X-Forged", "a\r\nSet-Cookie: b");
        http_reply_bytes(x, 204, NULL, NULL, 0);
    } else if (str_eq(q->path, "/fail")) {
        reply_fail(x);
    } else if (str_eq(q->path, "/none")) {
        http_reply_none(x);
    } else if (str_eq(q->path, "/file")) {
        http_reply_file(x, "application/octet-stream", r->file_fd, r->file_bytes);
    } else if (str_eq(q->path, "/stream")) {
        stream(r, x);
    } else if (str_eq(q->path, "/big")) {
        reply_big(x);
    } else {
        http_reply_text(x, 404, "text/plain", "no such path");
    }
}

static void identify(void *ctx, struct http_exchange *x, const struct http_server_request *q,
    struct http_identity *ret)
{
    const struct rig *r = ctx;
    const char *known = http_request_header(x, "X-Known"), *name = http_request_header(x, "X-User");
    assert_true(q->body_len == 0 && !q->body && q->raw_target[0] == '/' && q->peer_address[0]);
    if (r->stranger_bytes > 0 && !(known && str_eq(known, "yes"))) {
        ret->max_body_bytes = r->stranger_bytes;
        return;
    }
    ret->class = HTTP_USER;
    STR_COPY(ret->name, name ? name : "somebody");
}

void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    assert_int_equal(uv_loop_init(&r->loop), 0);
    r->timers = uv_timers_create(&r->loop);
    r->client = uv_http_client_create(&r->loop);
}

void rig_init_local(struct rig *r)
{
    *r = (struct rig){.is_local = true, .base = "http://server"};
    assert_int_equal(uv_loop_init(&r->loop), 0);
    r->timers = uv_timers_create(&r->loop);
    r->client = uv_http_local_create(&r->loop);
    STR_COPY(r->folder, "/tmp/belay-rig-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    snprintf(r->socket, sizeof(r->socket), "%s/socket", r->folder);
}

void rig_destroy_client(struct rig *r)
{
    (r->is_local ? uv_http_local_destroy : uv_http_client_destroy)(r->client);
    r->client = NULL;
}

void rig_serve(struct rig *r, struct http_server_options o)
{
    struct err e = {0};
    if (r->is_local)
        o.unix_path = r->socket;
    else if (!o.unix_path && !o.host)
        o.host = "127.0.0.1";
    if (o.max_body_bytes == 0)
        o.max_body_bytes = 65536;
    o.handler = on_request;
    o.identify = identify;
    o.ctx = r;
    if (http_server_start(&r->loop, &o, &r->server, &e) < 0)
        fail_msg("%s", e.text);
    if (r->is_local)
        return;
    snprintf(r->base, sizeof(r->base), "%s://%s:%d", o.cert_pem ? "https" : "http",
        o.host ? o.host : "localhost", http_server_port(r->server));
}

void rig_deinit(struct rig *r)
{
    http_server_stop(r->server);
    rig_destroy_client(r);
    uv_timers_destroy(r->timers);
    uv_loop_finish(&r->loop);
    if (r->is_local) {
        unlink(r->socket);
        rmdir(r->folder);
    }
}

static void on_patience_over(struct timer *t, void *ctx)
{
    (void)t;
    *(bool *)ctx = true;
}

void rig_run_until(struct rig *r, const bool *flag)
{
    bool is_over = false;
    struct timer patience;
    timer_init(&patience, on_patience_over, &is_over);
    timer_start(r->timers, &patience, PATIENCE_MS);
    while (!*flag && !is_over)
        uv_run(&r->loop, UV_RUN_ONCE);
    timer_stop(r->timers, &patience);
    assert_true(*flag);
}

void rig_run_until_count(struct rig *r, const int *count, int at_least)
{
    bool is_over = false;
    struct timer patience;
    timer_init(&patience, on_patience_over, &is_over);
    timer_start(r->timers, &patience, PATIENCE_MS);
    while (*count < at_least && !is_over)
        uv_run(&r->loop, UV_RUN_ONCE);
    timer_stop(r->timers, &patience);
    assert_true(*count >= at_least);
}

static void on_done(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct outcome *o = ctx;
    assert_true(!e != !reply);
    o->n_done++;
    o->is_done = true;
    if (e) {
        o->kind = e->kind;
        STR_COPY(o->text, e->text);
        return;
    }
    o->status = reply->status;
    buf_add(&o->body, buf_str(&reply->body), reply->body.len);
    STR_COPY(o->etag, http_reply_header(reply, "etag"));
}

struct http_call *rig_start(
    struct rig *r, const char *method, const char *path, struct http_request q, struct outcome *o)
{
    *o = (struct outcome){.rig = r};
    char *url = mem_printf("%s%s", r->base, path);
    q.method = method;
    if (!q.url)
        q.url = url;
    if (r->is_local && !q.unix_socket)
        q.unix_socket = r->socket;
    if (q.timeout_ms == 0)
        q.timeout_ms = PATIENCE_MS;
    if (q.max_reply_bytes == 0)
        q.max_reply_bytes = (size_t)4 << 20;
    struct http_call *call = http_start(r->client, &q, on_done, o);
    assert_false(o->is_done);
    free(url);
    return call;
}

void rig_fetch(
    struct rig *r, const char *method, const char *path, struct http_request q, struct outcome *o)
{
    rig_start(r, method, path, q, o);
    rig_run_until(r, &o->is_done);
}

void outcome_deinit(struct outcome *o)
{
    assert_int_equal(o->n_done, 1);
    buf_deinit(&o->body);
}

/* ---- Raw bytes ---- */

struct raw {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    const char *bytes;
    size_t n;
    struct buf *reply;
    bool is_closed;
    char buffer[4096];
};

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
    (void)size;
    struct raw *raw = h->data;
    *buf = uv_buf_init(raw->buffer, sizeof(raw->buffer));
}

static void on_raw_closed(uv_handle_t *h)
{
    ((struct raw *)h->data)->is_closed = true;
}

static void on_raw_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct raw *raw = s->data;
    if (n > 0)
        buf_add(raw->reply, buf->base, (size_t)n);
    else if (n < 0 && !uv_is_closing((uv_handle_t *)s))
        uv_close((uv_handle_t *)s, on_raw_closed);
}

static void on_raw_written(uv_write_t *w, int status)
{
    (void)w, (void)status;
}

static void on_raw_connected(uv_connect_t *c, int status)
{
    struct raw *raw = c->handle->data;
    assert_int_equal(status, 0);
    uv_buf_t b = uv_buf_init((char *)raw->bytes, (unsigned)raw->n);
    uv_read_start(c->handle, on_alloc, on_raw_read);
    uv_write(&raw->write, c->handle, &b, 1, on_raw_written);
}

void rig_raw(struct rig *r, const char *bytes, size_t n, struct buf *ret_reply)
{
    struct raw *raw = mem_alloc(sizeof(*raw));
    struct sockaddr_in addr;
    *raw = (struct raw){.bytes = bytes, .n = n, .reply = ret_reply};
    uv_tcp_init(&r->loop, &raw->tcp);
    raw->tcp.data = raw;
    uv_ip4_addr("127.0.0.1", http_server_port(r->server), &addr);
    uv_tcp_connect(&raw->connect, &raw->tcp, (const struct sockaddr *)&addr, on_raw_connected);
    rig_run_until(r, &raw->is_closed);
    free(raw);
}
