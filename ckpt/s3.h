/* SPDX-License-Identifier: Apache-2.0
 *
 * The S3 protocol as far as a store needs it: pure functions, from a URL to a place, from a request
 * to signed headers, from a reply to what it means. What Google Cloud Storage (its XML API) and
 * Azure's blobs do in the same way is here, too: a place knows whose dialect is spoken there.
 *
 * Sources: Amazon S3 API reference; "Signature Version 4", AWS General Reference; Google Cloud
 * Storage, XML API reference; Azure, Blob service REST API.
 */
#ifndef BELAY_CKPT_S3_H
#define BELAY_CKPT_S3_H

#include "base/http.h"
#include "ckpt/store/store_auth.h"

#define S3_URL_MAX 1024
#define S3_REPLY_MAX (8u << 20) /* of replies that are not an object */
#define S3_UPLOAD_ID_MAX 1024   /* with the NUL */
#define S3_TOKEN_MAX 2048       /* of a list that goes on; with the NUL */
#define S3_ETAG_MAX 128         /* with the NUL */
#define S3_KEY_MAX 1025         /* with the NUL: S3's own limit */
#define S3_BASE64_MAX 45        /* a SHA-256 in base64 with its NUL */
#define S3_HEADERS_MAX 6        /* of a request, beside those of signing */
#define S3_PARTS_MAX 10000
#define S3_BLOCK_ID_MAX 33 /* of Azure's; with the NUL */

/* ---- Where ---- */

/* What the server is told to encrypt new objects with. */
enum s3_sse { S3_SSE_NONE /* nothing: as the bucket says */, S3_SSE_S3, S3_SSE_KMS };

struct s3_place {
    enum store_keys_kind dialect;
    enum s3_sse sse;   /* of Amazon's */
    char kms_key[257]; /* of Amazon's with S3_SSE_KMS and of Google's: "": the usual one */
    char scope[64];    /* an encryption scope of Azure's; "": the container's */
    char account[25];  /* of Azure's */
    char bucket[64];
    char region[64];
    char host[320]; /* of the Host header */
    /* "https://s3.example:9000", without path; with the bucket in its host in virtual style */
    char *root;
    char dir[92];   /* "/bucket" in path style, "/account/container", else "" */
    char shown[96]; /* for people: "s3://bucket" */
    char *prefix;   /* "", or ends in '/' */
};

/* "s3://BUCKET[/PREFIX][?endpoint=URL][&region=NAME][&style=path|virtual]". Without an endpoint it
 * is Amazon's of the region; the usual region is us-east-1; the usual style is virtual at Amazon,
 * for names without a dot, and path elsewhere. ERR_INVALID says what is wrong and what is
 * expected. */
/* Each may have, too, how the server encrypts: s3 "sse=s3" or "sse=kms[&kms_key=ID]", gs
 * "kms_key=projects/...", az "encryption_scope=NAME". */
/* "gs://BUCKET[/PREFIX][?endpoint=URL]": always in path style, usually at
 * https://storage.googleapis.com. "az://ACCOUNT/CONTAINER[/PREFIX][?endpoint=URL]": usually at
 * https://ACCOUNT.blob.core.windows.net; the account is in the path at an endpoint whose host does
 * not begin with "ACCOUNT.". */
int s3_place_parse(const char *url, struct s3_place *ret_place, struct err *e);
bool s3_place_is_one(const char *url, enum store_keys_kind *ret_dialect);
/* by its scheme; ret may be NULL */      /* by its scheme */
void s3_place_deinit(struct s3_place *p); /* zeroed is fine */

/* ---- Requests ---- */

struct s3_header {
    const char *name;
    const char *value; /* one line */
};

/* Everything borrowed. */
struct s3_request {
    const char *method;
    const char *key;                          /* below the prefix; NULL: the bucket itself */
    const char *query;                        /* encoded; "" or NULL if none */
    struct s3_header headers[S3_HEADERS_MAX]; /* ends at the first without a name */
    const void *body;
    size_t n;
    const char *sha256; /* of the body, in hex */
};

#define S3_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

#define S3_ENCRYPTION_HEADERS 2
/* The headers of a request that makes an object, by which the server encrypts it as the place says;
 * the rest have no name. Values are borrowed from p. */
void s3_encryption_headers(const struct s3_place *p, struct s3_header out[S3_ENCRYPTION_HEADERS]);

struct s3_signed {
    char *url;
    char *headers[HTTP_HEADERS_MAX]; /* "Name: value", ends at the first NULL */
};

/* Amazon's: all headers are signed, and so is the body's hash. The others': the token goes along.
 * ERR_INVALID: something that cannot be in a header; ERR_CONFIG: credentials that this place does
 * not take. */
int s3_sign(const struct s3_place *p, const struct s3_request *r, const struct store_keys *k,
    struct wall now, struct s3_signed *ret_signed, struct err *e);
void s3_signed_deinit(struct s3_signed *s); /* wipes; zeroed is fine */

/* "PUT s3://bucket/prefix/key", for errors. */
void s3_label(const struct s3_place *p, const struct s3_request *r, char *out, size_t size);

/* The raw SHA-256 that hex says, in base64. */
void s3_base64_of_hex(const char *hex, char out[S3_BASE64_MAX]);
/* "" where MD5 is not allowed (FIPS) */
void s3_md5_base64(const void *p, size_t n, char out[S3_BASE64_MAX]);

struct s3_part {
    char etag[S3_ETAG_MAX];
    char sha256[S3_BASE64_MAX]; /* "": the server keeps none, and may not know the element */
};
void s3_write_complete(struct buf *out, const struct s3_part *parts, size_t n);
/* What ends an upload to Azure: ids are in base64. */
void s3_write_block_list(struct buf *out, const char ids[][S3_BLOCK_ID_MAX], size_t n);
void s3_write_delete(struct buf *out, const struct s3_place *p, const char *const *names, size_t n);
/* "list-type=2&..."; below is under the prefix; token "": the first page. */
void s3_write_list_query(
    struct buf *out, const struct s3_place *p, const char *below, const char *token);

/* ---- Replies ---- */

struct s3_error {
    char code[64]; /* "" = none */
    char message[256];
    char region[64];      /* where the bucket is, if it said so */
    char key[S3_KEY_MAX]; /* of an entry of s3_read_delete */
};

/* What a body of an error says; anything that is none leaves ret_error empty. */
void s3_read_error(const char *body, size_t n, struct s3_error *ret_error);

/* non-zero stops the walk */
typedef int (*s3_key_fn)(void *ctx, const char *key, int64_t size_bytes);
struct s3_page {
    bool is_last, is_stopped;
    char token[S3_TOKEN_MAX]; /* of the next */
};
/* Keys are whole, with the prefix. ERR_INVALID: it is no list, or a page that says it is not the
 * last without a token. */
int s3_read_list(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e);
/* The same of Azure's. */
int s3_read_blobs(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e);

int s3_read_upload(const char *body, size_t n, char ret_id[S3_UPLOAD_ID_MAX], struct err *e);

/* Replies with a status of 200 that can be an error all the same (of a copy, of completing an
 * upload): its error, with code "" if it is none. element: how the name of a good one begins.
 * ERR_INVALID: it is neither. */
int s3_read_result(
    const char *body, size_t n, const char *element, struct s3_error *ret_error, struct err *e);

/* The first error of a reply to a delete that matters (a key that was missing does not), code "":
 * none. */
int s3_read_delete(const char *body, size_t n, struct s3_error *ret_error, struct err *e);

enum s3_meaning {
    S3_DONE,
    S3_EXISTS,  /* the condition did not hold */
    S3_MISSING, /* the key, or the upload */
    S3_AGAIN,   /* nothing was done; try again later */
    S3_UNSURE,  /* perhaps it was done; try again */
    S3_KEYS,    /* other credentials may help */
    S3_CLOCK,   /* our clock is off */
    S3_NOT_IMPLEMENTED,
    S3_FULL,
    S3_ELSEWHERE, /* in another region */
    S3_DENIED,
    S3_NO_BUCKET,
    S3_REFUSED
};
enum s3_meaning s3_judge(int status, const struct s3_error *error);

#endif
