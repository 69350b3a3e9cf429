/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS Signature Version 4, implemented on OpenSSL's HMAC and SHA-256: pure functions for signing
 * and for checking a signature. (libcurl can sign too, but what it signs differs between versions.)
 *
 * Source: "Signature Version 4 signing process", AWS General Reference.
 */
#ifndef BELAY_CLOUD_AWS_SIGV4_H
#define BELAY_CLOUD_AWS_SIGV4_H

#include "base/buf.h"
#include "base/err.h"
#include "base/http_header.h"
#include "base/time.h"

#define SIGV4_HEX_MAX 65       /* a SHA-256 in hex including its NUL */
#define SIGV4_TIMESTAMP_MAX 17 /* "20260822T120000Z" including its NUL */
#define SIGV4_HEADERS_MAX 64
#define SIGV4_PARAMS_MAX 1024
#define SIGV4_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

/* A request as sent over the wire. Everything is borrowed. */
struct sigv4_request {
    const char *method;
    const char *target; /* path and query, encoded, exactly as sent: "/", "/key%20a?list-type=2" */
    const struct http_header *headers;
    size_t n_headers;        /* at most SIGV4_HEADERS_MAX */
    const char *body_sha256; /* hex, or SIGV4_UNSIGNED_PAYLOAD */
};

/* The scope of the signing key. */
struct sigv4_scope {
    /* X-Amz-Date: "20260822T120000Z"; its first eight characters are the key's date */
    const char *timestamp;
    const char *region;
    /* "ec2", "s3" (whose paths are encoded once, not twice, and not normalised) */
    const char *service;
};

void sigv4_sha256_hex(const void *p, size_t n, char out[SIGV4_HEX_MAX]);

/* "20260822T120000Z". */
void sigv4_timestamp(struct wall w, char out[SIGV4_TIMESTAMP_MAX]);

/* SHA-256 of the canonical request, in hex. signed_headers: the names of the signed headers,
 * lower-case, sorted, separated by ';' ("host;x-amz-date"). Repeated headers are joined by ','.
 * ERR_INVALID: a signed header that is missing, a badly encoded target, too many headers or
 * parameters. */
int sigv4_canonical_hash(const struct sigv4_request *r, const char *service,
    const char *signed_headers, char out[SIGV4_HEX_MAX], struct err *e);

/* The signature of r: sent by a signer, computed by a server to check it. ERR_INVALID as above, and
 * for a malformed timestamp. */
int sigv4_signature(const struct sigv4_request *r, const struct sigv4_scope *scope,
    const char *secret_key, const char *signed_headers, char out[SIGV4_HEX_MAX], struct err *e);

/* Appends the value of the Authorization header to out. Every header of r is signed, so r must have
 * Host, X-Amz-Date and, with a session token, X-Amz-Security-Token. */
int sigv4_authorization(const struct sigv4_request *r, const struct sigv4_scope *scope,
    const char *access_key, const char *secret_key, struct buf *out, struct err *e);

/* A parsed Authorization header. */
struct sigv4_claim {
    char access_key[129];
    char date[9];
    char region[64];
    char service[64];
    char signed_headers[1024];
    char signature[SIGV4_HEX_MAX];
};

/* ERR_INVALID with the reason; never quotes the header. */
int sigv4_parse_authorization(const char *value, struct sigv4_claim *ret_claim, struct err *e);

#endif
