/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a bucket of S3, or of Google Cloud Storage by its XML API.
 *
 * Invariants.
 *  1. An object appears whole or not at all, and is durable when create returns: S3 guarantees that
 *     once it has replied to a PUT, or to the completion of an upload.
 *  2. create does not change an existing object: `If-None-Match: *`. After a lost reply it is
 *     unknown whether the object is ours; the object is then compared with what we sent, so that
 *     our own object is never a conflict.
 *  3. What was sent is what is stored: at S3 its SHA-256 is part of the signature, and given as the
 *     object's checksum.
 *
 * Google gets every object in one request, however large, because its uploads in parts have no
 * conditions. Its condition is x-goog-if-generation-match: 0, its checksum is the MD5, and objects
 * are removed one by one.
 *
 * A server without conditional writes (501) is recorded as such. There, create checks first and
 * then writes, which is not atomic. Checkpoints do not rely on it: every name that a commit creates
 * contains the number of its attempt, a number is given to only one node, and a stale attempt finds
 * the fence of the newer one in a listing. Two concurrent writers of one name would be two agents
 * of one node with the same attempt, which the lock of the agent's directory rules out.
 *
 * Large objects are sent in parts. Some servers (Ceph) support the condition on a PUT but ignore it
 * for the completion of an upload, or for a copy, so the name is looked up first, too.
 *
 * Not here: bodies are not checked against the store's checksum, because every chunk and manifest
 * is verified by its own hash. An upload whose first reply was lost stays until the bucket's
 * life-cycle rule for incomplete uploads removes it.
 */
#include "ckpt/store/store_s3.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/store_az.h"
#include "ckpt/store/store_object.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES "application/octet-stream"
#define XML "application/xml"

/* ---- create, in parts ---- */

struct upload {
    struct store *store;
    const char *name;
    char id[3 * S3_UPLOAD_ID_MAX]; /* encoded */
    struct s3_part *parts;
    size_t n_parts;
};

static int upload_begin(struct upload *u, struct err *e)
{
    struct s3_op op = s3_op_make(object_client(u->store), "POST", u->name, "uploads=");
    char id[S3_UPLOAD_ID_MAX];
    struct buf encoded = {0};
    s3_op_header(&op, "Content-Type", BYTES);
    s3_op_header(&op, "x-amz-checksum-algorithm", "SHA256");
    object_encrypted(&op);
    int rc = s3_op_run(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = s3_op_refused(&op, ERR_IO, "starting an upload failed", e);
    if (rc == 0 && s3_read_upload(buf_str(&op.reply.body), op.reply.body.len, id, e) != 0)
        rc = err_wrap(e, "%s: the reply to an upload's beginning", u->name);
    if (rc == 0) {
        str_url_encode(&encoded, id, strlen(id));
        STR_COPY(u->id, buf_str(&encoded));
    }
    buf_deinit(&encoded);
    s3_op_deinit(&op);
    return rc;
}

static int upload_part(struct upload *u, const void *p, size_t n, struct err *e)
{
    struct s3_part *part = &u->parts[u->n_parts];
    char sha256[SIGV4_HEX_MAX];
    char *query = mem_printf("partNumber=%zu&uploadId=%s", u->n_parts + 1, u->id);
    struct s3_op op = s3_op_make(object_client(u->store), "PUT", u->name, query);
    s3_op_body(&op, p, n, sha256);
    s3_base64_of_hex(sha256, part->sha256);
    s3_op_header(&op, "x-amz-checksum-sha256", part->sha256);
    int rc = s3_op_run(&op, e);
    const char *etag = rc == 0 ? http_reply_header(&op.reply, "etag") : NULL;
    if (rc == 0 && !http_reply_header(&op.reply, "x-amz-checksum-sha256"))
        part->sha256[0] = '\0';
    if (rc == 0 && op.meaning != S3_DONE)
        rc = s3_op_refused(&op, ERR_UNAVAILABLE, "the upload is gone", e);
    else if (rc == 0 && (!etag || !STR_COPY(part->etag, etag)))
        rc = s3_op_refused(&op, ERR_IO, "the reply to a part has no ETag", e);
    if (rc == 0)
        u->n_parts++;
    s3_op_deinit(&op);
    free(query);
    return rc;
}

static int upload_complete(struct upload *u, const void *p, size_t n, struct err *e)
{
    char sha256[SIGV4_HEX_MAX];
    char *query = mem_printf("uploadId=%s", u->id);
    struct buf body = {0};
    struct s3_op op = s3_op_make(object_client(u->store), "POST", u->name, query);
    s3_write_complete(&body, u->parts, u->n_parts);
    s3_op_body(&op, buf_str(&body), body.len, sha256);
    s3_op_header(&op, "Content-Type", XML);
    op.result = "CompleteMultipartUpload";
    int rc = object_complete(u->store, u->name, &op, p, n, e);
    buf_deinit(&body);
    free(query);
    return rc;
}

/* Aborts the upload, so that its parts cost no storage. If this fails, the bucket's life-cycle rule
 * removes them. */
static void upload_abort(struct upload *u)
{
    char *query = mem_printf("uploadId=%s", u->id);
    struct s3_op op = s3_op_make(object_client(u->store), "DELETE", u->name, query);
    struct err e;
    if (s3_op_finish(&op, &e) != 0)
        log_warn("an unfinished upload remains in the store", log_err(&e));
    free(query);
}

static int create_in_parts(
    struct store *s, const char *name, const char *p, size_t n, struct err *e)
{
    struct upload u = {.store = s, .name = name};
    size_t part = atomic_load(&object_client(s)->facts->part_bytes),
           n_parts = (n + part - 1) / part;
    if (n_parts > S3_PARTS_MAX)
        return err_set(e, ERR_INVALID, "%s: %zu bytes are too many for one object", name, n);
    int rc = upload_begin(&u, e);
    if (rc != 0)
        return rc;
    u.parts = mem_array(n_parts, sizeof(*u.parts));
    for (size_t at = 0; rc == 0 && at < n; at += part)
        rc = upload_part(&u, p + at, n - at < part ? n - at : part, e);
    if (rc == 0)
        rc = upload_complete(&u, p, n, e);
    if (rc != 0)
        upload_abort(&u);
    free(u.parts);
    return rc;
}

static int s3_put(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    int rc = object_check_name(name, e);
    if (rc != 0)
        return rc;
    bool in_parts = object_is_large(s, n) && object_client(s)->location.dialect == STORE_KEYS_AWS;
    return in_parts ? create_in_parts(s, name, p, n, e)
                    : object_create_whole(s, name, p, n, sha256, e);
}

static int s3_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    return s3_put(s, name, p, n, NULL, e);
}

/* ---- remove, rename, link ---- */

/* Reads the answer to DeleteObjects, a 200 even if names were not removed, into the struct s3_error
 * ctx: the first error that a later try cannot change. */
static int accept_removal(void *ctx, const char *body, size_t n, struct err *e)
{
    struct s3_error *first = ctx;
    int rc = s3_read_delete(body, n, first, e);
    enum s3_meaning m = rc == 0 && first->code[0] ? s3_judge(200, first) : S3_DONE;
    if (m != S3_RETRY && m != S3_UNSURE)
        return rc;
    return err_set(e, ERR_UNAVAILABLE, "%.200s cannot be removed: %s: %.120s", first->key,
        first->code, first->message);
}

/* Removes at most STORE_REMOVE_MAX names with one request. */
static int remove_batch(struct store *s, const char *body, size_t n, struct err *e)
{
    char sha256[SIGV4_HEX_MAX], sum[S3_BASE64_MAX], md5[S3_BASE64_MAX];
    struct s3_error first = {0};
    struct s3_op op = s3_op_make(object_client(s), "POST", NULL, "delete=");
    s3_op_body(&op, body, n, sha256);
    s3_base64_of_hex(sha256, sum);
    s3_md5_base64(body, n, md5);
    s3_op_header(&op, "Content-Type", XML);
    s3_op_header(&op, "x-amz-checksum-sha256", sum);
    if (md5[0]) /* required by older servers */
        s3_op_header(&op, "Content-MD5", md5);
    op.accept = accept_removal;
    op.accept_ctx = &first;
    int rc = s3_op_run(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = s3_op_refused(&op, ERR_CONFIG, "nothing to remove from: check the bucket's name", e);
    if (rc == 0 && first.code[0])
        rc = err_set(e, ERR_DENIED, "%.200s cannot be removed: %s: %.120s", first.key, first.code,
            first.message);
    s3_op_deinit(&op);
    return rc;
}

static int s3_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    struct buf body = {0};
    if (object_client(s)->location.dialect != STORE_KEYS_AWS)
        return object_remove_each(s, names, n, e);
    int rc =
        n > STORE_REMOVE_MAX ? err_set(e, ERR_INVALID, "more than %d names", STORE_REMOVE_MAX) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = object_check_name(names[i], e);
    if (rc != 0 || n == 0)
        return rc;
    s3_write_delete(&body, &object_client(s)->location, names, n);
    rc = remove_batch(s, buf_str(&body), body.len, e);
    buf_deinit(&body);
    return rc;
}

/* Copies `from` to `to`, conditionally or not. op.meaning as after s3_op_run. */
static int copy(struct store *s, const char *from, const char *to, bool is_conditional,
    struct s3_op *ret_op, struct err *e)
{
    const struct s3_location *location = &object_client(s)->location;
    bool is_amazon = location->dialect == STORE_KEYS_AWS;
    char *source =
        mem_printf("%s%s/%s%s", is_amazon ? "/" : "", location->bucket, location->prefix, from);
    struct s3_op op = s3_op_make(object_client(s), "PUT", to, NULL);
    s3_op_header(&op, is_amazon ? "x-amz-copy-source" : "x-goog-copy-source", source);
    object_encrypted(&op);
    if (is_conditional)
        object_if_absent(&op);
    op.may_lack = is_conditional;
    if (is_amazon) /* at Google a 200 is a success */
        op.result = "CopyObject";
    int rc = s3_op_finish(&op, e);
    free(source);
    if (rc == 0 && op.meaning == S3_MISSING)
        rc = err_set(e, ERR_NOT_FOUND, "there is no object %s", from);
    *ret_op = op;
    return rc;
}

static int s3_rename(struct store *s, const char *from, const char *to, struct err *e)
{
    const char *const names[] = {from};
    struct s3_op op;
    int rc = object_check_name(from, e);
    if (rc == 0)
        rc = object_check_name(to, e);
    if (rc == 0)
        rc = copy(s, from, to, false, &op, e);
    return rc == 0 ? s3_remove(s, names, 1, e) : rc;
}

/* A copy that finds the name taken after a lost reply counts as done: callers copy only the content
 * that the name stands for. */
static int s3_link(struct store *s, const char *from, const char *to, struct err *e)
{
    struct s3_client *c = object_client(s);
    bool exists = false;
    struct s3_op op = {0};
    int rc = object_check_name(from, e);
    if (rc == 0)
        rc = object_check_name(to, e);
    if (rc == 0)
        rc = object_exists(s, to, &exists, e);
    if (rc == 0 && exists)
        return err_set(e, ERR_CONFLICT, "%s exists", to);
    if (rc == 0 && !atomic_load(&c->facts->no_conditional_copy)) {
        rc = copy(s, from, to, true, &op, e);
        if (rc == 0 && op.meaning == S3_EXISTS)
            return op.is_unsure ? 0 : err_set(e, ERR_CONFLICT, "%s exists", to);
        if (rc != 0 || op.meaning == S3_DONE)
            return rc;
        object_note_no_conditions(&c->facts->no_conditional_copy, c, "copy");
    }
    return rc == 0 ? copy(s, from, to, false, &op, e) : rc;
}

/* ---- open ---- */

static const struct store_ops s3_ops = {
    .scheme = "s3",
    .create = s3_create,
    .put = s3_put,
    .read = object_read,
    .stat = object_stat,
    .list = object_list,
    .remove = s3_remove,
    .rename = s3_rename,
    .link = s3_link,
    .close = object_close,
};

static const struct store_ops gs_ops = {
    .scheme = "gs",
    .create = s3_create,
    .put = s3_put,
    .read = object_read,
    .stat = object_stat,
    .list = object_list,
    .remove = s3_remove,
    .rename = s3_rename,
    .link = s3_link,
    .close = object_close,
};

int store_s3_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e)
{
    static const struct store_ops *const all[STORE_KEYS_KINDS] = {[STORE_KEYS_AWS] = &s3_ops,
        [STORE_KEYS_GOOGLE] = &gs_ops,
        [STORE_KEYS_AZURE] = &store_az_ops};
    struct s3_location location;
    if (s3_location_parse(url, &location, e) != 0)
        return err_wrap(e, "store '%.200s'", url);
    if (!o->net) {
        s3_location_deinit(&location);
        return err_set(
            e, ERR_UNSUPPORTED, "store '%.200s': this program has no network stores", url);
    }
    object_open(&location, all[location.dialect], o, ret_store);
    return 0;
}
