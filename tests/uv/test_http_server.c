/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_listen.h"
#include "tests/uv/http_rig.h"
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void requests_are_answered(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/hello", plain, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_fetch(&r, "POST", "/echo", (struct http_request){.body = "a\0b", .body_len = 3}, &o);
    assert_int_equal(o.body.len, 3);
    assert_memory_equal(o.body.data, "a\0b", 3);
    outcome_deinit(&o);
    rig_fetch(&r, "POST", "/echo", plain, &o);
    assert_body(&o, 200, "");
    outcome_deinit(&o);
    rig_fetch(&r, "PUT", "/echo", (struct http_request){.body = "put", .body_len = 3}, &o);
    assert_body(&o, 200, "put");
    outcome_deinit(&o);
    rig_fetch(&r, "DELETE", "/nothing", plain, &o);
    assert_body(&o, 404, "no such path");
    outcome_deinit(&o);
    rig_fetch(&r, "HEAD", "/hello", plain, &o);
    assert_body(&o, 200, "");
    outcome_deinit(&o);
    rig_fetch(&r, "GET", "/whoami", plain, &o);
    assert_non_null(
        strstr(buf_str(&o.body), "cn=-;error=-;unix=0;uid=4294967295;pid=0;addr=127.0.0.1:"));
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void a_large_reply_is_sent_completely(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/big", plain, &o);
    assert_int_equal(o.body.len, 1 << 20);
    outcome_deinit(&o);
    rig_deinit(&r);
}

/* Several pieces, the last one partial. */
#define FILE_BYTES ((size_t)100001)

static void serve_file(struct rig *r, char content[FILE_BYTES])
{
    rig_init(r);
    rig_serve(r, (struct http_server_options){0});
    r->file_fd = memfd_create("file", MFD_CLOEXEC);
    r->file_bytes = FILE_BYTES;
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (char)(i * 7 + i / 251);
    assert_int_equal(write(r->file_fd, content, FILE_BYTES), FILE_BYTES);
}

static void a_file_is_sent_to_several_clients_at_once(void **state)
{
    (void)state;
    enum { N = 8 };
    struct rig r;
    struct outcome o[N], other;
    char *content = mem_alloc(FILE_BYTES);
    serve_file(&r, content);
    for (int i = 0; i < N; i++)
        rig_start(&r, "GET", "/file", plain, &o[i]);
    rig_fetch(&r, "GET", "/hello", plain, &other);
    assert_body(&other, 200, "hello");
    outcome_deinit(&other);
    for (int i = 0; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].status, 200);
        assert_int_equal(o[i].body.len, FILE_BYTES);
        assert_memory_equal(o[i].body.data, content, FILE_BYTES);
        outcome_deinit(&o[i]);
    }
    rig_deinit(&r);
    close(r.file_fd);
    free(content);
}

static void a_truncated_file_breaks_the_connection(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    char *content = mem_alloc(FILE_BYTES);
    serve_file(&r, content);
    assert_int_equal(ftruncate(r.file_fd, FILE_BYTES / 2), 0);
    rig_fetch(&r, "GET", "/file", plain, &o);
    assert_int_equal(o.kind, ERR_IO);
    outcome_deinit(&o);
    rig_fetch(&r, "GET", "/hello", plain, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_deinit(&r);
    close(r.file_fd);
    free(content);
}

/* Peers that do not read: each reply stays in progress. */
static void files_sent_at_a_time_are_limited(void **state)
{
    (void)state;
    enum { MIB = 64 }; /* more than the sockets' buffers */
    struct rig r;
    struct outcome o;
    int peers[HTTP_FILES_MAX];
    const char *q = "GET /file HTTP/1.1\r\nHost: x\r\n\r\n";
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    r.file_fd = memfd_create("file", MFD_CLOEXEC);
    r.file_bytes = (size_t)MIB << 20;
    assert_int_equal(ftruncate(r.file_fd, (off_t)r.file_bytes), 0);
    for (int i = 0; i < HTTP_FILES_MAX; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET,
            .sin_port = htons((uint16_t)http_server_port(r.server)),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        peers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(peers[i], (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(write(peers[i], q, strlen(q)), strlen(q));
        rig_run_until_count(&r, &r.n_requests, i + 1);
    }
    rig_fetch(&r, "GET", "/file", plain, &o);
    assert_int_equal(o.status, 503);
    outcome_deinit(&o);
    for (int i = 0; i < HTTP_FILES_MAX; i++)
        close(peers[i]);
    do { /* the server notices the ends one by one */
        rig_fetch(&r, "HEAD", "/file", plain, &o);
        outcome_deinit(&o);
    } while (o.status == 503);
    assert_int_equal(o.status, 200);
    rig_deinit(&r);
    close(r.file_fd);
}

static void reply_headers_cannot_be_injected(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    struct buf reply = {0};
    const char *q = "GET /headers HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    rig_raw(&r, q, strlen(q), &reply);
    assert_non_null(strstr(buf_str(&reply), "ETag: \"abc\"\r\n"));
    assert_null(strstr(buf_str(&reply), "Set-Cookie"));
    buf_deinit(&reply);
    rig_deinit(&r);
}

static void errors_are_json_with_their_kind(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/fail", plain, &o);
    assert_body(&o, 409,
        /* err_set makes it one line */
        "{\"error\":{\"kind\":\"conflict\",\"text\":\"there is \\\"one\\\" already?\"}}");
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void a_dropped_exchange_closes_the_connection(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o, parked;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/none", plain, &o);
    assert_int_equal(o.kind, ERR_IO);
    outcome_deinit(&o);
    rig_start(&r, "GET", "/park", plain, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    http_reply_none(r.parked);
    rig_run_until(&r, &parked.is_done);
    assert_int_equal(parked.kind, ERR_IO);
    outcome_deinit(&parked);
    rig_deinit(&r);
}

static void the_target_is_given_raw_and_decoded(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/target%20a/../b?y=%2B&x=1%2B2", plain, &o);
    assert_body(&o, 200, "/target a/../b|/target%20a/../b?y=%2B&x=1%2B2|1+2");
    outcome_deinit(&o);
    rig_fetch(&r, "GET", "/target?x", plain, &o);
    assert_body(&o, 200, "/target|/target?x|");
    outcome_deinit(&o);
    rig_fetch(&r, "GET", "/target%zz", plain, &o);
    assert_int_equal(o.status, 400);
    assert_non_null(strstr(buf_str(&o.body), "\"invalid\""));
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void a_reply_can_be_deferred(void **state)
{
    (void)state;
    struct rig r;
    struct outcome parked, other;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_start(&r, "GET", "/park", plain, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    rig_fetch(&r, "GET", "/hello", plain, &other); /* others are served meanwhile */
    assert_body(&other, 200, "hello");
    outcome_deinit(&other);
    assert_false(parked.is_done);
    http_reply_text(r.parked, 200, "text/plain", "at last");
    rig_run_until(&r, &parked.is_done);
    assert_body(&parked, 200, "at last");
    outcome_deinit(&parked);
    assert_int_equal(r.n_gone, 0);
    rig_deinit(&r);
}

static void a_parked_request_times_out(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_fetch(&r, "GET", "/park-short", plain, &o);
    assert_body(&o, 204, "");
    assert_int_equal(r.n_wait_over, 1);
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void many_parked_requests_are_answered_together(void **state)
{
    (void)state;
    enum { N = 30 };
    struct rig r;
    struct outcome o[N];
    struct http_exchange *parked[N];
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    for (int i = 0; i < N; i++) {
        rig_start(&r, "GET", "/park", plain, &o[i]);
        rig_run_until_count(&r, &r.n_parked, i + 1);
        parked[i] = r.parked;
    }
    for (int i = 0; i < N; i++)
        http_reply_text(parked[i], 200, "text/plain", "go");
    for (int i = 0; i < N; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_body(&o[i], 200, "go");
        outcome_deinit(&o[i]);
    }
    rig_deinit(&r);
}

static void stopping_answers_every_parked_request(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o[3];
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    for (int i = 0; i < 3; i++)
        rig_start(&r, "GET", i < 2 ? "/park" : "/park-default", plain, &o[i]);
    rig_run_until_count(&r, &r.n_parked, 3);
    http_server_stop(r.server);
    r.server = NULL;
    assert_int_equal(r.n_gone, 2);
    for (int i = 0; i < 3; i++) {
        rig_run_until(&r, &o[i].is_done);
        assert_int_equal(o[i].status, 503);
        assert_non_null(strstr(buf_str(&o[i].body), "\"unavailable\""));
        outcome_deinit(&o[i]);
    }
    rig_deinit(&r);
}

static void a_handler_may_stop_its_server(void **state)
{
    (void)state;
    struct rig r;
    struct outcome parked, o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    rig_start(&r, "GET", "/park", plain, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    rig_fetch(&r, "POST", "/stop", plain, &o);
    assert_body(&o, 200, "stopping");
    outcome_deinit(&o);
    rig_run_until(&r, &parked.is_done);
    assert_int_equal(parked.status, 503);
    outcome_deinit(&parked);
    rig_deinit(&r);
}

static void a_client_may_disconnect_from_a_parked_request(void **state)
{
    (void)state;
    struct rig r;
    struct outcome parked, o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    struct http_call *call = rig_start(&r, "GET", "/park", plain, &parked);
    rig_run_until_count(&r, &r.n_parked, 1);
    assert_false(http_exchange_peer_left(r.parked));
    http_cancel(r.client, call);
    rig_run_until(&r, &parked.is_done);
    assert_int_equal(parked.kind, ERR_CANCELLED);
    assert_true(http_exchange_peer_left(r.parked));
    outcome_deinit(&parked);
    http_reply_text(r.parked, 200, "text/plain", "too late");
    rig_fetch(&r, "GET", "/hello", plain, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    struct rig r;
    struct buf reply = {0};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    const char *q = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirst"
                    "GET /park-short HTTP/1.1\r\nHost: x\r\n\r\n"
                    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nthird"
                    "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    rig_raw(&r, q, strlen(q), &reply);
    const char *text = buf_str(&reply);
    assert_int_equal(count(text, "HTTP/1.1 "), 4);
    const char *first = strstr(text, "first"), *second = strstr(text, " 204 "),
               *third = strstr(text, "third"), *last = strstr(text, "hello");
    assert_true(first && second && third && last);
    assert_true(first < second && second < third && third < last);
    buf_deinit(&reply);
    rig_deinit(&r);
}

/* Each is sent on a separate connection; the server must refuse it or close, and serve the next. */
static void malformed_requests_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\r\n\r\nGET\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /hello HTTP/1.1\r\nConnection: close\r\n\r\n", /* no Host */
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1 2\r\n\r\nab",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
        "chunked\r\n\r\nffffffffffffffffffff\r\n",
        "GET /a\x01\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    };
    struct rig r;
    struct outcome o;
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.idle_timeout_ms = 1000});
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf reply = {0};
        rig_raw(&r, bad[i], strlen(bad[i]), &reply);
        if (strstr(buf_str(&reply), " 200 "))
            fail_msg("accepted: %s", bad[i]);
        buf_deinit(&reply);
    }
    assert_int_equal(r.n_requests, 0);
    rig_fetch(&r, "GET", "/hello", plain, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_deinit(&r);
}

static void oversized_headers_are_refused(void **state)
{
    (void)state;
    struct rig r;
    struct buf q = {0}, reply = {0};
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    buf_adds(&q, "GET /hello HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 1000; i++)
        buf_printf(&q, "X-Header-%d: %0100d\r\n", i, i);
    buf_adds(&q, "\r\n");
    rig_raw(&r, q.data, q.len, &reply);
    assert_null(strstr(buf_str(&reply), " 200 "));
    assert_int_equal(r.n_requests, 0);
    buf_deinit(&q);
    buf_deinit(&reply);
    rig_deinit(&r);
}

/* ---- UNIX sockets ---- */

struct place {
    char dir[32], path[48];
};

static void place_make(struct place *p)
{
    STR_COPY(p->dir, "/tmp/belay-uv-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
}

static void a_unix_socket_gives_the_callers_user(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    struct place p;
    struct stat st;
    char want[128];
    place_make(&p);
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.unix_path = p.path, .unix_mode = 0600});
    assert_int_equal(stat(p.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    rig_fetch(&r, "GET", "/whoami", (struct http_request){.unix_socket = p.path}, &o);
    snprintf(want, sizeof(want), "cn=-;error=-;unix=1;uid=%ld;pid=%ld;addr=unix", (long)getuid(),
        (long)getpid());
    assert_body(&o, 200, want);
    outcome_deinit(&o);
    http_server_stop(r.server);
    r.server = NULL;
    assert_int_equal(stat(p.path, &st), -1);
    rig_fetch(&r, "GET", "/whoami", (struct http_request){.unix_socket = p.path}, &o);
    assert_int_equal(o.kind, ERR_UNAVAILABLE);
    outcome_deinit(&o);
    rig_deinit(&r);
    assert_int_equal(rmdir(p.dir), 0);
}

static void a_stale_socket_is_replaced_and_a_successors_is_kept(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    struct place p;
    place_make(&p);
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.unix_path = p.path, .unix_mode = 0600});
    struct http_server *first = r.server;
    rig_serve(&r, (struct http_server_options){.unix_path = p.path, .unix_mode = 0600});
    http_server_stop(first); /* must not remove the second's socket */
    rig_fetch(&r, "GET", "/hello", (struct http_request){.unix_socket = p.path}, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_deinit(&r);
    assert_int_equal(rmdir(p.dir), 0);
}

static void the_longest_socket_path_works(void **state)
{
    (void)state;
    struct rig r;
    struct outcome o;
    struct place p;
    struct err e;
    char path[HTTP_UNIX_PATH_MAX + 2] = {0};
    int fd;
    place_make(&p);
    memset(path, 'x', HTTP_UNIX_PATH_MAX);
    memcpy(path, p.dir, strlen(p.dir));
    path[strlen(p.dir)] = '/';
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){.unix_path = path, .unix_mode = 0600});
    rig_fetch(&r, "GET", "/hello", (struct http_request){.unix_socket = path}, &o);
    assert_body(&o, 200, "hello");
    outcome_deinit(&o);
    rig_deinit(&r);
    path[HTTP_UNIX_PATH_MAX] = 'x';
    assert_int_equal(http_listen_unix(path, 0600, &fd, &e), ERR_CONFIG);
    assert_int_equal(rmdir(p.dir), 0);
}

static void abort_handler(void *ctx, struct http_exchange *x, const struct http_server_request *q)
{
    (void)ctx, (void)x, (void)q;
    abort();
}

static void a_listen_error_has_the_reason(void **state)
{
    (void)state;
    struct rig r;
    struct err e;
    struct place p;
    struct http_server *s;
    char longer[200] = {0};
    place_make(&p);
    memset(longer, 'x', sizeof(longer) - 1);
    rig_init(&r);
    rig_serve(&r, (struct http_server_options){0});
    struct http_server_options o = {
        .host = "127.0.0.1", .port = http_server_port(r.server), .handler = abort_handler};
    assert_int_equal(http_server_start(&r.loop, &o, &s, &e), ERR_IO);
    assert_non_null(strstr(e.text, "Address already in use"));
    o = (struct http_server_options){.host = "no.such.host.invalid", .handler = abort_handler};
    assert_int_equal(http_server_start(&r.loop, &o, &s, &e), ERR_CONFIG);
    o = (struct http_server_options){.unix_path = longer, .handler = abort_handler};
    assert_int_equal(http_server_start(&r.loop, &o, &s, &e), ERR_CONFIG);
    o = (struct http_server_options){.unix_path = p.dir, .handler = abort_handler};
    assert_int_equal(http_server_start(&r.loop, &o, &s, &e), ERR_CONFLICT);
    o = (struct http_server_options){
        .host = "127.0.0.1", .cert_pem = "no PEM", .key_pem = "SECRET", .handler = abort_handler};
    assert_int_equal(http_server_start(&r.loop, &o, &s, &e), ERR_CONFIG);
    assert_null(strstr(e.text, "SECRET"));
    rig_deinit(&r);
    assert_int_equal(rmdir(p.dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(a_large_reply_is_sent_completely),
        cmocka_unit_test(a_file_is_sent_to_several_clients_at_once),
        cmocka_unit_test(a_truncated_file_breaks_the_connection),
        cmocka_unit_test(files_sent_at_a_time_are_limited),
        cmocka_unit_test(reply_headers_cannot_be_injected),
        cmocka_unit_test(errors_are_json_with_their_kind),
        cmocka_unit_test(a_dropped_exchange_closes_the_connection),
        cmocka_unit_test(the_target_is_given_raw_and_decoded),
        cmocka_unit_test(a_reply_can_be_deferred),
        cmocka_unit_test(a_parked_request_times_out),
        cmocka_unit_test(many_parked_requests_are_answered_together),
        cmocka_unit_test(stopping_answers_every_parked_request),
        cmocka_unit_test(a_handler_may_stop_its_server),
        cmocka_unit_test(a_client_may_disconnect_from_a_parked_request),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(oversized_headers_are_refused),
        cmocka_unit_test(a_unix_socket_gives_the_callers_user),
        cmocka_unit_test(a_stale_socket_is_replaced_and_a_successors_is_kept),
        cmocka_unit_test(the_longest_socket_path_works),
        cmocka_unit_test(a_listen_error_has_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
