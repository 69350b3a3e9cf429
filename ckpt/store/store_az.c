/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a container of Azure's blobs. It has the invariants of store_s3.c; a blob appears
 * with Put Blob, or with the Put Block List that ends an upload, both with `If-None-Match: *`.
 *
 * Blocks have random names, so those of two concurrent uploads of one blob are never mixed. Azure
 * discards the blocks of an abandoned upload after a week.
 *
 * Not here: copies inside the store. They also need a signature or a token for the source. So link
 * returns ERR_UNSUPPORTED and the caller writes the bytes; rename, which only damaged objects need,
 * reads and writes.
 */
#include "ckpt/store/store_az.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/store/store_object.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 50000
#define ID_BYTES 24 /* a multiple of 3, so that its base64 has no '=' */

struct upload {
    struct store *store;
    const char *name;
    char tag[17]; /* common to all its blocks */
    char (*ids)[S3_BLOCK_ID_MAX];
    size_t n;
};

static int upload_block(struct upload *u, const void *p, size_t n, struct err *e)
{
    char text[ID_BYTES + 1], *id = u->ids[u->n], sha256[SIGV4_HEX_MAX], md5[S3_BASE64_MAX];
    struct buf query = {0};
    snprintf(text, sizeof(text), "%s%08zu", u->tag, u->n);
    EVP_EncodeBlock((unsigned char *)id, (const unsigned char *)text, ID_BYTES);
    buf_adds(&query, "comp=block&blockid=");
    str_url_encode(&query, id, strlen(id));
    struct s3_op op = s3_op_make(object_client(u->store), "PUT", u->name, buf_str(&query));
    s3_op_body(&op, p, n, sha256);
    s3_md5_base64(p, n, md5);
    if (md5[0])
        s3_op_header(&op, "Content-MD5", md5);
    object_encrypted(&op); /* for each block and for the list, which must agree */
    int rc = s3_op_finish(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = s3_op_refused(&op, ERR_UNAVAILABLE, "uploading a block failed", e);
    else if (rc == 0)
        u->n++;
    buf_deinit(&query);
    return rc;
}

static int upload_commit(struct upload *u, const void *p, size_t n, struct err *e)
{
    char sha256[SIGV4_HEX_MAX];
    struct buf body = {0};
    struct s3_op op = s3_op_make(object_client(u->store), "PUT", u->name, "comp=blocklist");
    s3_write_block_list(&body, (const char(*)[S3_BLOCK_ID_MAX])u->ids, u->n);
    s3_op_body(&op, buf_str(&body), body.len, sha256);
    s3_op_header(&op, "Content-Type", "application/xml");
    object_encrypted(&op);
    int rc = object_complete(u->store, u->name, &op, p, n, e);
    buf_deinit(&body);
    return rc;
}

static int create_in_blocks(
    struct store *s, const char *name, const char *p, size_t n, struct err *e)
{
    struct upload u = {.store = s, .name = name};
    size_t part = atomic_load(&object_client(s)->facts->part_bytes),
           n_blocks = (n + part - 1) / part;
    int rc = 0;
    if (n_blocks > BLOCKS_MAX)
        return err_set(e, ERR_INVALID, "%s: %zu bytes are too many for one object", name, n);
    random_hex((sizeof(u.tag) - 1) / 2, u.tag);
    u.ids = mem_array(n_blocks, sizeof(*u.ids));
    for (size_t at = 0; rc == 0 && at < n; at += part)
        rc = upload_block(&u, p + at, n - at < part ? n - at : part, e);
    if (rc == 0)
        rc = upload_commit(&u, p, n, e);
    free(u.ids);
    return rc;
}

static int az_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    int rc = object_check_name(name, e);
    if (rc != 0)
        return rc;
    return object_is_large(s, n) ? create_in_blocks(s, name, p, n, e)
                                 : object_create_whole(s, name, p, n, NULL, e);
}

/* Replaces the object. */
static int replace_from(struct store *s, const char *name, const struct buf *bytes, struct err *e)
{
    struct object_put put;
    object_put_op(s, name, buf_str(bytes), bytes->len, NULL, &put);
    int rc = s3_op_finish(&put.op, e);
    return rc == 0 && put.op.meaning != S3_DONE
               ? s3_op_refused(&put.op, ERR_IO, "the object cannot be replaced", e)
               : rc;
}

static int az_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    const char *const names[] = {from};
    struct buf bytes = {0};
    int64_t size;
    int rc = object_check_name(to, e);
    if (rc == 0)
        rc = object_stat(s, from, &size, e);
    if (rc == 0)
        rc = object_read(s, from, (size_t)size, &bytes, e);
    if (rc == 0)
        rc = replace_from(s, to, &bytes, e);
    if (rc == 0)
        rc = object_remove_each(s, names, 1, e);
    buf_deinit(&bytes);
    return rc;
}

static int az_link(struct store *s, const char *from, const char *to, struct err *e)
{
    (void)s, (void)from;
    return err_set(e, ERR_UNSUPPORTED, "%s: this store does not copy", to);
}

const struct store_ops store_az_ops = {
    .scheme = "az",
    .create = az_create,
    .read = object_read,
    .stat = object_stat,
    .list = object_list,
    .remove = object_remove_each,
    .rename = az_rename,
    .link = az_link,
    .close = object_close,
};
