/* SPDX-License-Identifier: Apache-2.0
 *
 * The peer of an HTTP server's connection: address, user of a UNIX socket, client certificate.
 */
#ifndef BELAY_BASE_UV_HTTP_PEER_H
#define BELAY_BASE_UV_HTTP_PEER_H

#include "base/uv/http_server.h"
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>

#define HTTP_PEER_CN_MAX 256

/* The outcome of checking a client certificate, once per connection. verified_until ends its
 * validity with the first certificate of the chain to expire, however long the connection lives. */
struct http_peer_cert {
    bool is_checked;
    char cn[HTTP_PEER_CN_MAX]; /* "" unless verified */
    char error[256];           /* "" unless a certificate was given that did not verify */
    time_t verified_until;
};

/* Call after the handshake. The chain is verified with the store of the connection's context, for
 * TLS client use. */
void http_peer_check_cert(SSL *ssl, struct http_peer_cert *c);

/* Fills is_unix, peer_uid, peer_pid and peer_address. addr may be NULL. */
void http_peer_fill_address(int fd, const struct sockaddr *addr, struct http_server_request *r);

#endif
