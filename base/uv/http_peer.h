/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is at the other end of a connection of the HTTP server: address, user of a UNIX socket,
 * client certificate.
 */
#ifndef BELAY_BASE_UV_HTTP_PEER_H
#define BELAY_BASE_UV_HTTP_PEER_H

#include "base/uv/http_server.h"
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>

#define HTTP_PEER_CN_MAX 256

/* The outcome of looking at a client certificate. Looked at once a connection; verified_until makes
 * it end with the chain's first certificate to expire, however long the connection lives. */
struct http_peer_cert {
    bool is_checked;
    char cn[HTTP_PEER_CN_MAX]; /* "" unless verified */
    char error[256];           /* "" unless one was given that did not verify */
    time_t verified_until;
};

/* After the handshake. The chain is verified against the store of the connection's context, for use
 * by a TLS client. */
void http_peer_check_cert(SSL *ssl, struct http_peer_cert *c);

/* Fills is_unix, peer_uid, peer_pid and peer_address. addr may be NULL. */
void http_peer_fill_address(int fd, const struct sockaddr *addr, struct http_server_request *r);

#endif
