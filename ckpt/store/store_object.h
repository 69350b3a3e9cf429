/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of the stores in buckets (S3, Google Cloud Storage) and containers (Azure). An
 * object's key is the prefix of the store's URL and then its name.
 */
#ifndef BELAY_CKPT_STORE_STORE_OBJECT_H
#define BELAY_CKPT_STORE_STORE_OBJECT_H

#include "ckpt/store/s3_op.h"
#include "ckpt/store/store.h"

struct store_object {
    struct store base;
    struct s3_client client;
};

static inline struct s3_client *object_client(struct store *s)
{
    return &((struct store_object *)s)->client;
}

static inline bool object_is_large(struct store *s, size_t n)
{
    return n > 2 * atomic_load(&object_client(s)->facts->part_bytes);
}

/* Takes the location; o->net must not be NULL. */
void object_open(struct s3_location *location, const struct store_ops *ops,
    const struct store_options *o, struct store **ret_store);

int object_check_name(const char *name, struct err *e);

/* ---- What is there ---- */

int object_exists(struct store *s, const char *name, bool *ret_yes, struct err *e);

/* ---- Writing ---- */

/* Adds the headers for server-side encryption to a request that creates an object or starts an
 * upload. */
void object_encrypted(struct s3_op *op);
/* Adds the condition that the name does not exist. */
void object_if_absent(struct s3_op *op);
/* Records and logs, once, that the server answered 501 to the condition. */
void object_note_no_conditions(atomic_bool *fact, const struct s3_client *c, const char *what);

/* Runs a conditional write of body. Returns 0; ERR_CONFLICT; ERR_NOT_FOUND: the upload is gone, and
 * our object does not exist. */
int object_write(
    struct store *s, const char *name, struct s3_op *op, const void *body, size_t n, struct err *e);
/* The same for the request that makes an object of parts sent before: ERR_UNAVAILABLE if these are
 * gone. Some servers check the condition only before the parts are known, or not at all, so the
 * name is looked up first, too. */
int object_complete(
    struct store *s, const char *name, struct s3_op *op, const void *body, size_t n, struct err *e);

/* A write of an object in one request, initially unconditional. p is borrowed; do not move this
 * struct. */
struct object_put {
    struct s3_op op;
    char sha256[SIGV4_HEX_MAX], sum[S3_BASE64_MAX];
};
/* sha256: of p in hex, or NULL. */
void object_put_op(struct store *s, const char *name, const void *p, size_t n, const char *sha256,
    struct object_put *ret);

/* ---- Slots of store_ops ---- */

int object_create_whole(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e);
int object_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e);
int object_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e);
int object_list(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e);
/* Removes with one request per name, several at a time. Returns the first error; which other names
 * were removed is then undefined. */
int object_remove_each(struct store *s, const char *const *names, size_t n, struct err *e);
void object_close(struct store *s);

#endif
