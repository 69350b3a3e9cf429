/* SPDX-License-Identifier: Apache-2.0
 *
 * See part_tls.h. OpenSSL reads and writes memory, and we handle the socket: so nothing raises
 * SIGPIPE, and blocking is decided here.
 */
#include "cli/slurm/part_tls.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#define KEY_BYTES (PART_KEY_HEX / 2)
#define CIPHER "TLS_AES_128_GCM_SHA256"
#define PIECE 65536
/* srun's first byte: the part is accepted. A client's handshake ends before the server's does. */
#define ACCEPTED 't'

static const unsigned char cipher_id[] = {0x13, 0x01}; /* CIPHER */

struct part_tls {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out;
    struct buf unsent;
    part_key_fn key; /* srun's side */
    void *key_ctx;
    int64_t part;        /* number of the part, claimed until the handshake is done; -1 = unknown */
    const char *own_key; /* a part's side, while it connects */
    char identity[24];
};

/* ---- keys ---- */

/* NULL if out of memory, or if the key is malformed. */
static SSL_SESSION *session_of(SSL *ssl, const char *hex)
{
    unsigned char key[KEY_BYTES];
    SSL_SESSION *s = strlen(hex) == PART_KEY_HEX && str_unhex(hex, (char *)key, KEY_BYTES)
                         ? SSL_SESSION_new()
                         : NULL;
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
    bool ok = s && cipher && SSL_SESSION_set1_master_key(s, key, KEY_BYTES) &&
              SSL_SESSION_set_cipher(s, cipher) &&
              SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION);
    explicit_bzero(key, sizeof(key));
    if (!ok && s) {
        SSL_SESSION_free(s);
        s = NULL;
    }
    return s;
}

/* srun's side: the expected key. An unknown name is not an error, but the keys will not match. */
static int on_find(SSL *ssl, const unsigned char *name, size_t n, SSL_SESSION **ret_session)
{
    struct part_tls *t = SSL_get_ex_data(ssl, 0);
    char text[24];
    int64_t part;
    *ret_session = NULL;
    if (n == 0 || n >= sizeof(text))
        return 1;
    memcpy(text, name, n);
    text[n] = '\0';
    if (str_to_i64(text, 0, INT32_MAX, "part", &part, NULL) != 0)
        return 1;
    const char *key = t->key(t->key_ctx, part);
    t->part = part;
    *ret_session = key ? session_of(ssl, key) : NULL;
    return 1;
}

static int on_use(SSL *ssl, const EVP_MD *md, const unsigned char **ret_name, size_t *ret_n,
    SSL_SESSION **ret_session)
{
    struct part_tls *t = SSL_get_ex_data(ssl, 0);
    (void)md;
    *ret_session = t->own_key ? session_of(ssl, t->own_key) : NULL;
    *ret_name = (const unsigned char *)t->identity;
    *ret_n = strlen(t->identity);
    return *ret_session != NULL;
}

/* ---- life ---- */

static struct part_tls *create(int fd)
{
    struct part_tls *t = mem_alloc(sizeof(*t));
    *t = (struct part_tls){.fd = fd, .part = -1};
    t->ctx = SSL_CTX_new(TLS_method());
    bool ok = t->ctx && SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION) &&
              SSL_CTX_set_ciphersuites(t->ctx, CIPHER) && SSL_CTX_set_num_tickets(t->ctx, 0);
    if (ok) {
        SSL_CTX_set_psk_find_session_callback(t->ctx, on_find);
        SSL_CTX_set_psk_use_session_callback(t->ctx, on_use);
        t->ssl = SSL_new(t->ctx);
    }
    if (t->ssl) {
        SSL_set_ex_data(t->ssl, 0, t);
        t->in = BIO_new(BIO_s_mem());
        t->out = BIO_new(BIO_s_mem());
    }
    if (t->in && t->out) {
        SSL_set_bio(t->ssl, t->in, t->out); /* t->ssl owns both from here on */
        return t;
    }
    part_tls_free(t);
    return NULL;
}

void part_tls_free(struct part_tls *t)
{
    if (!t)
        return;
    if (t->ssl)
        SSL_free(t->ssl);
    if (t->ctx)
        SSL_CTX_free(t->ctx);
    buf_deinit(&t->unsent);
    free(t);
}

struct part_tls *part_tls_accept(int fd, part_key_fn key, void *ctx)
{
    struct part_tls *t = create(fd);
    if (!t)
        return NULL;
    t->key = key;
    t->key_ctx = ctx;
    SSL_set_accept_state(t->ssl);
    return t;
}

/* ---- the socket ---- */

/* Sends OpenSSL's output, including earlier leftovers. False if the connection has failed. */
static bool flush_out(struct part_tls *t)
{
    for (int n; (n = BIO_read(t->out, buf_reserve(&t->unsent, PIECE), PIECE)) > 0;)
        buf_commit(&t->unsent, (size_t)n);
    while (t->unsent.len > 0) {
        ssize_t n = send(t->fd, t->unsent.data, t->unsent.len, MSG_NOSIGNAL);
        if (n > 0)
            buf_remove_front(&t->unsent, (size_t)n);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return true;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

/* 1: data received; 0: none (now); -1: EOF. */
static int fill_in(struct part_tls *t, int flags)
{
    char *piece = mem_alloc(PIECE);
    ssize_t n = recv(t->fd, piece, PIECE, flags);
    int rc = n > 0                                                                  ? 1
             : n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0
                                                                                    : -1;
    if (n > 0 && BIO_write(t->in, piece, (int)n) != n)
        rc = -1;
    free(piece);
    return rc;
}

/* ---- the handshake ---- */

/* 1: done; 0: more data is needed; -1: failed. */
static int run_handshake(struct part_tls *t)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(t->ssl);
    int why = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, rc);
    bool sent = flush_out(t);
    if (rc == 1)
        return sent && SSL_session_reused(t->ssl) ? 1 : -1; /* resumed: the peer has the key */
    return sent && why == SSL_ERROR_WANT_READ ? 0 : -1;
}

int part_tls_greet(struct part_tls *t, int64_t *ret_part)
{
    int received = fill_in(t, MSG_DONTWAIT), rc = run_handshake(t);
    const char accepted = ACCEPTED;
    *ret_part = t->part;
    if (rc == 1 && !part_tls_send(t, &accepted, 1))
        return -1;
    return rc == 0 && received < 0 ? -1 : rc;
}

/* run_handshake(), then waits for srun's confirmation that the part is accepted. Returns as
 * run_handshake(). */
static int handshake_and_confirm(struct part_tls *t)
{
    char answer;
    int rc = run_handshake(t);
    if (rc != 1)
        return rc;
    int n = SSL_read(t->ssl, &answer, 1);
    if (n == 1)
        return answer == ACCEPTED ? 1 : -1;
    return SSL_get_error(t->ssl, n) == SSL_ERROR_WANT_READ ? 0 : -1;
}

static int wait_for(int fd, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = deadline_ms - clock_mono(&clock_system).ms;
    return left <= 0 ? 0 : poll(&p, 1, (int)left);
}

int part_tls_connect(int fd, int64_t part, const char *key, int64_t deadline_ms,
    struct part_tls **ret_tls, struct err *e)
{
    struct part_tls *t = create(fd);
    int rc, received = 0;
    if (!t)
        return err_set(e, ERR_INTERNAL, "TLS cannot be set up");
    t->own_key = key;
    t->part = part;
    snprintf(t->identity, sizeof(t->identity), "%lld", (long long)part);
    SSL_set_verify(t->ssl, SSL_VERIFY_PEER, NULL); /* no certificate is valid */
    SSL_set_connect_state(t->ssl);
    while ((rc = handshake_and_confirm(t)) == 0 && received >= 0) {
        int ready = wait_for(fd, deadline_ms);
        if (ready == 0)
            break;
        received = ready > 0 ? fill_in(t, MSG_DONTWAIT) : 0;
    }
    t->own_key = NULL;
    if (rc == 1) {
        *ret_tls = t;
        return 0;
    }
    part_tls_free(t);
    if (rc == 0 && received >= 0)
        return err_set(e, ERR_TIMEOUT, "no answer in time");
    return received < 0 ? err_set(e, ERR_IO, "the connection was closed")
                        : err_set(e, ERR_DENIED, "the other end does not have this step's key");
}

/* ---- data ---- */

bool part_tls_receive(struct part_tls *t, struct buf *in)
{
    int received = fill_in(t, MSG_DONTWAIT), n;
    ERR_clear_error();
    while ((n = SSL_read(t->ssl, buf_reserve(in, PIECE), PIECE)) > 0)
        buf_commit(in, (size_t)n);
    int why = SSL_get_error(t->ssl, n);
    return flush_out(t) && received >= 0 && why == SSL_ERROR_WANT_READ;
}

bool part_tls_send(struct part_tls *t, const void *p, size_t n)
{
    ERR_clear_error();
    if (SSL_write(t->ssl, p, (int)n) != (int)n)
        return false;
    return flush_out(t) && t->unsent.len == 0;
}
