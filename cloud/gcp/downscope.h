/* SPDX-License-Identifier: Apache-2.0
 *
 * Google's Security Token Service: a token is exchanged for one that reaches the objects below one
 * prefix of one bucket and nothing else (a Credential Access Boundary). Pure functions.
 *
 * Source: IAM, "Downscope with Credential Access Boundaries"; Security Token Service REST
 * reference, v1 "token"; RFC 8693.
 */
#ifndef BELAY_CLOUD_GCP_DOWNSCOPE_H
#define BELAY_CLOUD_GCP_DOWNSCOPE_H

#include "cloud/oauth.h"

#define GCP_STS_URL "https://sts.googleapis.com"
#define GCP_STS_PATH "/v1/token"
#define GCP_BOUNDARY_MAX 2048 /* characters: the service's limit */

/* Appends the body of the request, application/x-www-form-urlencoded, that asks for a token for
 * what is below prefix, which ends in '/', in place of `token`. Bucket and prefix are those of a
 * checked store URL: they hold nothing that is special in an expression. ERR_INVALID: the boundary
 * is longer than the service takes. Wipe out. */
int gcp_downscope_build(
    const char *bucket, const char *prefix, const char *token, struct buf *out, struct err *e);

/* A reply of any status; errors as of oauth_parse_reply. left_s: how long the token that was
 * exchanged still lasts; the new one ends with it at the latest, and the service does not always
 * say when. */
int gcp_downscope_parse(int status, const char *body, size_t n, int64_t left_s,
    struct oauth_token *ret_token, struct err *e);

#endif
