/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking HTTP for worker threads that move large bodies: the requests of base/http.h, one at a
 * time per thread, over kept connections. The rules there about redirects, proxies and TLS apply
 * here.
 */
#ifndef BELAY_BASE_NET_HTTP_BLOCKING_H
#define BELAY_BASE_NET_HTTP_BLOCKING_H

#include "base/http.h"
#include <stdatomic.h>

struct http_pool; /* handles with their connections; any number of threads may share one */

/* The CA file for requests that name none is chosen here: the file that SSL_CERT_FILE in the
 * environment names, else this machine's own, where its distribution has them. */
struct http_pool *http_pool_create(void);
void http_pool_destroy(struct http_pool *p); /* no request may be in progress; p may be NULL */

/* Sends r and waits for the whole reply, for at most r->timeout_ms. r and its body are borrowed
 * until it returns. cancel may be NULL; it is checked about ten times a second, and once it is not
 * 0 the call returns ERR_CANCELLED. Errors are those of http_done_fn.
 *
 * The request is sent at most once: if a kept connection turns out to be closed after bytes were
 * sent, the result is ERR_IO, and the caller must assume that the request may have arrived.
 *
 * The caller always deinits *ret_reply. After an error it has the part received so far; its
 * status is 0 if no status line arrived. */
int http_blocking_run(struct http_pool *p, const struct http_request *r, const atomic_int *cancel,
    struct http_reply *ret_reply, struct err *e);

#endif
