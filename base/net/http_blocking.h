/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP that blocks, for worker threads that move large bodies: the requests of base/http.h, one at
 * a time in each thread, over connections that are kept. What is said there about redirects,
 * proxies and TLS holds here.
 */
#ifndef BELAY_BASE_NET_HTTP_BLOCKING_H
#define BELAY_BASE_NET_HTTP_BLOCKING_H

#include "base/http.h"
#include <stdatomic.h>

struct http_pool; /* handles with their connections; any number of threads may use one */

/* For requests that name no authority of their own it trusts those of the file that SSL_CERT_FILE
 * in the environment names, else of this machine's own, wherever its distribution keeps them;
 * looked for here. */
struct http_pool *http_pool_create(void);
void http_pool_destroy(struct http_pool *p); /* no request is under way; NULL is fine */

/* Sends r and waits for the whole reply, for r->timeout_ms at most. r and its body are borrowed
 * until it returns. cancel (NULL: none) is looked at about ten times a second; once it is not 0,
 * ERR_CANCELLED. Errors are those of http_done_fn.
 *
 * The request is sent once: where a kept connection turns out to be closed after something went
 * out, that is an ERR_IO, and whoever called knows that it may have arrived.
 *
 * *ret_reply is the caller's to deinit, whatever is returned: after an error it holds what came
 * until then, with a status of 0 if that was no status line. */
int http_blocking_run(struct http_pool *p, const struct http_request *r, const atomic_int *cancel,
    struct http_reply *ret_reply, struct err *e);

#endif
