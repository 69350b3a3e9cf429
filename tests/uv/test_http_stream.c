/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of the HTTP server that go on: framing, peers that do not read or disappear, limits, and
 * the server's end.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_server_private.h"
#include "base/uv/http_stream.h"
#include "tests/uv/certs.h"
#include "tests/uv/http_rig.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define GET "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"

/* A connection that the test reads by hand. */
struct peer {
    int fd;
    struct buf got;
};

static void peer_open(struct rig *r, struct peer *p, int receive_bytes, const char *request)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_server_port(r->server)),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    *p = (struct peer){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (receive_bytes > 0)
        setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    assert_int_equal(connect(p->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    size_t n = strlen(request);
    assert_int_equal(send(p->fd, request, n, MSG_NOSIGNAL), (ssize_t)n);
    rig_run_until_count(r, &r->n_streams, r->n_streams + 1);
}

static void peer_close(struct peer *p)
{
    close(p->fd);
    buf_deinit(&p->got);
}

/* Takes what has come. False at the end of the connection. */
static bool peer_take(struct peer *p)
{
    ssize_t n = recv(p->fd, buf_reserve(&p->got, 65536), 65536, MSG_DONTWAIT);
    if (n > 0)
        buf_commit(&p->got, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static void on_tick(struct timer *t, void *ctx)
{
    (void)t;
    *(bool *)ctx = true;
}

/* One or more iterations of the loop, at most a few milliseconds. */
static void turn(struct rig *r)
{
    bool is_over = false;
    struct timer t;
    timer_init(&t, on_tick, &is_over);
    timer_start(r->timers, &t, 1);
    uv_run(&r->loop, UV_RUN_ONCE);
    timer_stop(r->timers, &t);
}

static int64_t deadline_of(const struct rig *r)
{
    return clock_mono(r->timers->clock).ms + 60000;
}

static void peer_read_until(struct rig *r, struct peer *p, const char *text)
{
    int64_t deadline_ms = deadline_of(r);
    while (!strstr(buf_str(&p->got), text) && clock_mono(r->timers->clock).ms < deadline_ms) {
        peer_take(p);
        turn(r);
    }
    assert_non_null(strstr(buf_str(&p->got), text));
}

static void peer_read_to_end(struct rig *r, struct peer *p)
{
    int64_t deadline_ms = deadline_of(r);
    bool is_open = true;
    while ((is_open = peer_take(p)) && clock_mono(r->timers->clock).ms < deadline_ms)
        turn(r);
    assert_false(is_open);
}

static void pieces_come_as_they_are_written(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET);
    peer_read_until(&r, &p, "\r\n\r\n");
    assert_non_null(strstr(buf_str(&p.got), "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(buf_str(&p.got), "Content-Type: text/event-stream\r\n"));
    assert_non_null(strstr(buf_str(&p.got), "Transfer-Encoding: chunked\r\n"));
    assert_null(strstr(buf_str(&p.got), "Content-Length"));
    assert_true(http_stream_write(r.stream, "one", 3));
    peer_read_until(&r, &p, "\r\n\r\n3\r\none\r\n");
    assert_true(http_stream_write(r.stream, "two, longer than it", 19));
    peer_read_until(&r, &p, "3\r\none\r\n13\r\ntwo, longer than it\r\n");
    http_stream_end(r.stream, "bye", 3);
    peer_read_until(&r, &p, "3\r\nbye\r\n0\r\n\r\n");
    assert_int_equal(r.n_closed, 0);
    peer_close(&p);
    rig_deinit(&r);
}

static void the_connection_serves_more_requests_afterwards(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET);
    http_stream_end(r.stream, NULL, 0);
    peer_read_until(&r, &p, "\r\n0\r\n\r\n");
    const char *next = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_true(send(p.fd, next, strlen(next), MSG_NOSIGNAL) > 0);
    peer_read_until(&r, &p, "hello");
    peer_close(&p);
    rig_deinit(&r);
}

static void http_1_0_gets_plain_bytes_until_the_close(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_true(http_stream_write(r.stream, "one", 3));
    http_stream_end(r.stream, "two", 3);
    peer_read_to_end(&r, &p);
    assert_true(str_ends(buf_str(&p.got), "\r\n\r\nonetwo"));
    assert_non_null(strstr(buf_str(&p.got), "Connection: close\r\n"));
    assert_null(strstr(buf_str(&p.got), "chunked"));
    peer_close(&p);
    rig_deinit(&r);
}

/* Writes until the stream takes no more; returns the number of bytes taken. */
static size_t write_until_full(struct rig *r, size_t piece)
{
    size_t n = 0, max = (size_t)64 << 20;
    char *p = mem_alloc(piece);
    memset(p, 'x', piece);
    while (r->stream && n < max && http_stream_write(r->stream, p, piece)) {
        n += piece;
        turn(r);
    }
    free(p);
    assert_true(n < max);
    return n;
}

static void a_peer_that_reads_nothing_costs_a_bounded_amount(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 4096, GET);
    size_t n = write_until_full(&r, 4096);
    assert_true(n > 32 << 10);
    assert_non_null(r.stream);
    assert_true(http_stream_waiting(r.stream) <= 64 << 10);
    assert_true(http_stream_waiting(r.stream) > 32 << 10);
    assert_false(http_stream_write(r.stream, "more", 4096));
    assert_int_equal(r.n_closed, 0);
    /* the last words come after all that was taken */
    http_stream_end(r.stream, "too slow", 8);
    peer_read_until(&r, &p, "8\r\ntoo slow\r\n0\r\n\r\n");
    assert_true(p.got.len > n);
    peer_close(&p);
    rig_deinit(&r);
}

static void what_waits_counts_for_its_party_until_it_is_sent(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 4096, GET);
    write_until_full(&r, 4096);
    const struct http_class_use *users = &r.server->admission.classes[HTTP_USER];
    assert_true(users->bytes >= http_stream_waiting(r.stream));
    int64_t deadline_ms = deadline_of(&r);
    while (http_stream_waiting(r.stream) > 0 && clock_mono(r.timers->clock).ms < deadline_ms) {
        peer_take(&p);
        turn(&r);
    }
    assert_int_equal(http_stream_waiting(r.stream), 0);
    assert_true(users->bytes < 1024); /* the head of the request */
    peer_close(&p);
    rig_run_until_count(&r, &r.n_closed, 1);
    assert_int_equal(users->bytes, 0);
    rig_deinit(&r);
}

static void bytes_beyond_the_limit_of_the_party_are_refused(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    char piece[4096] = {0};
    rig_init(&r);
    struct http_server_options o = {0};
    o.limits[HTTP_USER].max_bytes_each = 2048;
    rig_serve(&r, o);
    peer_open(&r, &p, 0, GET);
    assert_false(http_stream_write(r.stream, piece, sizeof(piece)));
    assert_true(http_stream_write(r.stream, piece, 1024));
    peer_close(&p);
    rig_run_until_count(&r, &r.n_closed, 1);
    rig_deinit(&r);
}

static void a_peer_that_leaves_is_noticed_though_nothing_is_written(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET);
    peer_read_until(&r, &p, "\r\n\r\n");
    peer_close(&p);
    rig_run_until_count(&r, &r.n_closed, 1);
    assert_null(r.stream);
    rig_deinit(&r);
}

static void a_peer_that_resets_while_bytes_wait_is_noticed(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    struct linger reset = {.l_onoff = 1};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 4096, GET);
    write_until_full(&r, 4096);
    setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    peer_close(&p);
    rig_run_until_count(&r, &r.n_closed, 1);
    rig_deinit(&r);
}

static void a_peer_that_takes_nothing_for_the_idle_time_is_disconnected(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.idle_timeout_ms = 300});
    peer_open(&r, &p, 4096, GET);
    write_until_full(&r, 4096);
    rig_run_until_count(&r, &r.n_closed, 1);
    struct http_server_stats stats;
    http_server_get_stats(r.server, &stats);
    assert_int_equal(stats.too_slow, 1);
    peer_close(&p);
    rig_deinit(&r);
}

/* The idle time is for bytes that wait, not for a stream without news. */
static void a_quiet_stream_outlives_the_idle_time(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET);
    peer_read_until(&r, &p, "\r\n\r\n");
    int64_t later_ms = clock_mono(r.timers->clock).ms + 3600000;
    r.server->scan_due_ms = later_ms;
    http_server_scan(r.server, later_ms);
    assert_int_equal(r.n_closed, 0);
    assert_true(http_stream_write(r.stream, "late", 4));
    peer_read_until(&r, &p, "4\r\nlate\r\n");
    peer_close(&p);
    rig_run_until_count(&r, &r.n_closed, 1);
    rig_deinit(&r);
}

static void bytes_received_during_a_stream_are_dropped_and_limited(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    char many[32 << 10];
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    http_stream_end(r.stream, "end", 3);
    peer_read_until(&r, &p, "3\r\nend\r\n0\r\n\r\n");
    peer_close(&p);
    peer_open(&r, &p, 0, GET);
    memset(many, 'x', sizeof(many));
    assert_true(send(p.fd, many, sizeof(many), MSG_NOSIGNAL) > 0);
    rig_run_until_count(&r, &r.n_closed, 1);
    peer_close(&p);
    rig_deinit(&r);
}

static void a_stopping_server_ends_its_streams(void **state)
{
    (void)state;
    struct rig r;
    struct peer p;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    peer_open(&r, &p, 0, GET);
    assert_true(http_stream_write(r.stream, "one", 3));
    http_server_stop(r.server);
    r.server = NULL;
    assert_int_equal(r.n_closed, 1);
    peer_read_to_end(&r, &p);
    assert_true(str_ends(buf_str(&p.got), "3\r\none\r\n0\r\n\r\n"));
    assert_int_equal(r.n_closed, 1);
    peer_close(&p);
    rig_deinit(&r);
}

/* A stranger's first request on a full class takes the place of the oldest stream. */
static void a_stream_gives_way_to_a_newcomer(void **state)
{
    (void)state;
    struct rig r;
    struct peer first, second;
    rig_init(&r);
    struct http_server_options o = {0};
    o.limits[HTTP_USER].max_connections_each = 1;
    rig_serve(&r, o);
    peer_open(&r, &first, 0, GET);
    peer_open(&r, &second, 0, GET);
    assert_int_equal(r.n_closed, 1);
    peer_close(&second);
    peer_close(&first);
    rig_deinit(&r);
}

static void streams_work_over_tls(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o = {0};
    struct cert ca = cert_make(&(struct cert_options){.cn = "ca", .is_ca = true});
    struct cert server =
        cert_make(&(struct cert_options){.cn = "s", .san = "DNS:localhost", .issuer = &ca});
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){
                      .host = "localhost", .cert_pem = server.cert_pem, .key_pem = server.key_pem});
    rig_start(&r, "GET", "/stream", (struct http_request){.tls = {.ca_pem = ca.cert_pem}}, &o);
    rig_run_until_count(&r, &r.n_streams, 1);
    for (int i = 0; i < 100; i++) {
        assert_true(http_stream_write(r.stream, "0123456789", 10));
        turn(&r);
    }
    http_stream_end(r.stream, "bye", 3);
    rig_run_until(&r, &o.is_done);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.body.len, 1003);
    assert_true(str_ends(buf_str(&o.body), "0123456789bye"));
    outcome_deinit(&o);
    rig_deinit(&r);
    cert_deinit(&server);
    cert_deinit(&ca);
}

static void streams_work_over_a_unix_socket(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o = {0};
    rig_init_local(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_start(&r, "GET", "/stream", plain, &o);
    rig_run_until_count(&r, &r.n_streams, 1);
    assert_true(http_stream_write(r.stream, "one", 3));
    turn(&r);
    http_stream_end(r.stream, "two", 3);
    rig_run_until(&r, &o.is_done);
    assert_body(&o, 200, "onetwo");
    outcome_deinit(&o);
    rig_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_come_as_they_are_written),
        cmocka_unit_test(the_connection_serves_more_requests_afterwards),
        cmocka_unit_test(http_1_0_gets_plain_bytes_until_the_close),
        cmocka_unit_test(a_peer_that_reads_nothing_costs_a_bounded_amount),
        cmocka_unit_test(what_waits_counts_for_its_party_until_it_is_sent),
        cmocka_unit_test(bytes_beyond_the_limit_of_the_party_are_refused),
        cmocka_unit_test(a_peer_that_leaves_is_noticed_though_nothing_is_written),
        cmocka_unit_test(a_peer_that_resets_while_bytes_wait_is_noticed),
        cmocka_unit_test(a_peer_that_takes_nothing_for_the_idle_time_is_disconnected),
        cmocka_unit_test(a_quiet_stream_outlives_the_idle_time),
        cmocka_unit_test(bytes_received_during_a_stream_are_dropped_and_limited),
        cmocka_unit_test(a_stopping_server_ends_its_streams),
        cmocka_unit_test(a_stream_gives_way_to_a_newcomer),
        cmocka_unit_test(streams_work_over_tls),
        cmocka_unit_test(streams_work_over_a_unix_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
