/* SPDX-License-Identifier: Apache-2.0
 *
 * Content of the emulator's buckets: objects by key, and multipart uploads in progress. All in
 * memory.
 */
#ifndef BELAY_EMULATOR_S3_OBJECTS_H
#define BELAY_EMULATOR_S3_OBJECTS_H

#include "base/buf.h"
#include "base/list.h"
#include "base/time.h"

#define S3_NAME_MAX 64
#define S3_KEY_BYTES 1024
#define S3_BUCKETS_MAX 16
#define S3_PARTS_LIMIT 10000
#define S3_ETAG_BYTES 48     /* hex, possibly with "-N", including the NUL; without quotes */
#define S3_CHECKSUM_BYTES 64 /* base64, possibly with "-N", including the NUL */

struct s3_object {
    char *key;
    struct buf data;
    char etag[S3_ETAG_BYTES];
    char sha256[S3_CHECKSUM_BYTES]; /* "" if none was given */
    struct wall modified;
};

struct s3_bucket {
    char name[S3_NAME_MAX];
    struct s3_object **objects; /* in byte order of their keys */
    size_t n, cap;
};

struct s3_upload_part {
    struct buf data;
    char etag[S3_ETAG_BYTES];
    char sha256[S3_CHECKSUM_BYTES];
    bool is_there;
};

struct s3_upload {
    struct link link;
    struct s3_bucket *bucket;
    char *key;
    char id[33];
    struct s3_upload_part *parts; /* parts 1 .. n_parts */
    size_t n_parts;
};

struct s3_objects {
    struct s3_bucket buckets[S3_BUCKETS_MAX];
    size_t n_buckets;
    struct list uploads;
    size_t bytes; /* of all objects and parts */
};

void s3_objects_deinit(struct s3_objects *o);
void s3_objects_add_bucket(struct s3_objects *o, const char *name);
struct s3_bucket *s3_objects_bucket(
    struct s3_objects *o, const char *name, size_t n); /* NULL if unknown */

/* NULL if unknown */
struct s3_object *s3_bucket_find(const struct s3_bucket *b, const char *key);
size_t s3_bucket_after(
    /* index of the first object after key (or at it, with or_equal) */
    const struct s3_bucket *b, const char *key, bool or_equal);
/* Takes over data; replaces an object with the same key. */
struct s3_object *s3_bucket_put(
    struct s3_objects *o, struct s3_bucket *b, const char *key, struct buf *data, struct wall now);
/* no-op if it is missing */
void s3_bucket_remove(struct s3_objects *o, struct s3_bucket *b, const char *key);

struct s3_upload *s3_upload_new(struct s3_objects *o, struct s3_bucket *b, const char *key);
struct s3_upload *s3_upload_find(
    struct s3_objects *o, const struct s3_bucket *b, const char *key, const char *id);
/* number counts from 1; copies the bytes, replaces the part of that number. */
struct s3_upload_part *s3_upload_put(
    struct s3_objects *o, struct s3_upload *u, size_t number, const void *p, size_t n);
void s3_upload_free(struct s3_objects *o, struct s3_upload *u);

void s3_md5_hex(const void *p, size_t n, char out[33]);
void s3_sha256_base64(const void *p, size_t n, char out[S3_CHECKSUM_BYTES]);

#endif
