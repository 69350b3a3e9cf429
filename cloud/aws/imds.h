/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of the EC2 instance metadata service, version 2: fetches and renews the session token,
 * reads one path at a time over one keep-alive connection (the service throttles per instance).
 * Version 1, without a token, is never used: any program that can make this host send a GET could
 * read credentials through it.
 */
#ifndef BELAY_CLOUD_AWS_IMDS_H
#define BELAY_CLOUD_AWS_IMDS_H

#include "base/http.h"
#include "base/time.h"

#define IMDS_URL "http://169.254.169.254"
#define IMDS_REPLY_MAX 65536

/* On success e is NULL and body is that of a 200 (NUL-terminated, n bytes, borrowed).
 * ERR_NOT_FOUND: 404, the healthy answer for many paths. ERR_DENIED: the service is turned off, or
 * refuses even a new token. ERR_UNAVAILABLE: any other status, or no connection. ERR_TIMEOUT: in a
 * container the token's reply may be dropped because of its hop limit. ERR_INVALID: a malformed
 * token. */
typedef void (*imds_done_fn)(void *ctx, const struct err *e, const char *body, size_t n);

struct imds;

/* base_url is copied; http and clock are borrowed until destroy. ERR_CONFIG: not an http:// URL
 * without a path. */
int imds_create(const char *base_url, struct http_client *http, const struct clock *clock,
    struct imds **ret_imds, struct err *e);

/* Reads "/latest/...". One read at a time: the next one may start inside done or later. done runs
 * once, not inside the call. path is copied. */
void imds_get(struct imds *m, const char *path, imds_done_fn done, void *ctx);

/* The Date header of the current reply, valid while done runs; "" if absent. */
const char *imds_date(const struct imds *m);

/* Drops a pending read: its done does not run. m may be NULL. */
void imds_destroy(struct imds *m);

#endif
