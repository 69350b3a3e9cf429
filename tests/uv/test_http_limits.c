/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of the HTTP server: of one body, one user, one class, and all of them together.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_server_private.h"
#include "tests/uv/http_rig.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_413(struct rig *r, size_t n)
{
    struct outcome o;
    char *body = mem_alloc(n);
    rig_fetch(r, "POST", "/echo", (struct http_request){.body = body, .body_len = n}, &o);
    if (o.kind != ERR_NONE)
        fail_msg("%s", o.text);
    assert_int_equal(o.status, 413);
    json_t *v;
    struct err e;
    assert_int_equal(json_parse(o.body.data, o.body.len, 4096, &v, &e), 0);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(v, "error"), "kind")), "invalid");
    json_decref(v);
    outcome_deinit(&o);
    free(body);
}

static void a_body_over_the_limit_gets_413(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000});
    char body[1000] = {0};
    rig_fetch(&r, "POST", "/echo", (struct http_request){.body = body, .body_len = 1000}, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.body.len, 1000);
    outcome_deinit(&o);
    expect_413(&r, 1001);
    expect_413(&r, 200000);
    expect_413(&r, (size_t)8 << 20);
    assert_int_equal(r.n_requests, 1); /* the handler saw none of the others */
    rig_deinit(&r);
}

static void a_body_far_over_the_limit_is_not_drained(void **state)
{
    (void)state;
    struct rig r;
    struct buf reply = {0};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    const char *q = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n";
    rig_raw(&r, q, strlen(q), &reply);
    assert_non_null(strstr(buf_str(&reply), " 413 "));
    buf_deinit(&reply);
    rig_deinit(&r);
}

static void chunked_bodies_are_read_and_limited(void **state)
{
    (void)state;
    struct rig r;
    struct buf q = {0}, reply = {0};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000});
    const char *head =
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    buf_printf(&q, "%s5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: t\r\n\r\n", head);
    rig_raw(&r, q.data, q.len, &reply);
    assert_non_null(strstr(buf_str(&reply), "200 OK"));
    assert_true(str_ends(buf_str(&reply), "\r\n\r\nhello world"));
    buf_clear(&q);
    buf_clear(&reply);
    buf_adds(&q, head);
    for (int i = 0; i < 20; i++)
        buf_printf(&q, "64\r\n%0100d\r\n", i);
    buf_adds(&q, "0\r\n\r\n");
    rig_raw(&r, q.data, q.len, &reply);
    assert_non_null(strstr(buf_str(&reply), " 413 "));
    buf_clear(&reply);
    buf_clear(&q);
    buf_adds(&q, head);
    for (int i = 0; i < 180000; i++) /* 18 MB: answered at the limit, and not read to the end */
        buf_printf(&q, "64\r\n%0100d\r\n", i);
    buf_clear(&reply);
    rig_raw(&r, q.data, q.len, &reply);
    assert_int_equal(count(buf_str(&reply), " 413 "), 1);
    assert_int_equal(r.n_requests, 1);
    buf_deinit(&q);
    buf_deinit(&reply);
    rig_deinit(&r);
}

static int raw_status(struct rig *r, const char *head, size_t n)
{
    struct buf q = {0}, reply = {0};
    buf_printf(&q, "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", head);
    memset(buf_reserve(&q, n), 'x', n);
    buf_commit(&q, n);
    rig_raw(r, q.data, q.len, &reply);
    int status = reply.len > 12 ? atoi(buf_str(&reply) + strlen("HTTP/1.1 ")) : 0;
    if (status == 413)
        assert_non_null(
            strstr(buf_str(&reply), "100 bytes allowed without a valid certificate or token"));
    buf_deinit(&q);
    buf_deinit(&reply);
    return status;
}

static void bodies_of_strangers_have_a_lower_limit(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.stranger_bytes = 100;
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000});
    assert_int_equal(raw_status(&r, "Content-Length: 100\r\n", 100), 200);
    assert_int_equal(raw_status(&r, "Content-Length: 101\r\n", 101), 413);
    /* after the headers */
    assert_int_equal(raw_status(&r, "Content-Length: 100000000\r\n", 0), 413);
    assert_int_equal(raw_status(&r, "X-Known: no\r\nContent-Length: 1000\r\n", 1000), 413);
    assert_int_equal(raw_status(&r, "X-Known: yes\r\nContent-Length: 1000\r\n", 1000), 200);
    assert_int_equal(r.n_requests, 2);
    rig_deinit(&r);
}

/* Connects from 127.0.0.HOST. */
static int connect_from(struct rig *r, uint32_t host)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)http_server_port(r->server)),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       own = {.sin_family = AF_INET,
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static int connect_to(struct rig *r)
{
    return connect_from(r, 1);
}

/* Sends a request except for its last byte; the byte follows later. */
static int begin_body(struct rig *r, const char *head, int n)
{
    char text[1500];
    int fd = connect_to(r);
    int len = snprintf(text, sizeof(text),
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%0*d",
        head, n, n - 1, 7);
    assert_int_equal(write(fd, text, (size_t)len), len);
    return fd;
}

static int end_body(struct rig *r, int fd)
{
    char text[4096] = "";
    assert_int_equal(write(fd, "x", 1), 1);
    while (recv(fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        uv_run(&r->loop, UV_RUN_ONCE);
    close(fd);
    return atoi(text + strlen("HTTP/1.1 "));
}

/* Ensures that the server has read what was sent before: a later request is answered. */
static void settle(struct rig *r)
{
    struct outcome o;
    rig_fetch(r, "GET", "/hello", plain, &o);
    outcome_deinit(&o);
}

#define LIMITS_OF_TEST(strangers)                                                                  \
    {                                                                                              \
        [HTTP_STRANGER] = {.max_bytes = (strangers)},                                              \
        [HTTP_USER] = {.max_bytes = 1600, .max_bytes_each = 600},                                  \
    }

/* Heads count as well: here at most 100 bytes. */
static void all_bodies_together_are_limited(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(
        &r, (struct http_server_options){.max_body_bytes = 1000, .limits = LIMITS_OF_TEST(500)});
    int first = begin_body(&r, "", 200);
    settle(&r);
    int second = begin_body(&r, "", 190);
    settle(&r);
    assert_int_equal(end_body(&r, first), 503); /* the oldest gives way */
    assert_int_equal(end_body(&r, second), 200);
    int gone = begin_body(&r, "", 200); /* everything was given back, also by a disconnect */
    settle(&r);
    close(gone);
    settle(&r);
    assert_int_equal(end_body(&r, begin_body(&r, "", 200)), 200);
    rig_deinit(&r);
}

/* Reads until EOF; returns the status, 0 if there was no reply. */
static int status_of(struct rig *r, int fd)
{
    char text[4096] = "";
    ssize_t n;
    while ((n = recv(fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT)) < 0)
        uv_run(&r->loop, UV_RUN_ONCE);
    close(fd);
    return n > 0 ? atoi(text + strlen("HTTP/1.1 ")) : 0;
}

/* One address holds all places of strangers with half a request each, and keeps connecting. */
static void an_address_with_all_connections_does_not_block_others(void **state)
{
    (void)state;
    enum { PLACES = 16, FLOOD = 3 * PLACES };
    static const char whole[] = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct rig r;
    int flood[FLOOD + 1], n = 0;
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000,
                      .limits = {[HTTP_STRANGER] = {.max_connections = PLACES, .max_bytes = 8000},
                          [HTTP_USER] = {.max_connections = 4, .max_bytes = 8000}}});
    for (; n < PLACES; n++) {
        flood[n] = connect_to(&r);
        assert_int_equal(write(flood[n], whole, 10), 10);
    }
    for (uint32_t host = 2; host < 10; host++) {
        int other = connect_from(&r, host);
        for (int i = 0; i < 4; i++) /* before the other has sent anything */
            flood[n++] = connect_to(&r);
        assert_int_equal(write(other, whole, sizeof(whole) - 1), sizeof(whole) - 1);
        assert_int_equal(status_of(&r, other), 200);
    }
    struct http_server_stats stats;
    http_server_get_stats(r.server, &stats);
    assert_int_equal(stats.refused, 0);
    assert_true(stats.gave_way >= 8);
    for (int i = 0; i < n; i++)
        close(flood[i]);
    rig_deinit(&r);
}

static void a_user_cannot_starve_others(void **state)
{
    (void)state;
    struct rig r;
    int held[8];
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(
        &r, (struct http_server_options){.max_body_bytes = 1000, .limits = LIMITS_OF_TEST(1000)});
    int other = begin_body(&r, "X-Known: yes\r\nX-User: other\r\n", 300);
    int stranger = begin_body(&r, "", 100);
    settle(&r);
    held[0] = begin_body(&r, "X-Known: yes\r\nX-User: greedy\r\n", 300);
    settle(&r);
    held[1] = begin_body(&r, "X-Known: yes\r\nX-User: greedy\r\n", 300); /* over its own limit */
    settle(&r);
    assert_int_equal(end_body(&r, held[1]), 429);
    for (int i = 1; i < 8; i++) {
        char head[64];
        snprintf(head, sizeof(head), "X-Known: yes\r\nX-User: u%d\r\n", i / 2);
        held[i] = begin_body(&r, head, 200);
        settle(&r);
    }
    assert_int_equal(end_body(&r, stranger), 200);
    for (int i = 1; i < 7; i += 2)
        close(held[i]);
    settle(&r);
    int last = begin_body(&r, "X-Known: yes\r\nX-User: last\r\n", 100);
    settle(&r);
    assert_int_equal(end_body(&r, last), 200);
    close(other);
    close(held[0]);
    for (int i = 2; i < 8; i += 2)
        close(held[i]);
    close(held[7]);
    rig_deinit(&r);
}

/* Unread replies fill the sockets and then the share of the requesting user. */
static void unread_replies_count_for_their_user(void **state)
{
    (void)state;
    enum { REQUESTS = 64, TRIES = 1000 };
    struct rig r;
    struct outcome o;
    struct buf q = {0};
    struct http_request greedy = {.headers = {"X-Known: yes", "X-User: greedy"}};
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(
        &r, (struct http_server_options){.limits = {[HTTP_USER] = {.max_bytes_each = 100000}}});
    for (int i = 0; i < REQUESTS; i++)
        buf_adds(&q, "GET /big HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: greedy\r\n\r\n");
    int fd = connect_to(&r);
    assert_int_equal(write(fd, q.data, q.len), q.len);
    int tries = 0;
    do {
        rig_fetch(&r, "GET", "/hello", greedy, &o);
        outcome_deinit(&o);
    } while (o.status == 200 && ++tries < TRIES);
    assert_int_equal(o.status, 429);
    rig_fetch(&r, "GET", "/hello", (struct http_request){.headers = {"X-Known: yes"}}, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    close(fd);
    buf_deinit(&q);
    rig_deinit(&r);
}

/* The status of the reply received on fd. */
static int status_on(struct rig *r, int fd)
{
    char text[16] = "";
    while (
        recv(fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT) < (ssize_t)strlen("HTTP/1.1 200"))
        uv_run(&r->loop, UV_RUN_ONCE);
    return atoi(text + strlen("HTTP/1.1 "));
}

static int ask_for_big(struct rig *r, const char *user)
{
    char text[128];
    int fd = connect_to(r);
    int len = snprintf(text, sizeof(text),
        "GET /big HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: %s\r\n\r\n", user);
    assert_int_equal(write(fd, text, (size_t)len), len);
    return fd;
}

/* Each over a separate connection: 1 MiB, part of which is in the sockets' buffers. */
static void large_replies_of_a_user_are_limited_together(void **state)
{
    (void)state;
    enum { CONNECTIONS = 20, FIT = 3 };
    struct rig r;
    int fds[CONNECTIONS], n_full = 0;
    struct outcome o;
    struct http_server_stats stats;
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(&r, (struct http_server_options){
                      .limits = {[HTTP_USER] = {.max_bytes_each = (FIT << 20) + 8192}}});
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = ask_for_big(&r, "greedy");
        int status = status_on(&r, fds[i]);
        assert_int_equal(status, i < FIT ? 200 : 429);
        n_full += status == 200;
    }
    assert_int_equal(n_full, FIT);
    http_server_get_stats(r.server, &stats);
    assert_int_equal(stats.replies_refused, CONNECTIONS - FIT);
    rig_fetch(
        &r, "GET", "/big", (struct http_request){.headers = {"X-Known: yes", "X-User: other"}}, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.body.len, 1 << 20);
    outcome_deinit(&o);
    rig_fetch(&r, "GET", "/hello",
        (struct http_request){.headers = {"X-Known: yes", "X-User: greedy"}}, &o);
    assert_body(&o, 200, "hello"); /* a small one always has space */
    outcome_deinit(&o);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    settle(&r);
    rig_fetch(&r, "GET", "/big",
        (struct http_request){.headers = {"X-Known: yes", "X-User: greedy"}}, &o);
    assert_int_equal(o.status, 200);
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void one_reply_may_exceed_the_limit_of_its_user_and_class(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    r.stranger_bytes = 200;
    rig_serve(&r, (struct http_server_options){
                      .limits = {[HTTP_USER] = {.max_bytes = 2000, .max_bytes_each = 1000}}});
    rig_fetch(&r, "GET", "/big", (struct http_request){.headers = {"X-Known: yes"}}, &o);
    assert_int_equal(o.status, 200);
    assert_int_equal(o.body.len, 1 << 20);
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void a_parked_request_has_no_body(void **state)
{
    (void)state;
    struct rig r;
    struct outcome parked, o;
    char body[400] = {0};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){
                      .max_body_bytes = 1000, .limits = {[HTTP_USER] = {.max_bytes = 700}}});
    rig_start(&r, "POST", "/park", (struct http_request){.body = body, .body_len = 400}, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    rig_fetch(&r, "POST", "/echo", (struct http_request){.body = body, .body_len = 400}, &o);
    assert_int_equal(o.status, 200);
    outcome_deinit(&o);
    http_reply_text(r.parked, 200, "text/plain", "go");
    rig_run_until(&r, &parked.is_done);
    assert_body(&parked, 200, "go");
    outcome_deinit(&parked);
    rig_deinit(&r);
}

/* One user has many pipelines: the request of another waits for one request of each at a time. */
static void pipelining_does_not_delay_other_clients(void **state)
{
    (void)state;
    enum { PIPELINES = 20, REQUESTS = 60 };
    struct rig r;
    struct buf pipeline = {0};
    int greedy[PIPELINES], other;
    rig_init(&r);
    r.stranger_bytes = 1000;
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000});
    for (int i = 0; i < REQUESTS; i++)
        buf_adds(
            &pipeline, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: greedy\r\n\r\n");
    for (int i = 0; i < PIPELINES; i++) {
        greedy[i] = connect_to(&r);
        assert_int_equal(write(greedy[i], pipeline.data, pipeline.len), pipeline.len);
    }
    other = connect_to(&r);
    static const char one[] =
        "GET /hello HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: other\r\n\r\n";
    assert_int_equal(write(other, one, sizeof(one) - 1), sizeof(one) - 1);
    assert_int_equal(status_of(&r, other), 200);
    assert_in_range(r.n_requests, 2, 5 * PIPELINES);
    rig_run_until_count(&r, &r.n_requests, PIPELINES * REQUESTS + 1); /* all have their turn */
    for (int i = 0; i < PIPELINES; i++)
        close(greedy[i]);
    buf_deinit(&pipeline);
    rig_deinit(&r);
}

/* One connection has many requests in its pipeline: each of them needs a turn of its own. */
static void stopping_answers_parked_requests_despite_pipelining(void **state)
{
    (void)state;
    enum { WAITS = 20, REQUESTS = 60 };
    static const char wait[] =
        "GET /park HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: other\r\n\r\n";
    struct rig r;
    struct buf pipeline = {0};
    int greedy, waits[WAITS];
    rig_init(&r);
    r.stranger_bytes = 1000;
    rig_serve(&r, (struct http_server_options){.max_body_bytes = 1000});
    for (int i = 0; i < REQUESTS; i++)
        buf_printf(&pipeline,
            "GET %s HTTP/1.1\r\nHost: x\r\nX-Known: yes\r\nX-User: greedy\r\n\r\n",
            i == 0 ? "/park" : "/hello");
    greedy = connect_to(&r);
    assert_int_equal(write(greedy, pipeline.data, pipeline.len), pipeline.len);
    for (int i = 0; i < WAITS; i++) {
        waits[i] = connect_to(&r);
        assert_int_equal(write(waits[i], wait, sizeof(wait) - 1), sizeof(wait) - 1);
    }
    rig_run_until_count(&r, &r.n_parked, 1 + WAITS);
    http_server_stop(r.server);
    r.server = NULL;
    assert_int_equal(status_of(&r, greedy), 503);
    for (int i = 0; i < WAITS; i++) {
        assert_int_equal(status_of(&r, waits[i]), 503);
        close(waits[i]);
    }
    close(greedy);
    buf_deinit(&pipeline);
    rig_deinit(&r);
}

/* ---- the time of a body ---- */

#define STEP_MS SECONDS_MS(10)
#define STEP_BYTES (90 << 10) /* more than the minimum per step */

struct slow {
    struct rig r;
    int fd;
    struct http_conn *c;
    int64_t now_ms;
};

/* Opens a connection that has begun a body of n bytes and sent none of it. */
static void slow_begin(struct slow *s, int n)
{
    char head[128];
    rig_init(&s->r);
    rig_serve(&s->r, (struct http_server_options){.max_body_bytes = (size_t)n});
    s->fd = connect_to(&s->r);
    int len = snprintf(
        head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", n);
    assert_int_equal(write(s->fd, head, (size_t)len), len);
    while (list_is_empty(&s->r.server->conns) ||
           LIST_ENTRY(list_first(&s->r.server->conns), struct http_conn, link)->phase != CONN_BODY)
        uv_run(&s->r.loop, UV_RUN_ONCE);
    s->c = LIST_ENTRY(list_first(&s->r.server->conns), struct http_conn, link);
    s->now_ms = clock_mono(&clock_system).ms;
}

static void slow_send(struct slow *s, size_t n)
{
    uint64_t moved = s->c->n_moved + n;
    char *bytes = mem_alloc(n);
    for (size_t at = 0; at < n || s->c->n_moved < moved; uv_run(&s->r.loop, UV_RUN_NOWAIT)) {
        ssize_t done = at < n ? send(s->fd, bytes + at, n - at, MSG_DONTWAIT) : 0;
        at += done > 0 ? (size_t)done : 0;
    }
    free(bytes);
}

/* Returns the server's reaction after `ms`: a status, or 0 if it still waits. */
static int slow_later(struct slow *s, int64_t ms)
{
    char text[64] = "";
    s->now_ms += ms;
    http_conn_check_deadline(s->c, s->now_ms);
    if (s->c->phase == CONN_BODY)
        return 0;
    while (recv(s->fd, text, sizeof(text) - 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        uv_run(&s->r.loop, UV_RUN_ONCE);
    return atoi(text + strlen("HTTP/1.1 "));
}

static void slow_end(struct slow *s)
{
    close(s->fd);
    rig_deinit(&s->r);
}

static void a_stalled_body_times_out(void **state)
{
    (void)state;
    struct slow s;
    slow_begin(&s, 10 * STEP_BYTES);
    slow_send(&s, STEP_BYTES);
    assert_int_equal(slow_later(&s, STEP_MS), 0);
    slow_send(&s, 1000);
    assert_int_equal(slow_later(&s, STEP_MS - 1), 0);
    assert_int_equal(slow_later(&s, 1), 408);
    slow_end(&s);
}

static void a_slow_body_times_out(void **state)
{
    (void)state;
    struct slow s;
    slow_begin(&s, 100 * STEP_BYTES);
    for (int i = 1; i < 30; i++) {
        slow_send(&s, STEP_BYTES);
        assert_int_equal(slow_later(&s, STEP_MS), 0);
    }
    slow_send(&s, STEP_BYTES);
    assert_int_equal(slow_later(&s, STEP_MS), 408); /* after five minutes */
    slow_end(&s);
}

/* ---- the time of a head ---- */

#define HEAD_MS SECONDS_MS(20)

static struct http_conn *only_conn(struct rig *r)
{
    while (list_is_empty(&r->server->conns))
        uv_run(&r->loop, UV_RUN_ONCE);
    return LIST_ENTRY(list_first(&r->server->conns), struct http_conn, link);
}

static void scan_after(struct rig *r, const struct http_conn *c, int64_t ms)
{
    r->server->scan_due_ms = c->began_ms + ms;
    http_server_scan(r->server, c->began_ms + ms);
}

static void a_connection_without_a_request_is_told_so(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    int fd = connect_to(&r);
    struct http_conn *c = only_conn(&r);
    http_conn_run(c);
    scan_after(&r, c, HEAD_MS - 1);
    assert_int_equal(c->phase, CONN_HEAD);
    scan_after(&r, c, HEAD_MS);
    assert_int_equal(status_of(&r, fd), 408);
    rig_deinit(&r);
}

/* belayd had no time for it, whether the loop was held up or had other connections to serve. */
static void a_request_that_was_not_read_in_time_is_answered(void **state)
{
    (void)state;
    static const char get[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig r;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    for (int is_late = 0; is_late < 2; is_late++) {
        int fd = connect_to(&r);
        struct http_conn *c = only_conn(&r);
        assert_int_equal(write(fd, get, sizeof(get) - 1), sizeof(get) - 1);
        if (is_late)
            http_server_scan(r.server, r.server->scan_due_ms + 10 * HEAD_MS);
        else
            scan_after(&r, c, HEAD_MS);
        assert_int_equal(status_of(&r, fd), 200);
        while (!list_is_empty(&r.server->conns))
            uv_run(&r.loop, UV_RUN_ONCE);
    }
    rig_deinit(&r);
}

static void a_slow_head_is_excused_once(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    int fd = connect_to(&r);
    struct http_conn *c = only_conn(&r);
    http_conn_run(c);
    assert_int_equal(write(fd, "GE", 2), 2);
    scan_after(&r, c, HEAD_MS);
    while (c->in.len == 0)
        uv_run(&r.loop, UV_RUN_ONCE);
    assert_int_equal(write(fd, "T /", 3), 3);
    scan_after(&r, c, HEAD_MS);
    assert_int_equal(status_of(&r, fd), 408);
    rig_deinit(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_over_the_limit_gets_413),
        cmocka_unit_test(a_body_far_over_the_limit_is_not_drained),
        cmocka_unit_test(chunked_bodies_are_read_and_limited),
        cmocka_unit_test(bodies_of_strangers_have_a_lower_limit),
        cmocka_unit_test(all_bodies_together_are_limited),
        cmocka_unit_test(an_address_with_all_connections_does_not_block_others),
        cmocka_unit_test(a_user_cannot_starve_others),
        cmocka_unit_test(unread_replies_count_for_their_user),
        cmocka_unit_test(large_replies_of_a_user_are_limited_together),
        cmocka_unit_test(one_reply_may_exceed_the_limit_of_its_user_and_class),
        cmocka_unit_test(a_parked_request_has_no_body),
        cmocka_unit_test(pipelining_does_not_delay_other_clients),
        cmocka_unit_test(stopping_answers_parked_requests_despite_pipelining),
        cmocka_unit_test(a_connection_without_a_request_is_told_so),
        cmocka_unit_test(a_request_that_was_not_read_in_time_is_answered),
        cmocka_unit_test(a_slow_head_is_excused_once),
        cmocka_unit_test(a_stalled_body_times_out),
        cmocka_unit_test(a_slow_body_times_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
