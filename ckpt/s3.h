/* SPDX-License-Identifier: Apache-2.0
 *
 * The S3 protocol as far as a store needs it: pure functions that turn a URL into a location, a
 * request into signed headers, and a reply into its meaning. Also covers what Google Cloud Storage
 * (its XML API) and Azure's blobs do in the same way: a location knows its dialect.
 *
 * Sources: Amazon S3 API reference; "Signature Version 4", AWS General Reference; Google Cloud
 * Storage, XML API reference; Azure, Blob service REST API.
 */
#ifndef BELAY_CKPT_S3_H
#define BELAY_CKPT_S3_H

#include "base/http.h"
#include "base/http_header.h"
#include "ckpt/store/store_auth.h"

#define S3_URL_MAX 1024
#define S3_REPLY_MAX (8u << 20) /* of replies other than objects */
#define S3_UPLOAD_ID_MAX 1024   /* with the NUL */
#define S3_TOKEN_MAX 2048       /* continuation token of a list; including the NUL */
#define S3_ETAG_MAX 128         /* with the NUL */
#define S3_KEY_MAX 1025         /* with the NUL: S3's own limit */
#define S3_BASE64_MAX 45        /* a SHA-256 in base64 including the NUL */
#define S3_HEADERS_MAX 6        /* of a request, without those for signing */
#define S3_PARTS_MAX 10000
#define S3_BLOCK_ID_MAX 33 /* Azure's; including the NUL */

/* ---- Where ---- */

/* Server-side encryption requested for new objects. */
enum s3_sse { S3_SSE_NONE /* none requested: the bucket's default */, S3_SSE_S3, S3_SSE_KMS };

struct s3_location {
    enum store_keys_kind dialect;
    enum s3_sse sse;   /* of Amazon's */
    char kms_key[257]; /* of Amazon's with S3_SSE_KMS, and of Google's; "" = the default key */
    char scope[64];    /* Azure's encryption scope; "" = the container's */
    char account[25];  /* of Azure's */
    char bucket[64];
    char region[64];
    char host[320]; /* value of the Host header */
    /* "https://s3.example:9000", without a path; its host includes the bucket in virtual style */
    char *root;
    char dir[92];   /* "/bucket" in path style, "/account/container", or "" */
    char shown[96]; /* for people: "s3://bucket" */
    char *prefix;   /* "", or ends in '/' */
};

/* "s3://BUCKET[/PREFIX][?endpoint=URL][&region=NAME][&style=path|virtual]". The default endpoint is
 * Amazon's of the region; the default region is us-east-1; the default style is virtual at Amazon,
 * for names without a dot, and path elsewhere. ERR_INVALID says what is wrong and what is
 * expected. */
/* Each may also select the server-side encryption: s3 "sse=s3" or "sse=kms[&kms_key=ID]", gs
 * "kms_key=projects/...", az "encryption_scope=NAME". */
/* "gs://BUCKET[/PREFIX][?endpoint=URL]": always in path style, by default at
 * https://storage.googleapis.com. "az://ACCOUNT/CONTAINER[/PREFIX][?endpoint=URL]": by default at
 * https://ACCOUNT.blob.core.windows.net; the account is in the path at an endpoint whose host does
 * not begin with "ACCOUNT.". */
int s3_location_parse(const char *url, struct s3_location *ret_location, struct err *e);
bool s3_location_is_one(const char *url, enum store_keys_kind *ret_dialect);
/* by its scheme; ret may be NULL */            /* by its scheme */
void s3_location_deinit(struct s3_location *p); /* zeroed is allowed */

/* ---- Requests ---- */

/* Everything is borrowed. */
struct s3_request {
    const char *method;
    const char *key;                            /* below the prefix; NULL for the bucket itself */
    const char *query;                          /* encoded; "" or NULL if none */
    struct http_header headers[S3_HEADERS_MAX]; /* ends at the first without a name */
    const void *body;
    size_t n;
    const char *sha256; /* of the body, in hex */
};

#define S3_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

#define S3_ENCRYPTION_HEADERS 2
/* Fills the headers that select the location's server-side encryption in a request that creates an
 * object; unused ones have no name. Values are borrowed from p. */
void s3_encryption_headers(
    const struct s3_location *p, struct http_header out[S3_ENCRYPTION_HEADERS]);

struct s3_signed {
    char *url;
    char *headers[HTTP_HEADERS_MAX]; /* "Name: value", ends at the first NULL */
};

/* Amazon: signs all headers and the body's hash. Others: adds the token. ERR_INVALID: a value that
 * cannot be in a header; ERR_CONFIG: credentials of a kind that this location does not accept. */
int s3_sign(const struct s3_location *p, const struct s3_request *r, const struct store_keys *k,
    struct wall now, struct s3_signed *ret_signed, struct err *e);
void s3_signed_deinit(struct s3_signed *s); /* wipes; zeroed is allowed */

/* Writes "PUT s3://bucket/prefix/key", for errors. */
void s3_label(const struct s3_location *p, const struct s3_request *r, char *out, size_t size);

/* Converts a SHA-256 from hex to base64. */
void s3_base64_of_hex(const char *hex, char out[S3_BASE64_MAX]);
/* "" where MD5 is not allowed (FIPS) */
void s3_md5_base64(const void *p, size_t n, char out[S3_BASE64_MAX]);

struct s3_part {
    char etag[S3_ETAG_MAX];
    char sha256[S3_BASE64_MAX]; /* "" = the server keeps none, and may not know the element */
};
void s3_write_complete(struct buf *out, const struct s3_part *parts, size_t n);
/* Writes the request body that completes an upload to Azure; ids are in base64. */
void s3_write_block_list(struct buf *out, const char ids[][S3_BLOCK_ID_MAX], size_t n);
void s3_write_delete(
    struct buf *out, const struct s3_location *p, const char *const *names, size_t n);
/* "list-type=2&..."; below is relative to the prefix; token "" = the first page. */
void s3_write_list_query(
    struct buf *out, const struct s3_location *p, const char *below, const char *token);

/* ---- Replies ---- */

struct s3_error {
    char code[64]; /* "" = none */
    char message[256];
    char region[64];      /* the bucket's region, if the reply says so */
    char key[S3_KEY_MAX]; /* of an entry of s3_read_delete */
};

/* Reads an error body; leaves ret_error empty if it is not one. */
void s3_read_error(const char *body, size_t n, struct s3_error *ret_error);

/* non-zero stops the walk */
typedef int (*s3_key_fn)(void *ctx, const char *key, int64_t size_bytes);
struct s3_page {
    bool is_last, is_stopped;
    char token[S3_TOKEN_MAX]; /* of the next page */
};
/* Keys include the prefix. ERR_INVALID: not a list, or a page that is not the last and has no
 * token. */
int s3_read_list(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e);
/* Same for Azure. */
int s3_read_blobs(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e);

int s3_read_upload(const char *body, size_t n, char ret_id[S3_UPLOAD_ID_MAX], struct err *e);

/* For replies with status 200 that may still be an error (to a copy, or completing an upload):
 * reads the error; code is "" on success. element: prefix of the root element on success.
 * ERR_INVALID: neither. */
int s3_read_result(
    const char *body, size_t n, const char *element, struct s3_error *ret_error, struct err *e);

/* Reads the first relevant error of a reply to a delete (a missing key is none); code "" = none. */
int s3_read_delete(const char *body, size_t n, struct s3_error *ret_error, struct err *e);

enum s3_meaning {
    S3_DONE,
    S3_EXISTS,  /* the condition was not met */
    S3_MISSING, /* the key, or the upload */
    S3_RETRY,   /* not executed; try again later */
    S3_UNSURE,  /* perhaps executed; try again */
    S3_KEYS,    /* retry with other credentials */
    S3_CLOCK,   /* our clock is wrong */
    S3_NOT_IMPLEMENTED,
    S3_FULL,
    S3_ELSEWHERE, /* in another region */
    S3_DENIED,
    S3_NO_BUCKET,
    S3_REFUSED
};
enum s3_meaning s3_judge(int status, const struct s3_error *error);

#endif
