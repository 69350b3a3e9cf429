/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of the HTTP server, by OpenSSL: certificates and rules of a server, and one connection over a
 * non-blocking socket. TLS 1.2 and 1.3; no session is resumed and nothing is renegotiated, so each
 * connection authenticates itself.
 *
 * A peer must make progress with the bytes it sends: a handshake has a limit of bytes, and so have
 * records after it that carry no data (key updates, empty records, requests to renegotiate). The
 * caller limits the time of a handshake (HANDSHAKE_AND_HEAD_MS in http_conn.c), how many there are
 * at once (the class HTTP_STRANGER of http_server.h), and whose turn it is (http_turns.h).
 */
#ifndef BELAY_BASE_UV_TLS_H
#define BELAY_BASE_UV_TLS_H

#include "base/err.h"
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TLS_MESSAGE_BYTES_MAX ((size_t)32 << 10)   /* a client's certificate message */
#define TLS_HANDSHAKE_BYTES_MAX ((size_t)64 << 10) /* everything a client sends for a handshake */
/* without data after it: more than a full record */
#define TLS_QUIET_BYTES_MAX ((size_t)20 << 10)

enum { TLS_WOULD_BLOCK = -1, TLS_BROKEN = -2 };

struct tls_server;
struct tls_conn;

/* PEM. cert: the server's certificate, followed by intermediate ones. client_ca may be NULL;
 * otherwise clients are asked for a certificate, which is optional and not verified here.
 * ERR_CONFIG. */
int tls_server_create(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
    struct tls_server **ret_server, struct err *e);
void tls_server_destroy(struct tls_server *s); /* its connections must be gone; s may be NULL */

/* Whether the client's first record is in the socket whole, or can be judged without the rest. If
 * not, the socket becomes readable again when it is, or when the client has ended (SO_RCVLOWAT). So
 * a client that sends half a record costs no memory but the kernel's. */
bool tls_hello_has_come(int fd);

/* fd and s are borrowed until tls_conn_destroy. */
struct tls_conn *tls_conn_create(struct tls_server *s, int fd);
void tls_conn_destroy(struct tls_conn *c); /* c may be NULL */

/* 0: done; TLS_WOULD_BLOCK; TLS_BROKEN, after an alert to the peer if possible. */
int tls_conn_handshake(struct tls_conn *c);

/* After the handshake. Returns the number of bytes; 0: the peer has closed; TLS_WOULD_BLOCK,
 * TLS_BROKEN. poll(2) only reports all received data while this would block. */
ssize_t tls_conn_receive(struct tls_conn *c, char *p, size_t n);

/* At most one record. After TLS_WOULD_BLOCK the next call must begin with the same bytes, and may
 * have more. */
ssize_t tls_conn_send(struct tls_conn *c, const char *p, size_t n);

/* Whether the last of these calls would block because the socket's buffer is full. */
bool tls_conn_wants_write(const struct tls_conn *c);

/* Sends close_notify, if that is possible without waiting. */
void tls_conn_end(struct tls_conn *c);

/* Borrowed; client certificates are verified with its context's store. */
SSL *tls_conn_ssl(struct tls_conn *c);

#endif
