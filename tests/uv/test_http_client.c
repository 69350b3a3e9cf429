/* SPDX-License-Identifier: Apache-2.0
 *
 *     test_http_client [local]    local: the tests that also apply to the client for UNIX sockets
 */
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_client.h"
#include "tests/uv/rig.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const struct http_request plain = {0};

static void begin(struct rig *r, void **state)
{
    if (*(const bool *)*state)
        rig_init_local(r);
    else
        rig_init(r);
}

/* A server of canned bytes: sends them on each connection once it receives something, then closes.
 * Without bytes it accepts and sends nothing. */
struct canned {
    union uv_any_handle listener;
    const char *bytes;
    size_t n;
    char base[64];
    struct buf heard;
    int n_connections;
    struct list open;
};

struct canned_conn {
    struct link link;
    union uv_any_handle socket;
    uv_write_t write;
    struct canned *server;
    char buffer[4096];
};

static void on_conn_closed(uv_handle_t *h)
{
    struct canned_conn *c = h->data;
    link_remove(&c->link);
    free(c);
}

static void on_conn_written(uv_write_t *w, int status)
{
    (void)status;
    if (!uv_is_closing((uv_handle_t *)w->handle))
        uv_close((uv_handle_t *)w->handle, on_conn_closed);
}

static void on_conn_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
    (void)size;
    struct canned_conn *c = h->data;
    *buf = uv_buf_init(c->buffer, sizeof(c->buffer));
}

static void on_conn_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
    struct canned_conn *c = s->data;
    if (n < 0 && !uv_is_closing((uv_handle_t *)s))
        uv_close((uv_handle_t *)s, on_conn_closed);
    if (n <= 0)
        return;
    buf_add(&c->server->heard, buf->base, (size_t)n);
    if (c->server->bytes && !c->write.handle) {
        uv_buf_t b = uv_buf_init((char *)c->server->bytes, (unsigned)c->server->n);
        uv_write(&c->write, s, &b, 1, on_conn_written);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct canned *s = listener->data;
    assert_int_equal(status, 0);
    struct canned_conn *c = mem_alloc(sizeof(*c));
    c->server = s;
    s->n_connections++;
    if (listener->type == UV_NAMED_PIPE)
        uv_pipe_init(listener->loop, &c->socket.pipe, 0);
    else
        uv_tcp_init(listener->loop, &c->socket.tcp);
    c->socket.handle.data = c;
    list_push_back(&s->open, &c->link);
    uv_accept(listener, &c->socket.stream);
    uv_read_start(&c->socket.stream, on_conn_alloc, on_conn_read);
}

static void canned_bind_tcp(struct rig *r, uv_tcp_t *listener)
{
    struct sockaddr_in addr;
    int len = sizeof(addr);
    uv_tcp_init(&r->loop, listener);
    uv_ip4_addr("127.0.0.1", 0, &addr);
    uv_tcp_bind(listener, (struct sockaddr *)&addr, 0);
    uv_tcp_getsockname(listener, (struct sockaddr *)&addr, &len);
    snprintf(r->base, sizeof(r->base), "http://127.0.0.1:%d", ntohs(addr.sin_port));
}

static void canned_start(struct rig *r, struct canned *s, const char *bytes)
{
    *s = (struct canned){.bytes = bytes, .n = bytes ? strlen(bytes) : 0};
    if (r->is_local) {
        uv_pipe_init(&r->loop, &s->listener.pipe, 0);
        assert_int_equal(uv_pipe_bind(&s->listener.pipe, r->socket), 0);
    } else {
        canned_bind_tcp(r, &s->listener.tcp);
    }
    s->listener.handle.data = s;
    assert_int_equal(uv_listen(&s->listener.stream, 64, on_connection), 0);
}

static void canned_stop(struct canned *s)
{
    uv_loop_t *loop = s->listener.handle.loop;
    uv_close(&s->listener.handle, NULL);
    LIST_FOREACH (&s->open, l) {
        uv_handle_t *h = &LIST_ENTRY(l, struct canned_conn, link)->socket.handle;
        if (!uv_is_closing(h))
            uv_close(h, on_conn_closed);
    }
    uv_run(loop, UV_RUN_NOWAIT);
    buf_deinit(&s->heard);
}

/* A port of this machine without a listener. */
static int dead_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

static void expect_error(struct rig *r, const char *path, struct http_request q, enum err_kind kind)
{
    struct outcome o;
    rig_fetch(r, q.method ? q.method : "GET", path, q, &o);
    if (o.kind != kind)
        fail_msg("expected %s, got %s (%s)", err_kind_name(kind), err_kind_name(o.kind), o.text);
    outcome_deinit(&o);
}

static void a_closed_port_is_unavailable(void **state)
{
    struct rig r;
    struct outcome o;
    begin(&r, state);
    snprintf(r.base, sizeof(r.base), "http://127.0.0.1:%d", dead_port());
    rig_fetch(&r, "GET", "/secret-free?token=hush", plain, &o);
    assert_int_equal(o.kind, ERR_UNAVAILABLE);
    assert_non_null(strstr(o.text, r.base));
    assert_null(strstr(o.text, "hush"));
    outcome_deinit(&o);
    expect_error(
        &r, "/", (struct http_request){.unix_socket = "/nonexistent/socket"}, ERR_UNAVAILABLE);
    rig_deinit(&r);
}

static void a_socket_without_a_server_is_unavailable(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    char far[300];
    begin(&r, state);
    rig_fetch(&r, "GET", "/secret-free?token=hush", plain, &o);
    assert_int_equal(o.kind, ERR_UNAVAILABLE);
    assert_non_null(strstr(o.text, r.socket));
    assert_null(strstr(o.text, "hush"));
    outcome_deinit(&o);
    memset(far, 'x', sizeof(far) - 1);
    far[0] = '/';
    far[sizeof(far) - 1] = '\0';
    expect_error(&r, "/", (struct http_request){.unix_socket = far}, ERR_UNAVAILABLE);
    canned_start(&r, &s, "");
    /* libuv removes the socket it has bound; this is what a kill leaves */
    char *kept = mem_printf("%s.kept", r.socket);
    assert_int_equal(link(r.socket, kept), 0);
    canned_stop(&s);
    expect_error(&r, "/", (struct http_request){.unix_socket = kept}, ERR_UNAVAILABLE);
    unlink(kept);
    free(kept);
    rig_deinit(&r);
}

/* More than the server's queue holds, before it accepts the first. */
static void many_calls_at_once_wait_for_the_server(void **state)
{
    enum { N = 200 };
    struct rig r;
    struct canned s;
    struct outcome o[N];
    begin(&r, state);
    canned_start(&r, &s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    for (int i = 0; i < N; i++)
        rig_start(&r, "GET", "/", plain, &o[i]);
    for (int i = 0; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].status, 200);
        assert_string_equal(buf_str(&o[i].body), "hello");
        outcome_deinit(&o[i]);
    }
    assert_int_equal(s.n_connections, N);
    canned_stop(&s);
    rig_deinit(&r);
}

static void a_full_queue_ends_with_the_deadline(void **state)
{
    struct rig r;
    struct outcome o[3];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    begin(&r, state);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    STR_COPY(at.sun_path, r.socket);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 0), 0); /* on Linux: space for one */
    for (int i = 0; i < 3; i++)
        rig_start(&r, "GET", "/", (struct http_request){.timeout_ms = 50}, &o[i]);
    for (int i = 0; i < 3; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].kind, ERR_TIMEOUT);
        outcome_deinit(&o[i]);
    }
    close(fd);
    rig_deinit(&r);
}

/* Larger than the sockets' buffers in both directions. */
static void large_bodies_are_sent_and_received(void **state)
{
    enum { N = 3 << 20 };
    struct rig r;
    struct outcome o;
    char *body = mem_alloc(N);
    for (int i = 0; i < N; i++)
        body[i] = (char)(i * 31 + i / 977);
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){.max_body_bytes = N});
    rig_fetch(&r, "POST", "/echo", (struct http_request){.body = body, .body_len = N}, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.body.len, N);
    assert_memory_equal(o.body.data, body, N);
    outcome_deinit(&o);
    free(body);
    rig_deinit(&r);
}

/* The server reads part of the body, answers and closes: its answer counts, and no signal kills us.
 */
static void a_reply_before_the_whole_request_is_accepted(void **state)
{
    enum { N = 3 << 20 };
    struct rig r;
    struct canned s;
    struct outcome o;
    char *body = mem_alloc(N);
    begin(&r, state);
    canned_start(&r, &s, "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n");
    rig_fetch(&r, "POST", "/", (struct http_request){.body = body, .body_len = N}, &o);
    assert_int_equal(o.status, 413);
    outcome_deinit(&o);
    free(body);
    canned_stop(&s);
    rig_deinit(&r);
}

static void invalid_urls_and_headers_are_refused(void **state)
{
    static const char *const urls[] = {"https://server/", "ftp://server/", "http://", "", "/",
        "http://user:hush@server/", "http://server/a b", "http://server/a\r\nX: y"};
    struct rig r;
    begin(&r, state);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct outcome o;
        rig_fetch(&r, "GET", "", (struct http_request){.url = urls[i]}, &o);
        assert_int_equal(o.kind, ERR_INVALID);
        assert_null(strstr(o.text, "hush"));
        outcome_deinit(&o);
    }
    char *far = mem_alloc(70000);
    memset(far, 'a', 69999);
    memcpy(far, "http://server/", 14);
    expect_error(&r, "", (struct http_request){.url = far}, ERR_INVALID);
    free(far);
    expect_error(&r, "/", (struct http_request){.headers = {"A: b\r\nEvil: 1"}}, ERR_INVALID);
    expect_error(&r, "/", (struct http_request){.headers = {"no colon"}}, ERR_INVALID);
    rig_deinit(&r);
}

static void a_silent_server_times_out(void **state)
{
    struct rig r;
    struct canned s;
    begin(&r, state);
    canned_start(&r, &s, NULL);
    expect_error(&r, "/", (struct http_request){.timeout_ms = 50}, ERR_TIMEOUT);
    canned_stop(&s);
    rig_deinit(&r);
}

/* The 33rd and later calls have no connection yet; their deadline applies nevertheless. */
static void a_call_that_waits_for_a_connection_times_out(void **state)
{
    enum { N = 40 };
    struct rig r;
    struct canned s;
    struct outcome o[N];
    begin(&r, state);
    canned_start(&r, &s, NULL);
    for (int i = 0; i < N; i++)
        rig_start(&r, "GET", "/", (struct http_request){.timeout_ms = i < 32 ? 20000 : 100}, &o[i]);
    for (int i = 32; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].kind, ERR_TIMEOUT);
    }
    assert_int_equal(s.n_connections, 32);
    rig_destroy_client(&r); /* ends the others */
    for (int i = 0; i < N; i++) {
        assert_int_equal(o[i].kind, i < 32 ? ERR_CANCELLED : ERR_TIMEOUT);
        outcome_deinit(&o[i]);
    }
    canned_stop(&s);
    rig_deinit(&r);
}

static void all_hosts_together_may_have_a_limit(void **state)
{
    enum { N = 8, MOST = 3 };
    struct rig r;
    struct canned s[2];
    struct outcome o[N];
    begin(&r, state);
    uv_http_client_limit(r.client, MOST);
    for (int i = 0; i < N; i++) {
        if (i % (N / 2) == 0)
            canned_start(&r, &s[i / (N / 2)], NULL);
        rig_start(
            &r, "GET", "/", (struct http_request){.timeout_ms = i < MOST ? 20000 : 100}, &o[i]);
    }
    for (int i = MOST; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].kind, ERR_TIMEOUT);
    }
    assert_int_equal(s[0].n_connections + s[1].n_connections, MOST);
    rig_destroy_client(&r); /* ends the others */
    for (int i = 0; i < N; i++)
        outcome_deinit(&o[i]);
    canned_stop(&s[0]);
    canned_stop(&s[1]);
    rig_deinit(&r);
}

/* A kept connection to one host makes space for one to the other. */
static void within_a_limit_all_hosts_are_served_in_turn(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    enum { N = 6 };
    struct rig r;
    struct outcome o[N];
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    uv_http_client_limit(r.client, 1);
    for (int i = 0; i < N; i++) {
        snprintf(r.base, sizeof(r.base), "http://%s:%d", hosts[i % 2], http_server_port(r.server));
        rig_start(&r, "GET", "/hello", plain, &o[i]);
    }
    for (int i = 0; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].status, 200);
        outcome_deinit(&o[i]);
    }
    rig_deinit(&r);
}

static void a_reply_over_the_limit_is_refused(void **state)
{
    struct rig r;
    struct outcome o;
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/hello", (struct http_request){.max_reply_bytes = 5}, &o);
    assert_int_equal(o.status, 200);
    outcome_deinit(&o);
    expect_error(&r, "/hello", (struct http_request){.max_reply_bytes = 4}, ERR_INVALID);
    expect_error(&r, "/big", (struct http_request){.max_reply_bytes = 1000}, ERR_INVALID);
    rig_deinit(&r);
}

static void malformed_replies_are_errors(void **state)
{
    static const struct {
        const char *bytes;
        enum err_kind kind, local_kind;
    } cases[] = {
        {"", ERR_IO, ERR_IO},
        {"hello\r\n\r\n", ERR_INVALID, ERR_INVALID},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", ERR_IO, ERR_IO},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ERR_IO, ERR_INVALID},
        {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", ERR_INVALID, ERR_INVALID},
        {"HTTP/1.1 200 OK\r\nContent-Le", ERR_IO, ERR_IO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig r;
        struct canned s;
        begin(&r, state);
        canned_start(&r, &s, cases[i].bytes);
        expect_error(&r, "/", plain, r.is_local ? cases[i].local_kind : cases[i].kind);
        canned_stop(&s);
        rig_deinit(&r);
    }
}

static void redirects_are_not_followed(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    begin(&r, state);
    canned_start(&r, &s,
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nETag: \"e\"\r\n\r\n");
    rig_fetch(&r, "GET", "/", plain, &o);
    assert_int_equal(o.status, 302);
    assert_string_equal(o.etag, "\"e\"");
    assert_int_equal(s.n_connections, 1);
    outcome_deinit(&o);
    canned_stop(&s);
    rig_deinit(&r);
}

static void excess_headers_are_dropped(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    struct buf b = {0};
    buf_printf(
        &b, "HTTP/1.1 200 OK\r\nX-Long: %09000d\r\nETag: %04096d\r\nContent-Length: 0\r\n", 1, 2);
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "X-%d: y\r\n", i);
    buf_adds(&b, "\r\n");
    begin(&r, state);
    canned_start(&r, &s, buf_str(&b));
    rig_fetch(&r, "GET", "/", plain, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(
        strlen(o.etag), sizeof(o.etag) - 1); /* 4 KB are accepted: some headers contain URLs */
    outcome_deinit(&o);
    canned_stop(&s);
    buf_deinit(&b);
    rig_deinit(&r);
}

static void requests_are_sent_as_given_without_extra_headers(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    begin(&r, state);
    canned_start(&r, &s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    struct http_request q = {.body = "{}", .body_len = 2, .headers = {"X-Empty:", "X-One: 1"}};
    rig_fetch(&r, "PUT", "/a/../%41?q=%2f", q, &o);
    const char *heard = buf_str(&s.heard);
    assert_true(str_starts(heard, "PUT /a/../%41?q=%2f HTTP/1.1\r\n"));
    assert_non_null(strstr(heard, "X-Empty:"));
    assert_non_null(strstr(heard, "X-One: 1\r\n"));
    assert_non_null(strstr(heard, "Content-Length: 2\r\n"));
    assert_null(strstr(heard, "Expect"));
    assert_null(strstr(heard, "Content-Type"));
    assert_true(str_ends(heard, "\r\n\r\n{}"));
    outcome_deinit(&o);
    canned_stop(&s);
    rig_deinit(&r);
}

/* All wiped bytes, concatenated. */
static struct buf wiped;

void __real_explicit_bzero(void *p, size_t n);
void __wrap_explicit_bzero(void *p, size_t n);
void __wrap_explicit_bzero(void *p, size_t n)
{
    static bool adding; /* a buffer that grows wipes what it leaves */
    if (!adding) {
        adding = true;
        buf_add(&wiped, p, n);
        adding = false;
    }
    __real_explicit_bzero(p, n);
}

/* The same with _FORTIFY_SOURCE. */
void __wrap___explicit_bzero_chk(void *p, size_t n, size_t size);
void __wrap___explicit_bzero_chk(void *p, size_t n, size_t size)
{
    assert_true(n <= size);
    __wrap_explicit_bzero(p, n);
}

static bool was_wiped(const char *text)
{
    return memmem(buf_str(&wiped), wiped.len, text, strlen(text)) != NULL;
}

static void buffers_that_may_have_secrets_are_wiped(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    struct http_request q = {.body = "client_secret=hush-body",
        .body_len = strlen("client_secret=hush-body"),
        .headers = {"Authorization: Bearer hush-header"}};
    begin(&r, state);
    canned_start(
        &r, &s, "HTTP/1.1 200 OK\r\nX-Token: hush-reply-header\r\n\r\n{\"token\":\"hush-reply\"}");
    buf_clear(&wiped);
    rig_fetch(&r, "POST", "/token", q, &o);
    assert_int_equal(o.status, 200);
    assert_non_null(strstr(buf_str(&s.heard), "hush-header"));
    assert_non_null(strstr(buf_str(&s.heard), "hush-body"));
    assert_true(was_wiped("Authorization: Bearer hush-header"));
    assert_true(was_wiped("client_secret=hush-body"));
    assert_true(was_wiped("X-Token: hush-reply-header"));
    assert_true(was_wiped("{\"token\":\"hush-reply\"}"));
    outcome_deinit(&o);
    canned_stop(&s);
    rig_deinit(&r);
    buf_deinit(&wiped);
}

/* Its length is unknown, and it arrives in pieces: no part is left behind when the buffer moves. */
static void a_reallocated_reply_is_wiped_in_its_old_buffer(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    struct buf b = {0};
    buf_adds(&b, "HTTP/1.1 200 OK\r\n\r\nhush-first");
    for (int i = 0; i < 100000; i++)
        buf_addc(&b, 'x');
    begin(&r, state);
    canned_start(&r, &s, buf_str(&b));
    buf_clear(&wiped);
    rig_fetch(&r, "GET", "/token", plain, &o);
    assert_int_equal(o.body.len, 100000 + strlen("hush-first"));
    assert_memory_equal(o.body.data, "hush-firstx", 11);
    size_t times = 0;
    const char *from = buf_str(&wiped), *end = from + wiped.len;
    for (const char *at; (at = memmem(from, (size_t)(end - from), "hush-first", 10)); from = at + 1)
        times++;
    assert_true(times >= 2);
    outcome_deinit(&o);
    canned_stop(&s);
    rig_deinit(&r);
    buf_deinit(&b);
    buf_deinit(&wiped);
}

static void a_proxy_is_used_only_if_enabled(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    begin(&r, state);
    canned_start(&r, &s, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    setenv("http_proxy", r.base, 1);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", dead_port());
    expect_error(&r, "", (struct http_request){.url = url}, ERR_UNAVAILABLE);
    rig_fetch(&r, "GET", "", (struct http_request){.url = url, .use_proxy = true}, &o);
    assert_int_equal(o.status, 200);
    assert_true(str_starts(buf_str(&s.heard), "GET http://127.0.0.1:"));
    unsetenv("http_proxy");
    outcome_deinit(&o);
    canned_stop(&s);
    rig_deinit(&r);
}

static void malformed_requests_fail_asynchronously(void **state)
{
    struct rig r;
    struct outcome o;
    begin(&r, state);
    expect_error(&r, "", (struct http_request){.url = "ftp://127.0.0.1/"}, ERR_INVALID);
    expect_error(&r, "", (struct http_request){.url = "http://"}, ERR_INVALID);
    expect_error(&r, "", (struct http_request){.url = ""}, ERR_INVALID);
    snprintf(r.base, sizeof(r.base), "http://127.0.0.1:1");
    expect_error(&r, "/", (struct http_request){.headers = {"A: b\r\nEvil: 1"}}, ERR_INVALID);
    expect_error(&r, "/", (struct http_request){.headers = {"no colon"}}, ERR_INVALID);
    rig_fetch(&r, "GET", "", (struct http_request){.url = "http://user:hush@127.0.0.1/"}, &o);
    assert_int_equal(o.kind, ERR_INVALID);
    assert_null(strstr(o.text, "hush"));
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void cancel_ends_a_call_early(void **state)
{
    struct rig r;
    struct canned s;
    struct outcome o;
    begin(&r, state);
    canned_start(&r, &s, NULL);
    struct http_call *call = rig_start(&r, "GET", "/", plain, &o);
    http_cancel(r.client, call); /* before anything was sent */
    assert_false(o.is_done);
    rig_run_until(&r, &o.is_done);
    assert_int_equal(o.kind, ERR_CANCELLED);
    outcome_deinit(&o);
    call = rig_start(&r, "GET", "/", plain, &o);
    rig_run_until_count(&r, &s.n_connections, 1);
    http_cancel(r.client, call);
    http_cancel(r.client, call); /* a repeat is a no-op */
    rig_run_until(&r, &o.is_done);
    assert_int_equal(o.kind, ERR_CANCELLED);
    outcome_deinit(&o);
    http_cancel(r.client, NULL);
    canned_stop(&s);
    rig_deinit(&r);
}

static void destroying_the_client_ends_all_calls_in_it(void **state)
{
    struct rig r;
    struct outcome o[5];
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    for (int i = 0; i < 5; i++)
        rig_start(&r, "GET", "/park", (struct http_request){0}, &o[i]);
    rig_run_until_count(&r, &r.n_parked, 5);
    rig_destroy_client(&r);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(o[i].kind, ERR_CANCELLED);
        outcome_deinit(&o[i]);
    }
    rig_deinit(&r);
}

static void destroy_in_done(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct outcome *o = ctx;
    (void)e, (void)reply;
    o->n_done++;
    o->is_done = true;
    rig_destroy_client(o->rig);
}

static void the_client_may_be_destroyed_by_a_done_callback(void **state)
{
    struct rig r;
    struct outcome parked, o = {.rig = &r};
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    rig_start(&r, "GET", "/park", plain, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    char *url = mem_printf("%s/hello", r.base);
    struct http_request q = {.method = "GET",
        .url = url,
        .timeout_ms = 5000,
        .max_reply_bytes = 100,
        .unix_socket = r.is_local ? r.socket : NULL};
    http_start(r.client, &q, destroy_in_done, &o);
    rig_run_until(&r, &o.is_done);
    assert_int_equal(parked.kind, ERR_CANCELLED);
    outcome_deinit(&parked);
    free(url);
    rig_deinit(&r);
}

static void connections_are_kept_and_reused(void **state)
{
    struct rig r;
    struct outcome a, b;
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/whoami", plain, &a);
    rig_fetch(&r, "GET", "/whoami", plain, &b);
    assert_string_equal(buf_str(&a.body), buf_str(&b.body)); /* the same client port */
    outcome_deinit(&a);
    outcome_deinit(&b);
    rig_deinit(&r);
}

/* A started task must not inherit connections. (curl's own socketpair is left to proc_group_enter.)
 */
static void sockets_are_closed_on_exec(void **state)
{
    struct rig r;
    struct outcome o;
    begin(&r, state);
    rig_serve(&r, (struct http_server_options){0});
    rig_start(&r, "GET", "/park", plain, &o);
    rig_run_until_count(&r, &r.n_parked, 1);
    int n = 0;
    for (int fd = 3; fd < 256; fd++) {
        int domain;
        socklen_t len = sizeof(domain);
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 ||
            domain != (r.is_local ? AF_UNIX : AF_INET))
            continue;
        n++;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            fail_msg("socket %d would be inherited", fd);
    }
    assert_true(n >= 3); /* listener and both ends */
    http_reply_text(r.parked, 200, "text/plain", "");
    rig_run_until(&r, &o.is_done);
    outcome_deinit(&o);
    rig_deinit(&r);
}

#define BOTH(state)                                                                                \
    cmocka_unit_test_prestate(a_silent_server_times_out, &state),                                  \
        cmocka_unit_test_prestate(a_reply_over_the_limit_is_refused, &state),                      \
        cmocka_unit_test_prestate(malformed_replies_are_errors, &state),                           \
        cmocka_unit_test_prestate(redirects_are_not_followed, &state),                             \
        cmocka_unit_test_prestate(excess_headers_are_dropped, &state),                             \
        cmocka_unit_test_prestate(requests_are_sent_as_given_without_extra_headers, &state),       \
        cmocka_unit_test_prestate(buffers_that_may_have_secrets_are_wiped, &state),                \
        cmocka_unit_test_prestate(a_reallocated_reply_is_wiped_in_its_old_buffer, &state),         \
        cmocka_unit_test_prestate(cancel_ends_a_call_early, &state),                               \
        cmocka_unit_test_prestate(destroying_the_client_ends_all_calls_in_it, &state),             \
        cmocka_unit_test_prestate(the_client_may_be_destroyed_by_a_done_callback, &state),         \
        cmocka_unit_test_prestate(sockets_are_closed_on_exec, &state)

int main(int argc, char **argv)
{
    static bool curl = false, local = true;
    const struct CMUnitTest curl_tests[] = {
        BOTH(curl),
        cmocka_unit_test_prestate(a_closed_port_is_unavailable, &curl),
        cmocka_unit_test_prestate(a_call_that_waits_for_a_connection_times_out, &curl),
        cmocka_unit_test_prestate(all_hosts_together_may_have_a_limit, &curl),
        cmocka_unit_test_prestate(within_a_limit_all_hosts_are_served_in_turn, &curl),
        cmocka_unit_test_prestate(a_proxy_is_used_only_if_enabled, &curl),
        cmocka_unit_test_prestate(malformed_requests_fail_asynchronously, &curl),
        cmocka_unit_test_prestate(connections_are_kept_and_reused, &curl),
    };
    const struct CMUnitTest local_tests[] = {
        BOTH(local),
        cmocka_unit_test_prestate(a_socket_without_a_server_is_unavailable, &local),
        cmocka_unit_test_prestate(many_calls_at_once_wait_for_the_server, &local),
        cmocka_unit_test_prestate(a_full_queue_ends_with_the_deadline, &local),
        cmocka_unit_test_prestate(large_bodies_are_sent_and_received, &local),
        cmocka_unit_test_prestate(a_reply_before_the_whole_request_is_accepted, &local),
        cmocka_unit_test_prestate(invalid_urls_and_headers_are_refused, &local),
    };
    if (argc > 1 && str_eq(argv[1], "local"))
        return cmocka_run_group_tests(local_tests, NULL, NULL);
    return cmocka_run_group_tests(curl_tests, NULL, NULL);
}
