/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening sockets of the HTTP server. Close-on-exec and non-blocking.
 */
#ifndef BELAY_BASE_UV_HTTP_LISTEN_H
#define BELAY_BASE_UV_HTTP_LISTEN_H

#include "base/err.h"
#include "base/http.h"
#include <sys/types.h>

#define HTTP_LISTEN_BACKLOG 1024

/* host: a numeric address or a name of this machine. Blocks to resolve a name. *ret_port is the
 * bound port. */
int http_listen_tcp(const char *host, int port, int *ret_fd, int *ret_port, struct err *e);

/* An old socket at path is replaced atomically; any other file there is refused (ERR_CONFLICT). At
 * most HTTP_UNIX_PATH_MAX bytes (ERR_CONFIG). */
int http_listen_unix(const char *path, mode_t mode, int *ret_fd, struct err *e);

#endif
