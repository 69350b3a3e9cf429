/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of the EC2 instance metadata service, version 2: fetches and renews the session token,
 * reads one path at a time over one keep-alive connection (the service throttles by instance).
 * Version 1, without a token, is never tried: any program that can make this host send a GET could
 * read credentials through it.
 */
#ifndef BELAY_CLOUD_AWS_IMDS_H
#define BELAY_CLOUD_AWS_IMDS_H

#include "base/http.h"
#include "base/time.h"

#define IMDS_URL "http://169.254.169.254"
#define IMDS_REPLY_MAX 65536

/* e NULL: body (NUL-terminated, n bytes, borrowed) of a 200. ERR_NOT_FOUND: 404, which for many
 * paths is the healthy answer. ERR_DENIED: the service is turned off, or refuses even a new token.
 * ERR_UNAVAILABLE: any other status, or no connection. ERR_TIMEOUT: in a container the token's
 * reply may be dropped for its hop limit. ERR_INVALID: a token that is none. */
typedef void (*imds_done_fn)(void *ctx, const struct err *e, const char *body, size_t n);

struct imds;

/* base_url is copied; http and clock are borrowed until destroy. ERR_CONFIG: not an http:// URL
 * without a path. */
int imds_create(const char *base_url, struct http_client *http, const struct clock *clock,
    struct imds **ret_imds, struct err *e);

/* Reads "/latest/...". One read at a time: the next only after done has run (inside it is fine).
 * done runs once, not inside the call. path is copied. */
void imds_get(struct imds *m, const char *path, imds_done_fn done, void *ctx);

/* The Date header of the reply that done is told of, while it runs; "": it had none. */
const char *imds_date(const struct imds *m);

/* A read under way is dropped: its done does not run. NULL is fine. */
void imds_destroy(struct imds *m);

#endif
