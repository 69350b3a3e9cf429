/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's TLS over a socket pair, with an OpenSSL client. Neither side blocks, so whatever one
 * waits for, the other is called to send.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/tls.h"
#include "tests/uv/certs.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* after the four above */
#include <cmocka.h>

#define TURNS 100000 /* more than any exchange here needs */

struct pair {
    struct cert cert;
    struct tls_server *server;
    struct tls_conn *conn;
    SSL_CTX *ctx;
    SSL *client;
    int fds[2]; /* the server's, the client's */
};

static void pair_connect(struct pair *p)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fds), 0);
    p->conn = tls_conn_create(p->server, p->fds[0]);
    p->client = SSL_new(p->ctx);
    SSL_set_fd(p->client, p->fds[1]);
    SSL_set_connect_state(p->client);
}

static void pair_disconnect(struct pair *p)
{
    tls_conn_destroy(p->conn);
    SSL_free(p->client);
    close(p->fds[0]);
    close(p->fds[1]);
}

/* version 0 = newest. */
static void pair_init(struct pair *p, int version)
{
    struct err e;
    *p = (struct pair){.cert = cert_make(&(struct cert_options){.cn = "belayd"})};
    if (tls_server_create(p->cert.cert_pem, p->cert.key_pem, NULL, &p->server, &e) != 0)
        fail_msg("%s", e.text);
    p->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(p->ctx, 0); /* it offers what the server must refuse */
    SSL_CTX_set_session_cache_mode(p->ctx, SSL_SESS_CACHE_CLIENT);
    if (version) {
        SSL_CTX_set_min_proto_version(p->ctx, version);
        SSL_CTX_set_max_proto_version(p->ctx, version);
    }
    pair_connect(p);
}

static void pair_deinit(struct pair *p)
{
    pair_disconnect(p);
    SSL_CTX_free(p->ctx);
    tls_server_destroy(p->server);
    cert_deinit(&p->cert);
}

/* The outcome of the server's handshake. */
static int shake_hands(struct pair *p)
{
    bool is_done = false;
    for (int i = 0; i < TURNS; i++) {
        int theirs = SSL_do_handshake(p->client);
        int ours = is_done ? 0 : tls_conn_handshake(p->conn);
        is_done = ours == 0;
        if (ours == TLS_BROKEN || (is_done && theirs == 1))
            return ours;
    }
    return TLS_WOULD_BLOCK;
}

static ssize_t receive(struct pair *p, char *out, size_t n)
{
    ssize_t got = TLS_WOULD_BLOCK;
    for (int i = 0; got == TLS_WOULD_BLOCK && i < TURNS; i++)
        got = tls_conn_receive(p->conn, out, n);
    return got;
}

static void expect_to_hear(struct pair *p, const char *text)
{
    char out[64] = "";
    assert_int_equal(SSL_write(p->client, text, (int)strlen(text)), strlen(text));
    assert_int_equal(receive(p, out, sizeof(out)), strlen(text));
    assert_string_equal(out, text);
}

static void tls_1_2_and_1_3_work_and_older_versions_are_refused(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION, TLS1_1_VERSION, TLS1_VERSION};
    for (size_t i = 0; i < 4; i++) {
        struct pair p;
        char out[8];
        pair_init(&p, versions[i]);
        if (i >= 2) {
            assert_int_equal(shake_hands(&p), TLS_BROKEN);
        } else {
            assert_int_equal(shake_hands(&p), 0);
            expect_to_hear(&p, "hello");
            SSL_shutdown(p.client);
            assert_int_equal(receive(&p, out, sizeof(out)), 0);
        }
        pair_deinit(&p);
    }
}

static void a_close_without_close_notify_is_an_error(void **state)
{
    (void)state;
    struct pair p;
    char out[8];
    pair_init(&p, 0);
    assert_int_equal(shake_hands(&p), 0);
    shutdown(p.fds[1], SHUT_WR);
    assert_int_equal(receive(&p, out, sizeof(out)), TLS_BROKEN);
    pair_deinit(&p);
}

/* The socket accepts less than a record; each call passes the bytes at another address. */
static void unsent_bytes_are_sent_when_the_socket_is_writable(void **state)
{
    (void)state;
    enum { N = 300000, SOCKET_BYTES = 4096 };
    struct pair p;
    int size = SOCKET_BYTES, n_blocked = 0;
    size_t sent = 0, heard = 0;
    char *bytes = mem_alloc(N), *out = mem_alloc(N);
    for (int i = 0; i < N; i++)
        bytes[i] = (char)(i * 31 + i / 977);
    pair_init(&p, 0);
    setsockopt(p.fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    assert_int_equal(shake_hands(&p), 0);
    for (int i = 0; heard < N && i < TURNS; i++) {
        size_t left = N - sent, piece = left < 40000 ? left : 40000 - (size_t)(i % 3) * 1000;
        char *copy = mem_dup(bytes + sent, piece);
        ssize_t k = left > 0 ? tls_conn_send(p.conn, copy, piece) : TLS_WOULD_BLOCK;
        free(copy);
        assert_true(k > 0 || k == TLS_WOULD_BLOCK);
        assert_true(k > 0 || left == 0 || tls_conn_wants_write(p.conn));
        n_blocked += k < 0 && left > 0;
        sent += k > 0 ? (size_t)k : 0;
        int got = SSL_read(p.client, out + heard, (int)(N - heard));
        heard += got > 0 ? (size_t)got : 0;
    }
    assert_int_equal(heard, N);
    assert_memory_equal(out, bytes, N);
    assert_true(n_blocked > 0);
    free(bytes);
    free(out);
    pair_deinit(&p);
}

/* A hello that never ends, in records of 16 KiB. */
static void the_size_of_a_handshake_is_limited(void **state)
{
    (void)state;
    enum { RECORD = 16384 };
    struct pair p;
    unsigned char *record = mem_alloc(RECORD + 5);
    size_t sent = 0;
    int rc = TLS_WOULD_BLOCK;
    pair_init(&p, 0);
    memcpy(record, "\x16\x03\x01\x40\x00\x01\x02\x00\x00", 9); /* announces 128 KiB */
    for (int i = 0; rc == TLS_WOULD_BLOCK && i < 7; i++) {
        assert_int_equal(send(p.fds[1], record, RECORD + 5, 0), RECORD + 5);
        memset(record + 5, 'x', 4);
        sent += RECORD + 5;
        rc = tls_conn_handshake(p.conn);
        assert_int_equal(rc, sent > TLS_HANDSHAKE_BYTES_MAX + RECORD ? TLS_BROKEN : rc);
    }
    assert_int_equal(rc, TLS_BROKEN);
    assert_true(sent > TLS_HANDSHAKE_BYTES_MAX);
    free(record);
    pair_deinit(&p);
}

/* fds: the server's, the client's. */
static void connect_tcp(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fds[1], (struct sockaddr *)&at, sizeof(at)), 0);
    fds[0] = accept(listener, NULL, NULL);
    assert_true(fds[0] >= 0);
    close(listener);
}

static bool is_readable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) == 1;
}

/* After `first` the socket is not readable until `more` has arrived, or, if it is NULL, the client
 * has closed. */
static void expect_hello(const char *first, size_t n, const char *more, size_t n_more)
{
    int fds[2];
    connect_tcp(fds);
    assert_int_equal(send(fds[1], first, n, 0), n);
    assert_true(is_readable(fds[0], 10000));
    assert_false(tls_hello_has_come(fds[0]));
    assert_false(is_readable(fds[0], 0));
    if (more)
        assert_int_equal(send(fds[1], more, n_more, 0), n_more);
    else
        assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    assert_true(is_readable(fds[0], 10000));
    while (!tls_hello_has_come(fds[0])) /* the length was not known at first */
        assert_true(is_readable(fds[0], 10000));
    assert_true(is_readable(fds[0], 0));
    close(fds[0]);
    close(fds[1]);
}

static void a_partial_hello_is_left_in_the_socket(void **state)
{
    (void)state;
    static const char hello[] = "\x16\x03\x01\x00\x08"
                                "abcdefgh";
    for (size_t n = 1; n < 13; n++) {
        expect_hello(hello, n, hello + n, 13 - n);
        expect_hello(hello, n, NULL, 0);
    }
}

static void bytes_that_are_no_hello_are_not_waited_for(void **state)
{
    (void)state;
    static const char *const starts[] = {"GET / HTTP/1.1\r\n", "\x16\x03\x01\xff\xff", "\x80"};
    for (size_t i = 0; i < 3; i++) {
        int fds[2];
        connect_tcp(fds);
        assert_int_equal(send(fds[1], starts[i], strlen(starts[i]), 0), strlen(starts[i]));
        assert_true(is_readable(fds[0], 10000));
        assert_true(tls_hello_has_come(fds[0]));
        close(fds[0]);
        close(fds[1]);
    }
}

static void update_key(struct pair *p)
{
    assert_int_equal(SSL_key_update(p->client, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(p->client), 1);
}

static void key_updates_without_data_end_the_connection(void **state)
{
    (void)state;
    struct pair p;
    char out[8];
    ssize_t rc = TLS_WOULD_BLOCK;
    int n = 0;
    pair_init(&p, TLS1_3_VERSION);
    assert_int_equal(shake_hands(&p), 0);
    for (int i = 0; i < 2000; i++) {
        update_key(&p);
        expect_to_hear(&p, "data"); /* accepted as long as there is data */
    }
    for (; rc == TLS_WOULD_BLOCK && n < 10000; n++) {
        update_key(&p);
        rc = tls_conn_receive(p.conn, out, sizeof(out));
    }
    assert_int_equal(rc, TLS_BROKEN);
    assert_true(n > 100 && n < 2000);
    pair_deinit(&p);
}

static void nothing_is_renegotiated(void **state)
{
    (void)state;
    struct pair p;
    char out[8];
    pair_init(&p, TLS1_2_VERSION);
    assert_int_equal(shake_hands(&p), 0);
    assert_int_equal(SSL_renegotiate(p.client), 1);
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(p.client);
        /* the client gives up when it is refused */
        assert_true(tls_conn_receive(p.conn, out, sizeof(out)) <= 0);
    }
    assert_int_not_equal(SSL_do_handshake(p.client), 1);
    assert_int_equal(SSL_num_renegotiations(tls_conn_ssl(p.conn)), 0);
    pair_deinit(&p);
}

static void no_session_is_resumed(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        char x;
        pair_init(&p, versions[i]);
        assert_int_equal(shake_hands(&p), 0);
        assert_int_equal(tls_conn_send(p.conn, "x", 1), 1);
        assert_int_equal(SSL_read(p.client, &x, 1), 1); /* and tickets, if any were sent */
        SSL_SESSION *session = SSL_get1_session(p.client);
        SSL_shutdown(p.client); /* a session that just ends would not be resumed */
        tls_conn_end(p.conn);
        pair_disconnect(&p);
        pair_connect(&p);
        SSL_set_session(p.client, session);
        assert_int_equal(shake_hands(&p), 0);
        assert_int_equal(SSL_session_reused(p.client), 0);
        assert_int_equal(SSL_session_reused(tls_conn_ssl(p.conn)), 0);
        SSL_SESSION_free(session);
        pair_deinit(&p);
    }
}

static void expect_unusable(const char *cert_pem, const char *key_pem, const char *ca_pem)
{
    struct err e = {0};
    struct tls_server *s = NULL;
    assert_int_equal(tls_server_create(cert_pem, key_pem, ca_pem, &s, &e), ERR_CONFIG);
    assert_null(s);
    assert_true(str_starts(e.text, "cannot serve HTTPS: the certificate"));
    assert_null(strstr(e.text, "hush"));
}

/* The same key with a password, which is never requested. */
static char *locked_key(const char *key_pem)
{
    char *data;
    BIO *in = BIO_new_mem_buf(key_pem, -1), *out = BIO_new(BIO_s_mem());
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    assert_int_equal(
        PEM_write_bio_PKCS8PrivateKey(out, key, EVP_aes_128_cbc(), "hush", 4, NULL, NULL), 1);
    long n = BIO_get_mem_data(out, &data);
    char *pem = mem_strndup(data, (size_t)n);
    EVP_PKEY_free(key);
    BIO_free(in);
    BIO_free(out);
    return pem;
}

static void unusable_certificates_are_refused_with_the_reason(void **state)
{
    (void)state;
    struct cert a = cert_make(&(struct cert_options){.cn = "a"});
    struct cert b = cert_make(&(struct cert_options){.cn = "b"});
    char *locked = locked_key(a.key_pem), *cut = mem_strdup(a.cert_pem);
    cut[strlen(cut) / 2] = '!';
    char *both = mem_printf("%s%s", a.cert_pem, cut);
    expect_unusable(a.cert_pem, b.key_pem, NULL);
    expect_unusable("none", a.key_pem, NULL);
    expect_unusable("", a.key_pem, NULL);
    expect_unusable(cut, a.key_pem, NULL);
    expect_unusable(both, a.key_pem, NULL);
    expect_unusable(a.cert_pem, "hush-hush", NULL);
    expect_unusable(a.cert_pem, locked, NULL);
    expect_unusable(a.cert_pem, a.key_pem, "none");
    expect_unusable(a.cert_pem, a.key_pem, cut);
    free(both);
    free(cut);
    free(locked);
    cert_deinit(&a);
    cert_deinit(&b);
}

/* In any order the server's own certificate is sent first, and all are sent. */
static void the_certificate_chain_is_sent(void **state)
{
    (void)state;
    struct cert ca = cert_make(&(struct cert_options){.cn = "ca", .is_ca = true});
    struct cert own = cert_make(&(struct cert_options){.cn = "own", .issuer = &ca});
    for (int i = 0; i < 3; i++) {
        struct pair p;
        struct err e;
        char *pem = i == 0   ? mem_strdup(own.cert_pem)
                    : i == 1 ? mem_printf("%s%s", own.cert_pem, ca.cert_pem)
                             : mem_printf("%s%s", ca.cert_pem, own.cert_pem);
        pair_init(&p, 0);
        pair_disconnect(&p);
        tls_server_destroy(p.server);
        /* the client CAs are not sent */
        assert_int_equal(tls_server_create(pem, own.key_pem, ca.cert_pem, &p.server, &e), 0);
        pair_connect(&p);
        assert_int_equal(shake_hands(&p), 0);
        STACK_OF(X509) *sent = SSL_get_peer_cert_chain(p.client);
        char name[64];
        assert_int_equal(sk_X509_num(sent), i == 0 ? 1 : 2);
        X509_NAME_get_text_by_NID(
            X509_get_subject_name(sk_X509_value(sent, 0)), NID_commonName, name, sizeof(name));
        assert_string_equal(name, "own");
        free(pem);
        pair_deinit(&p);
    }
    cert_deinit(&own);
    cert_deinit(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_1_2_and_1_3_work_and_older_versions_are_refused),
        cmocka_unit_test(a_close_without_close_notify_is_an_error),
        cmocka_unit_test(unsent_bytes_are_sent_when_the_socket_is_writable),
        cmocka_unit_test(the_size_of_a_handshake_is_limited),
        cmocka_unit_test(a_partial_hello_is_left_in_the_socket),
        cmocka_unit_test(bytes_that_are_no_hello_are_not_waited_for),
        cmocka_unit_test(key_updates_without_data_end_the_connection),
        cmocka_unit_test(nothing_is_renegotiated),
        cmocka_unit_test(no_session_is_resumed),
        cmocka_unit_test(unusable_certificates_are_refused_with_the_reason),
        cmocka_unit_test(the_certificate_chain_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
