/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking HTTP, called on threads of uv's pool, with the rig's server on the loop.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/net/http_blocking.h"
#include "base/str.h"
#include "tests/uv/certs.h"
#include "tests/uv/rig.h"
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Consecutive requests of one thread. */
struct asker {
    struct http_pool *pool;
    const char *base;
    const char *method, *paths[8]; /* NULL-terminated */
    const void *body;
    size_t body_len, max_reply_bytes;
    int64_t timeout_ms;
    const atomic_int *cancel;
    /* of the last one: */
    int rc;
    struct err e;
    struct http_reply reply;
    bool is_done;
};

static void on_thread(void *ctx)
{
    struct asker *a = ctx;
    for (size_t i = 0; a->paths[i]; i++) {
        char *url = mem_printf("%s%s", a->base, a->paths[i]);
        const struct http_request r = {.method = a->method ? a->method : "GET",
            .url = url,
            .body = a->body,
            .body_len = a->body_len,
            .timeout_ms = a->timeout_ms > 0 ? a->timeout_ms : 20000,
            .max_reply_bytes = a->max_reply_bytes > 0 ? a->max_reply_bytes : (size_t)16 << 20};
        http_reply_deinit(&a->reply);
        a->e = (struct err){0};
        a->rc = http_blocking_run(a->pool, &r, a->cancel, &a->reply, &a->e);
        assert_int_equal(a->rc, a->e.kind);
        free(url);
    }
}

static void on_asked(void *ctx)
{
    ((struct asker *)ctx)->is_done = true;
}

struct pool_rig {
    struct rig rig;
    struct http_pool *pool;
};

static void pool_rig_init(struct pool_rig *w)
{
    rig_init(&w->rig);
    rig_serve(&w->rig, (struct http_server_options){.max_body_bytes = (size_t)8 << 20});
    w->pool = http_pool_create();
}

static void pool_rig_deinit(struct pool_rig *w)
{
    http_pool_destroy(w->pool);
    rig_deinit(&w->rig);
}

static void ask(struct pool_rig *w, struct asker *a)
{
    a->pool = w->pool;
    a->base = w->rig.base;
    uv_run_work(&w->rig.loop, on_thread, on_asked, a);
    rig_run_until(&w->rig, &a->is_done);
}

static void large_bodies_are_sent_and_received(void **state)
{
    (void)state;
    struct pool_rig w;
    size_t n = (size_t)5 << 20;
    unsigned char *p = mem_alloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i * 2654435761u >> 24);
    pool_rig_init(&w);
    struct asker a = {.method = "PUT", .paths = {"/echo", "/echo"}, .body = p, .body_len = n};
    ask(&w, &a);
    assert_int_equal(a.rc, 0);
    assert_int_equal(a.reply.status, 200);
    assert_int_equal(a.reply.body.len, n);
    assert_memory_equal(a.reply.body.data, p, n);
    http_reply_deinit(&a.reply);
    pool_rig_deinit(&w);
    free(p);
}

static void concurrent_calls_of_threads_succeed(void **state)
{
    (void)state;
    enum { N = 4 };
    struct pool_rig w;
    struct asker a[N];
    pool_rig_init(&w);
    for (int i = 0; i < N; i++) {
        a[i] = (struct asker){.pool = w.pool,
            .base = w.rig.base,
            .paths = {"/hello", "/big", "/headers", "/missing", "/big", "/hello"}};
        uv_run_work(&w.rig.loop, on_thread, on_asked, &a[i]);
    }
    for (int i = 0; i < N; i++) {
        rig_run_until(&w.rig, &a[i].is_done);
        assert_int_equal(a[i].rc, 0);
        assert_string_equal(buf_str(&a[i].reply.body), "hello");
        http_reply_deinit(&a[i].reply);
    }
    assert_int_equal(w.rig.n_requests, N * 6);
    pool_rig_deinit(&w);
}

/* curl alone would send it again, but a caller that creates something must be told. */
static void a_request_is_sent_once_though_its_connection_was_lost(void **state)
{
    (void)state;
    struct pool_rig w;
    pool_rig_init(&w);
    struct asker a = {.method = "PUT", .paths = {"/hello", "/none"}, .body = "x", .body_len = 1};
    ask(&w, &a);
    assert_int_equal(a.rc, ERR_IO);
    assert_non_null(strstr(a.e.text, "/none"));
    assert_int_equal(w.rig.n_requests, 2);
    http_reply_deinit(&a.reply);
    a = (struct asker){.paths = {"/hello"}};
    ask(&w, &a);
    assert_int_equal(a.rc, 0);
    http_reply_deinit(&a.reply);
    pool_rig_deinit(&w);
}

/* /file sends the announced length, and the file is shorter. */
static void a_truncated_reply_keeps_the_received_part(void **state)
{
    (void)state;
    struct pool_rig w;
    FILE *f = tmpfile();
    pool_rig_init(&w);
    fputs("0123456789", f);
    fflush(f);
    w.rig.file_fd = fileno(f);
    w.rig.file_bytes = 1000;
    struct asker a = {.paths = {"/file"}};
    ask(&w, &a);
    assert_int_equal(a.rc, ERR_IO);
    assert_int_equal(a.reply.status, 200);
    assert_string_equal(buf_str(&a.reply.body), "0123456789");
    assert_string_equal(http_reply_header(&a.reply, "content-length"), "1000");
    http_reply_deinit(&a.reply);
    fclose(f);
    pool_rig_deinit(&w);
}

/* Answers one request with part of a reply. */
static void *answer_in_part(void *ctx)
{
    const char part[] = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-";
    char request[4096];
    int listener = *(int *)ctx, fd = accept(listener, NULL, NULL);
    if (recv(fd, request, sizeof(request), 0) > 0 &&
        send(fd, part, sizeof(part) - 1, MSG_NOSIGNAL) < 0)
        abort();
    close(fd);
    return NULL;
}

static void a_reply_cut_in_its_head_is_an_error(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_in_part, &listener), 0);
    char *url = mem_printf("http://127.0.0.1:%d/", ntohs(at.sin_port));
    struct http_pool *pool = http_pool_create();
    const struct http_request r = {
        .method = "GET", .url = url, .timeout_ms = 20000, .max_reply_bytes = 100};
    struct http_reply reply;
    struct err e;
    assert_int_equal(http_blocking_run(pool, &r, NULL, &reply, &e), ERR_IO);
    assert_non_null(strstr(e.text, "head"));
    http_reply_deinit(&reply);
    http_pool_destroy(pool);
    pthread_join(thread, NULL);
    close(listener);
    free(url);
}

static void a_reply_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct pool_rig w;
    pool_rig_init(&w);
    struct asker a = {.paths = {"/big"}, .max_reply_bytes = 1000};
    ask(&w, &a);
    assert_int_equal(a.rc, ERR_INVALID);
    http_reply_deinit(&a.reply);
    pool_rig_deinit(&w);
}

static void a_deadline_ends_the_call(void **state)
{
    (void)state;
    struct pool_rig w;
    pool_rig_init(&w);
    struct asker a = {.paths = {"/park"}, .timeout_ms = 50};
    ask(&w, &a);
    assert_int_equal(a.rc, ERR_TIMEOUT);
    assert_int_equal(a.reply.status, 0);
    http_reply_deinit(&a.reply);
    pool_rig_deinit(&w);
}

static void cancel_ends_the_call(void **state)
{
    (void)state;
    struct pool_rig w;
    atomic_int cancel = 0;
    pool_rig_init(&w);
    struct asker a = {.pool = w.pool, .base = w.rig.base, .paths = {"/park"}, .cancel = &cancel};
    uv_run_work(&w.rig.loop, on_thread, on_asked, &a);
    rig_run_until_count(&w.rig, &w.rig.n_parked, 1);
    atomic_store(&cancel, 1);
    rig_run_until(&w.rig, &a.is_done);
    assert_int_equal(a.rc, ERR_CANCELLED);
    http_reply_deinit(&a.reply);
    pool_rig_deinit(&w);
}

/* The system's CAs do not include ours. */
static void ca_certificates_of_the_environment_are_trusted(void **state)
{
    (void)state;
    struct pool_rig w = {0};
    struct cert ca = cert_make(&(struct cert_options){.cn = "ca", .is_ca = true});
    struct cert server =
        cert_make(&(struct cert_options){.cn = "s", .san = "IP:127.0.0.1", .issuer = &ca});
    char path[] = "/tmp/belay-ca-XXXXXX";
    struct err e;
    close(mkstemp(path));
    assert_int_equal(fs_write_atomic(path, ca.cert_pem, strlen(ca.cert_pem), 0600, &e), 0);
    rig_init(&w.rig);
    rig_serve(&w.rig,
        (struct http_server_options){.cert_pem = server.cert_pem, .key_pem = server.key_pem});
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            setenv("SSL_CERT_FILE", path, 1);
        w.pool = http_pool_create();
        struct asker a = {.paths = {"/hello"}};
        ask(&w, &a);
        assert_int_equal(a.rc, i == 1 ? 0 : ERR_DENIED);
        http_reply_deinit(&a.reply);
        http_pool_destroy(w.pool);
    }
    unsetenv("SSL_CERT_FILE");
    unlink(path);
    rig_deinit(&w.rig);
    cert_deinit(&server);
    cert_deinit(&ca);
}

static void a_malformed_request_is_refused(void **state)
{
    (void)state;
    struct http_pool *p = http_pool_create();
    struct http_reply reply;
    struct err e;
    const struct http_request r = {
        .method = "GET", .url = "ftp://127.0.0.1/", .timeout_ms = 1000, .max_reply_bytes = 1};
    assert_int_equal(http_blocking_run(p, &r, NULL, &reply, &e), ERR_INVALID);
    http_reply_deinit(&reply);
    http_pool_destroy(p);
    http_pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_bodies_are_sent_and_received),
        cmocka_unit_test(concurrent_calls_of_threads_succeed),
        cmocka_unit_test(a_request_is_sent_once_though_its_connection_was_lost),
        cmocka_unit_test(a_truncated_reply_keeps_the_received_part),
        cmocka_unit_test(a_reply_cut_in_its_head_is_an_error),
        cmocka_unit_test(a_reply_over_the_limit_is_refused),
        cmocka_unit_test(a_deadline_ends_the_call),
        cmocka_unit_test(cancel_ends_the_call),
        cmocka_unit_test(ca_certificates_of_the_environment_are_trusted),
        cmocka_unit_test(a_malformed_request_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
