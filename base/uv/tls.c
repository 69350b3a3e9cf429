/* SPDX-License-Identifier: Apache-2.0
 *
 * See tls.h. OpenSSL reads and writes the socket through a BIO of this file, which uses
 * MSG_NOSIGNAL and counts the received bytes.
 */
#include "base/uv/tls.h"

#include "base/mem.h"
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* TLS 1.2: at least 128 bits, and a certificate. The suites of TLS 1.3 are OpenSSL's own. */
static const char ciphers[] = "HIGH:!aNULL:!eNULL:!PSK:!SRP";

/* Bytes of a record during the handshake. OpenSSL allocates them when the handshake begins and
 * keeps them until it has sent something. Longer messages take several records. */
#define HANDSHAKE_FRAGMENT 2048

struct tls_server {
    SSL_CTX *ctx;
    BIO_METHOD *socket;
};

struct tls_conn {
    SSL *ssl;
    int fd;
    bool is_shaken, wants_write;
    size_t n_quiet; /* bytes received since the start, or since the last data */
    /* bytes of the write to repeat because the socket accepted no more; 0 if none */
    size_t n_unsent;
};

/* ---- The socket ---- */

static int on_read(BIO *b, char *p, int n)
{
    struct tls_conn *c = BIO_get_data(b);
    ssize_t got;
    BIO_clear_retry_flags(b);
    if (c->n_quiet > (c->is_shaken ? TLS_QUIET_BYTES_MAX : TLS_HANDSHAKE_BYTES_MAX))
        return -1;
    do
        got = recv(c->fd, p, (size_t)n, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(b);
    if (got > 0)
        c->n_quiet += (size_t)got;
    return (int)got;
}

static int on_write(BIO *b, const char *p, int n)
{
    struct tls_conn *c = BIO_get_data(b);
    ssize_t sent;
    BIO_clear_retry_flags(b);
    do
        sent = send(c->fd, p, (size_t)n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(b);
    return (int)sent;
}

static long on_control(BIO *b, int command, long n, void *p)
{
    (void)b, (void)n, (void)p;
    return command == BIO_CTRL_FLUSH;
}

/* ---- A server ---- */

static int unusable(const char *what, struct err *e)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    return err_set(
        e, ERR_CONFIG, "cannot serve HTTPS: %s: %s", what, reason ? reason : "it is none");
}

/* A key with a password is refused; OpenSSL would ask for the password at the terminal. */
static int no_password(char *p, int size, int is_for_writing, void *ctx)
{
    (void)p, (void)size, (void)is_for_writing, (void)ctx;
    return -1;
}

static EVP_PKEY *read_key(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(b, NULL, no_password, NULL);
    BIO_free(b);
    return key;
}

/* All certificates of pem; NULL if there is none or one is malformed. */
static STACK_OF(X509) * read_certs(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    STACK_OF(X509) *all = sk_X509_new_null();
    X509 *x;
    while ((x = PEM_read_bio_X509(b, NULL, no_password, NULL)))
        sk_X509_push(all, x);
    unsigned long code = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
    BIO_free(b);
    if (is_end && sk_X509_num(all) > 0) {
        ERR_clear_error();
        return all;
    }
    sk_X509_pop_free(all, X509_free);
    return NULL;
}

/* Uses the certificate of the key as the server's own and sends the others with it, in order. */
static bool use_certs(SSL_CTX *ctx, STACK_OF(X509) * certs, EVP_PKEY *key)
{
    bool has_own = false, ok = true;
    for (int i = 0; ok && i < sk_X509_num(certs); i++) {
        X509 *x = sk_X509_value(certs, i);
        if (!has_own && X509_check_private_key(x, key) == 1)
            ok = has_own = SSL_CTX_use_certificate(ctx, x) == 1;
    }
    for (int i = 0; ok && i < sk_X509_num(certs); i++) {
        X509 *x = sk_X509_value(certs, i);
        if (x != SSL_CTX_get0_certificate(ctx))
            ok = SSL_CTX_add1_chain_cert(ctx, x) == 1;
    }
    return ok && has_own && SSL_CTX_use_PrivateKey(ctx, key) == 1;
}

static int set_identity(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct err *e)
{
    STACK_OF(X509) *certs = read_certs(cert_pem);
    EVP_PKEY *key = certs ? read_key(key_pem) : NULL;
    bool ok = key && use_certs(ctx, certs, key);
    int rc = ok ? 0 : unusable("the certificate and key cannot be used", e);
    sk_X509_pop_free(certs, X509_free);
    EVP_PKEY_free(key);
    return rc;
}

/* Accepts every certificate here: http_peer.c verifies it when a request arrives. */
static int on_verify(X509_STORE_CTX *c, void *ctx)
{
    (void)c, (void)ctx;
    return 1;
}

static int set_client_ca(SSL_CTX *ctx, const char *pem, struct err *e)
{
    STACK_OF(X509) *certs = read_certs(pem);
    bool ok = certs != NULL;
    for (int i = 0; ok && i < sk_X509_num(certs); i++)
        ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), sk_X509_value(certs, i)) == 1 &&
             SSL_CTX_add_client_CA(ctx, sk_X509_value(certs, i)) == 1;
    sk_X509_pop_free(certs, X509_free);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, on_verify, NULL);
    return ok ? 0 : unusable("the certificate authority of clients cannot be used", e);
}

static int set_rules(SSL_CTX *ctx, struct err *e)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_max_cert_list(ctx, TLS_MESSAGE_BYTES_MAX);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ctx, ciphers) != 1)
        return unusable(ciphers, e);
    return 0;
}

int tls_server_create(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
    struct tls_server **ret_server, struct err *e)
{
    struct tls_server *s = mem_alloc(sizeof(*s));
    ERR_clear_error();
    s->ctx = SSL_CTX_new(TLS_server_method());
    s->socket = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (!s->ctx || !s->socket)
        mem_out_of_memory();
    BIO_meth_set_read(s->socket, on_read);
    BIO_meth_set_write(s->socket, on_write);
    BIO_meth_set_ctrl(s->socket, on_control);
    int rc = set_rules(s->ctx, e);
    if (rc == 0)
        rc = set_identity(s->ctx, cert_pem, key_pem, e);
    if (rc == 0 && client_ca_pem)
        rc = set_client_ca(s->ctx, client_ca_pem, e);
    ERR_clear_error();
    if (rc != 0)
        tls_server_destroy(s);
    else
        *ret_server = s;
    return rc;
}

void tls_server_destroy(struct tls_server *s)
{
    if (!s)
        return;
    SSL_CTX_free(s->ctx);
    BIO_meth_free(s->socket);
    free(s);
}

/* ---- A connection ---- */

static void set_low_water(int fd, int n)
{
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

/* Bytes to wait for: the record header, or the first record with its header once that has come. 0
 * if nothing has come, or it is not a handshake or is too long. */
static int bytes_of_hello(int fd)
{
    unsigned char header[SSL3_RT_HEADER_LENGTH];
    ssize_t n = recv(fd, header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0 || header[0] != SSL3_RT_HANDSHAKE)
        return 0;
    if ((size_t)n < sizeof(header))
        return sizeof(header);
    int length = header[3] << 8 | header[4];
    return length > SSL3_RT_MAX_PLAIN_LENGTH ? 0 : (int)sizeof(header) + length;
}

bool tls_hello_has_come(int fd)
{
    int n = bytes_of_hello(fd), has = 0, awaited = 0;
    socklen_t size = sizeof(awaited);
    if (n > 0 && ioctl(fd, FIONREAD, &has) == 0 && has < n &&
        getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &awaited, &size) == 0 && awaited != n) {
        set_low_water(fd, n);
        return false;
    }
    set_low_water(fd, 1);
    return true;
}

struct tls_conn *tls_conn_create(struct tls_server *s, int fd)
{
    struct tls_conn *c = mem_alloc(sizeof(*c));
    BIO *b = BIO_new(s->socket);
    c->fd = fd;
    c->ssl = SSL_new(s->ctx);
    if (!b || !c->ssl)
        mem_out_of_memory();
    BIO_set_data(b, c);
    BIO_set_init(b, 1);
    SSL_set_bio(c->ssl, b, b); /* takes ownership of b */
    SSL_set_accept_state(c->ssl);
    SSL_set_max_send_fragment(c->ssl, HANDSHAKE_FRAGMENT);
    return c;
}

void tls_conn_destroy(struct tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    ERR_clear_error();
    free(c);
}

static ssize_t result(struct tls_conn *c, int rc)
{
    int why = SSL_get_error(c->ssl, rc);
    c->wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return TLS_WOULD_BLOCK;
    return why == SSL_ERROR_ZERO_RETURN ? 0 : TLS_BROKEN;
}

int tls_conn_handshake(struct tls_conn *c)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(c->ssl);
    c->wants_write = false;
    if (rc != 1)
        return result(c, rc) == TLS_WOULD_BLOCK ? TLS_WOULD_BLOCK : TLS_BROKEN;
    SSL_set_max_send_fragment(c->ssl, SSL3_RT_MAX_PLAIN_LENGTH);
    /* lowered by SSL_set_max_send_fragment in tls_conn_create */
    SSL_set_split_send_fragment(c->ssl, SSL3_RT_MAX_PLAIN_LENGTH);
    c->is_shaken = true;
    c->n_quiet = 0;
    return 0;
}

ssize_t tls_conn_receive(struct tls_conn *c, char *p, size_t n)
{
    size_t got = 0;
    ERR_clear_error();
    int rc = SSL_read_ex(c->ssl, p, n, &got);
    c->wants_write = false;
    if (rc != 1)
        return result(c, rc);
    c->n_quiet = 0;
    return (ssize_t)got;
}

ssize_t tls_conn_send(struct tls_conn *c, const char *p, size_t n)
{
    size_t sent = 0, piece = c->n_unsent > 0 ? c->n_unsent : n;
    if (piece > SSL3_RT_MAX_PLAIN_LENGTH)
        piece = SSL3_RT_MAX_PLAIN_LENGTH;
    ERR_clear_error();
    int rc = SSL_write_ex(c->ssl, p, piece, &sent);
    c->wants_write = false;
    c->n_unsent = 0;
    if (rc == 1)
        return (ssize_t)sent;
    ssize_t why = result(c, rc);
    c->n_unsent = why == TLS_WOULD_BLOCK ? piece : 0;
    return why == TLS_WOULD_BLOCK ? why : TLS_BROKEN;
}

bool tls_conn_wants_write(const struct tls_conn *c)
{
    return c->wants_write;
}

void tls_conn_end(struct tls_conn *c)
{
    ERR_clear_error();
    SSL_shutdown(c->ssl);
    ERR_clear_error();
}

SSL *tls_conn_ssl(struct tls_conn *c)
{
    return c->ssl;
}
