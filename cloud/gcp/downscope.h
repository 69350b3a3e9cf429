/* SPDX-License-Identifier: Apache-2.0
 *
 * Google's Security Token Service: exchanges a token for one that reaches the objects below one
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

/* Appends the request's body, application/x-www-form-urlencoded, to exchange `token` for one
 * limited to objects below prefix, which ends in '/'. Bucket and prefix are from a checked store
 * URL, so they contain nothing that is special in an expression. ERR_INVALID: the boundary is
 * longer than the service accepts. Wipe out. */
int gcp_downscope_build(
    const char *bucket, const char *prefix, const char *token, struct buf *out, struct err *e);

/* Parses a reply of any status; errors as for oauth_parse_reply. left_s: remaining life of the
 * exchanged token; the new one expires with it at the latest, and the service does not always
 * return a lifetime. */
int gcp_downscope_parse(int status, const char *body, size_t n, int64_t left_s,
    struct oauth_token *ret_token, struct err *e);

#endif
