/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of the HTTP server, by OpenSSL: certificates and rules of a server, and one connection over a
 * non-blocking socket. TLS 1.2 and 1.3; no session is resumed and nothing renegotiated, so each
 * connection proves anew who it is.
 *
 * A peer has to get somewhere with what it sends: a handshake has a limit of bytes, and so has what
 * comes after it without carrying data (updates of keys, empty records, requests to renegotiate).
 * How long it may take is the caller's to say.
 */
#ifndef BELAY_BASE_UV_TLS_H
#define BELAY_BASE_UV_TLS_H

#include "base/err.h"
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TLS_MESSAGE_BYTES_MAX ((size_t)32 << 10)   /* a certificate message of the client's */
#define TLS_HANDSHAKE_BYTES_MAX ((size_t)64 << 10) /* all that a client sends for a handshake */
#define TLS_QUIET_BYTES_MAX ((size_t)20 << 10)     /* and then without data: a record, and more */

enum { TLS_WOULD_BLOCK = -1, TLS_BROKEN = -2 };

struct tls_server;
struct tls_conn;

/* PEM. cert: its own certificate, and those that go with it. client_ca (may be NULL): clients are
 * asked for a certificate; that one verifies is not looked at here, and it may lack. ERR_CONFIG. */
int tls_server_create(const char *cert_pem, const char *key_pem, const char *client_ca_pem,
    struct tls_server **ret_server, struct err *e);
void tls_server_destroy(struct tls_server *s); /* its connections are gone; NULL is fine */

/* Whether the client's first record is in the socket whole, or can be judged without the rest. If
 * not, the socket becomes readable again when it is, or when the client has ended (SO_RCVLOWAT). So
 * a client that sends half a record costs no memory but the kernel's. */
bool tls_hello_has_come(int fd);

/* fd and s are borrowed until tls_conn_destroy. */
struct tls_conn *tls_conn_create(struct tls_server *s, int fd);
void tls_conn_destroy(struct tls_conn *c); /* NULL is fine */

/* 0: done; TLS_WOULD_BLOCK; TLS_BROKEN, and the peer was told as far as that goes. */
int tls_conn_handshake(struct tls_conn *c);

/* After the handshake. Bytes; 0: the peer has ended; TLS_WOULD_BLOCK, TLS_BROKEN. All of what has
 * come in is seen by poll(2) only while this would block. */
ssize_t tls_conn_receive(struct tls_conn *c, char *p, size_t n);

/* A record at most. After TLS_WOULD_BLOCK the next call has to be for the same bytes, and may be
 * for more. */
ssize_t tls_conn_send(struct tls_conn *c, const char *p, size_t n);

/* Whether the last of these would block since the socket takes no more. */
bool tls_conn_wants_write(const struct tls_conn *c);

/* Tells the peer that nothing more comes, as far as that goes without waiting. */
void tls_conn_end(struct tls_conn *c);

/* Borrowed; the certificates of clients are verified with its context's store. */
SSL *tls_conn_ssl(struct tls_conn *c);

#endif
