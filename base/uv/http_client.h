/* SPDX-License-Identifier: Apache-2.0
 *
 * base/http.h on libcurl.
 */
#ifndef BELAY_BASE_UV_HTTP_CLIENT_H
#define BELAY_BASE_UV_HTTP_CLIENT_H

#include "base/http.h"
#include <uv.h>

/* HTTP client on curl's multi_socket_action. At most 32 connections per host; further requests
 * wait. uv_http_client_destroy cancels pending requests: their done callbacks run with
 * ERR_CANCELLED inside it. */
struct http_client *uv_http_client_create(uv_loop_t *loop);
/* At most so many connections in all, kept ones included; further requests wait. */
void uv_http_client_limit(struct http_client *c, int max_connections);
void uv_http_client_destroy(struct http_client *c);

#endif
