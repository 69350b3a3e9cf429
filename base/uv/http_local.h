/* SPDX-License-Identifier: Apache-2.0
 *
 * base/http.h on UNIX sockets, without libcurl.
 */
#ifndef BELAY_BASE_UV_HTTP_LOCAL_H
#define BELAY_BASE_UV_HTTP_LOCAL_H

#include "base/http.h"
#include <uv.h>

/* For requests with a unix_socket only. Without libcurl, because loading it takes longer than a
 * call to belayd. Plain HTTP, one connection per call, any number of calls. A
 * call waits while the server's accept queue is full. */
struct http_client *uv_http_local_create(uv_loop_t *loop);
void uv_http_local_destroy(struct http_client *c);

#endif
