/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in a bucket. An object's key is the prefix of the store's URL and then its name.
 *
 * Invariants.
 *  1. An object appears whole or not at all, and is durable when create returns: that is S3's own promise, once the
 *     reply to a PUT, or to the completion of an upload, says so.
 *  2. create does not change what is there: `If-None-Match: *`. A reply that was lost leaves open whether the object is
 *     ours; what is there is then compared with what we sent, so that our own object is never a conflict.
 *  3. What was sent is what is stored: its SHA-256 is part of the signature, and given as the object's checksum.
 *
 * A server without conditional writes (501) is remembered as such. There, create looks first and then writes, which is
 * not the same if two do it at once. The checkpoints do not rest on it: every name that a commit makes holds the number
 * of its attempt, a number is given to one node only, and a stale attempt finds the fence of the newer one in a listing.
 * Two that write one name at once would be two agents of one node with one attempt, which the lock of the agent's
 * directory rules out.
 *
 * Large objects are sent in parts. Some servers know the condition on a PUT but ignore it when an upload is
 * completed, so the name is looked up before as well.
 *
 * Not here: the bodies that are read are not checked against the store's checksum, for every chunk and manifest is
 * checked by its own hash. Uploads whose beginning was answered to nobody stay until the bucket's life-cycle rule for
 * incomplete uploads removes them.
 */
#include "ckpt/store_s3.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3_op.h"
#include "cloud/aws/sigv4.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES (8u << 20)
#define WHOLE_BYTES_MAX (16u << 20) /* larger ones are sent in parts */
#define BYTES "application/octet-stream"
#define XML "application/xml"

struct store_s3 {
    struct store base;
    struct s3_client client;
};

/* An op whose request has an empty body and no headers. */
static struct s3_op op_make(struct store *s, const char *method, const char *key, const char *query)
{
    return (struct s3_op){.client = &((struct store_s3 *)s)->client,
        .request = {.method = method, .key = key, .query = query, .sha256 = S3_EMPTY_SHA256}};
}

/* The op's body, and hex for its hash. */
static void op_body(struct s3_op *op, const void *p, size_t n, char sha256[SIGV4_HEX_MAX])
{
    sigv4_sha256_hex(p, n, sha256);
    op->request.body = p;
    op->request.n = n;
    op->request.sha256 = sha256;
}

static void op_header(struct s3_op *op, const char *name, const char *value)
{
    size_t n = 0;
    while (op->request.headers[n].name)
        n++;
    op->request.headers[n] = (struct s3_header){name, value};
}

/* s3_op_run, and deinit of an op whose reply is not wanted. */
static int op_run(struct s3_op *op, struct err *e)
{
    int rc = s3_op_run(op, e);
    s3_op_deinit(op);
    return rc;
}

static int op_refused(const struct s3_op *op, enum err_kind kind, const char *what, struct err *e)
{
    char label[S3_KEY_MAX + 128];
    s3_label(&op->client->place, &op->request, label, sizeof(label));
    return err_set(e, kind, "%s: %s", label, what);
}

static int check_name(const char *name, struct err *e)
{
    return store_name_is_valid(name) ? 0
                                     : err_set(e, ERR_INVALID, "'%.100s' is not a valid object name", name);
}

static void note_no_conditions(atomic_bool *fact, const struct s3_client *c, const char *what)
{
    if (!atomic_exchange(fact, true))
        log_warn("the store has no conditional writes: names are looked up before they are written",
            log_s("store", c->place.root), log_s("bucket", c->place.bucket), log_s("for", what));
}

/* ---- What is there ---- */

/* S3_DONE with size and checksum ("": not known), or S3_MISSING. */
static int look(struct store *s, const char *name, enum s3_meaning *ret_meaning, int64_t *ret_size,
    char ret_sha256[S3_BASE64_MAX], struct err *e)
{
    struct s3_op op = op_make(s, "HEAD", name, NULL);
    op_header(&op, "x-amz-checksum-mode", "ENABLED");
    int rc = s3_op_run(&op, e);
    if (rc == 0 && op.meaning == S3_DONE) {
        const char *size = http_reply_header(&op.reply, "content-length");
        const char *sum = http_reply_header(&op.reply, "x-amz-checksum-sha256");
        rc = str_to_i64(size ? size : "", 0, INT64_MAX, "Content-Length", ret_size, e);
        if (rc != 0)
            rc = op_refused(&op, ERR_IO, "the reply does not say how large the object is", e);
        if (!sum || !str_copy(ret_sha256, S3_BASE64_MAX, sum))
            ret_sha256[0] = '\0';
    }
    *ret_meaning = op.meaning;
    s3_op_deinit(&op);
    return rc;
}

static int is_there(struct store *s, const char *name, bool *ret_yes, struct err *e)
{
    char sum[S3_BASE64_MAX];
    enum s3_meaning meaning;
    int64_t size;
    int rc = look(s, name, &meaning, &size, sum, e);
    *ret_yes = meaning != S3_MISSING;
    return rc;
}

static int read_all(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    struct s3_op op = op_make(s, "GET", name, NULL);
    op.resumes = out;
    op.reply_max = max;
    int rc = op_run(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = op_refused(&op, ERR_NOT_FOUND, "there is no such object", e);
    else if (rc == 0 && out->len > max)
        rc = err_set(e, ERR_INVALID, "%s is larger than the %zu bytes allowed", name, max);
    return rc;
}

/* After a reply that was lost: is what is there what we sent? 0, ERR_CONFLICT, or why that cannot be said. */
static int check_ours(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    char sum[S3_BASE64_MAX], hex[SIGV4_HEX_MAX], ours[S3_BASE64_MAX];
    struct buf there = {0};
    enum s3_meaning meaning;
    int64_t size;
    int rc = look(s, name, &meaning, &size, sum, e);
    if (rc != 0)
        return rc;
    if (meaning == S3_MISSING)
        return err_set(e, ERR_UNAVAILABLE, "%s was there, and is gone", name);
    if ((uint64_t)size != n)
        return err_set(e, ERR_CONFLICT, "%s exists", name);
    if (sum[0] && !strchr(sum, '-')) { /* not that of an upload in parts, which is a hash of hashes */
        sigv4_sha256_hex(p, n, hex);
        s3_base64_of_hex(hex, ours);
        return str_eq(sum, ours) ? 0 : err_set(e, ERR_CONFLICT, "%s exists", name);
    }
    rc = read_all(s, name, n, &there, e);
    if (rc == 0 && (there.len != n || memcmp(buf_str(&there), p, n) != 0))
        rc = err_set(e, ERR_CONFLICT, "%s exists", name);
    buf_deinit(&there);
    return rc;
}

/* ---- create ---- */

/* Runs a conditional write. 0; ERR_CONFLICT; ERR_NOT_FOUND: the upload is gone, and nothing of ours is there. body is
 * what the object is to be. */
static int write_once(
    struct store *s, const char *name, struct s3_op *op, const void *body, size_t n, struct err *e)
{
    struct s3_client *c = &((struct store_s3 *)s)->client;
    struct s3_op plain = *op;
    bool exists = false;
    int rc;
    op_header(op, "If-None-Match", "*");
    op->may_lack = true;
    if (!atomic_load(&c->facts->no_conditional_put)) {
        rc = op_run(op, e);
        if (rc != 0 || op->meaning != S3_NOT_IMPLEMENTED)
            goto judge;
        note_no_conditions(&c->facts->no_conditional_put, c, "create");
    }
    *op = plain;
    rc = is_there(s, name, &exists, e);
    if (rc == 0 && exists)
        return err_set(e, ERR_CONFLICT, "%s exists", name);
    if (rc == 0)
        rc = op_run(op, e);
judge:
    if (rc != 0 || op->meaning == S3_DONE)
        return rc;
    if (op->is_unsure) {
        rc = check_ours(s, name, body, n, e);
        if (rc == 0 || op->meaning == S3_EXISTS)
            return rc;
    }
    if (op->meaning == S3_MISSING)
        return op_refused(op, ERR_NOT_FOUND, "the upload is gone", e);
    return err_set(e, ERR_CONFLICT, "%s exists", name);
}

static int create_whole(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    char sha256[SIGV4_HEX_MAX], sum[S3_BASE64_MAX];
    struct s3_op op = op_make(s, "PUT", name, NULL);
    op_body(&op, p, n, sha256);
    s3_base64_of_hex(sha256, sum);
    op_header(&op, "Content-Type", BYTES);
    op_header(&op, "x-amz-checksum-sha256", sum);
    int rc = write_once(s, name, &op, p, n, e);
    if (rc == ERR_NOT_FOUND) /* of a PUT: the bucket, without a word for it */
        e->kind = rc = ERR_CONFIG;
    return rc;
}

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
    struct s3_op op = op_make(u->store, "POST", u->name, "uploads=");
    char id[S3_UPLOAD_ID_MAX];
    struct buf encoded = {0};
    op_header(&op, "Content-Type", BYTES);
    op_header(&op, "x-amz-checksum-algorithm", "SHA256");
    int rc = s3_op_run(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = op_refused(&op, ERR_IO, "an upload cannot be begun", e);
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
    struct s3_op op = op_make(u->store, "PUT", u->name, query);
    op_body(&op, p, n, sha256);
    s3_base64_of_hex(sha256, part->sha256);
    op_header(&op, "x-amz-checksum-sha256", part->sha256);
    int rc = s3_op_run(&op, e);
    const char *etag = rc == 0 ? http_reply_header(&op.reply, "etag") : NULL;
    if (rc == 0 && op.meaning != S3_DONE)
        rc = op_refused(&op, ERR_UNAVAILABLE, "the upload is gone", e);
    else if (rc == 0 && (!etag || !STR_COPY(part->etag, etag)))
        rc = op_refused(&op, ERR_IO, "the reply to a part has no ETag", e);
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
    struct s3_op op = op_make(u->store, "POST", u->name, query);
    bool exists = false;
    s3_write_complete(&body, u->parts, u->n_parts);
    op_body(&op, buf_str(&body), body.len, sha256);
    op_header(&op, "Content-Type", XML);
    op.result = "CompleteMultipartUpload";
    int rc = is_there(u->store, u->name, &exists, e);
    if (rc == 0 && exists)
        rc = err_set(e, ERR_CONFLICT, "%s exists", u->name);
    if (rc == 0)
        rc = write_once(u->store, u->name, &op, p, n, e);
    if (rc == ERR_NOT_FOUND)
        e->kind = rc = ERR_UNAVAILABLE;
    buf_deinit(&body);
    free(query);
    return rc;
}

/* So that nobody pays for it. What fails here is left to the bucket's life-cycle rule. */
static void upload_abort(struct upload *u)
{
    char *query = mem_printf("uploadId=%s", u->id);
    struct s3_op op = op_make(u->store, "DELETE", u->name, query);
    struct err e;
    if (op_run(&op, &e) != 0)
        log_warn("an unfinished upload stays in the store", log_err(&e));
    free(query);
}

static int create_in_parts(struct store *s, const char *name, const char *p, size_t n, struct err *e)
{
    struct upload u = {.store = s, .name = name};
    size_t n_parts = (n + PART_BYTES - 1) / PART_BYTES;
    if (n_parts > S3_PARTS_MAX)
        return err_set(e, ERR_INVALID, "%s: %zu bytes are too many for one object", name, n);
    int rc = upload_begin(&u, e);
    if (rc != 0)
        return rc;
    u.parts = mem_array(n_parts, sizeof(*u.parts));
    for (size_t at = 0; rc == 0 && at < n; at += PART_BYTES)
        rc = upload_part(&u, p + at, n - at < PART_BYTES ? n - at : PART_BYTES, e);
    if (rc == 0)
        rc = upload_complete(&u, p, n, e);
    if (rc != 0)
        upload_abort(&u);
    free(u.parts);
    return rc;
}

static int s3_create(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    int rc = check_name(name, e);
    if (rc != 0)
        return rc;
    return n > WHOLE_BYTES_MAX ? create_in_parts(s, name, p, n, e) : create_whole(s, name, p, n, e);
}

/* ---- read, stat, list ---- */

static int s3_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    int rc = check_name(name, e);
    return rc == 0 ? read_all(s, name, max, out, e) : rc;
}

static int s3_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    char sum[S3_BASE64_MAX];
    enum s3_meaning meaning;
    int64_t size;
    int rc = check_name(name, e);
    if (rc == 0)
        rc = look(s, name, &meaning, &size, sum, e);
    if (rc == 0 && meaning != S3_DONE)
        rc = err_set(e, ERR_NOT_FOUND, "there is no object %s", name);
    if (rc == 0)
        *ret_size = size;
    return rc;
}

struct walk {
    const char *prefix;
    store_each_fn fn;
    void *ctx;
};

static int on_key(void *ctx, const char *key, int64_t size_bytes)
{
    const struct walk *w = ctx;
    const char *name = key + strlen(w->prefix);
    if (!str_starts(key, w->prefix) || !store_name_is_valid(name))
        return 0; /* not ours */
    return w->fn(w->ctx, name, size_bytes);
}

static int s3_list(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    const struct s3_place *place = &((struct store_s3 *)s)->client.place;
    struct walk w = {.prefix = place->prefix, .fn = fn, .ctx = ctx};
    struct s3_page page = {0};
    int rc = 0;
    while (rc == 0 && !page.is_last && !page.is_stopped) {
        struct buf query = {0};
        s3_write_list_query(&query, place, prefix, page.token);
        struct s3_op op = op_make(s, "GET", NULL, buf_str(&query));
        rc = s3_op_run(&op, e);
        if (rc == 0 && op.meaning != S3_DONE)
            rc = op_refused(&op, ERR_CONFIG, "there is nothing to list; is the bucket's name right?", e);
        if (rc == 0)
            rc = s3_read_list(buf_str(&op.reply.body), op.reply.body.len, on_key, &w, &page, e);
        if (rc == ERR_INVALID)
            rc = op_refused(&op, ERR_IO, e->text, e);
        s3_op_deinit(&op);
        buf_deinit(&query);
    }
    return rc;
}

/* ---- remove, rename, link ---- */

#define REMOVE_TRIES 5

/* *ret_again: some could not be removed now. */
static int remove_once(struct store *s, const char *body, size_t n, bool *ret_again, struct err *e)
{
    char sha256[SIGV4_HEX_MAX], sum[S3_BASE64_MAX], md5[S3_BASE64_MAX];
    struct s3_error first = {0};
    struct s3_op op = op_make(s, "POST", NULL, "delete=");
    op_body(&op, body, n, sha256);
    s3_base64_of_hex(sha256, sum);
    s3_md5_base64(body, n, md5);
    op_header(&op, "Content-Type", XML);
    op_header(&op, "x-amz-checksum-sha256", sum);
    if (md5[0]) /* older servers insist on it */
        op_header(&op, "Content-MD5", md5);
    int rc = s3_op_run(&op, e);
    *ret_again = false;
    if (rc == 0 && op.meaning != S3_DONE)
        rc = op_refused(&op, ERR_CONFIG, "there is nothing to remove from; is the bucket's name right?", e);
    if (rc == 0 && s3_read_delete(buf_str(&op.reply.body), op.reply.body.len, &first, e) != 0)
        rc = op_refused(&op, ERR_IO, e->text, e);
    if (rc == 0 && first.code[0]) {
        enum s3_meaning m = s3_judge(200, &first);
        *ret_again = m == S3_AGAIN || m == S3_UNSURE;
        rc = err_set(e, *ret_again ? ERR_UNAVAILABLE : ERR_DENIED, "%.200s cannot be removed: %s: %.120s",
            first.key, first.code, first.message);
    }
    s3_op_deinit(&op);
    return rc;
}

static int s3_remove(struct store *s, const char *const *names, size_t n, struct err *e)
{
    struct buf body = {0};
    bool again = true;
    int rc = n > STORE_REMOVE_MAX ? err_set(e, ERR_INVALID, "more than %d names", STORE_REMOVE_MAX) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = check_name(names[i], e);
    if (rc != 0 || n == 0)
        return rc;
    s3_write_delete(&body, &((struct store_s3 *)s)->client.place, names, n);
    for (int tries = 0; again && tries < REMOVE_TRIES; tries++)
        rc = remove_once(s, buf_str(&body), body.len, &again, e);
    buf_deinit(&body);
    return rc;
}

/* Runs a copy of `from` to `to`, conditional or not. op.meaning as of s3_op_run. */
static int copy(struct store *s, const char *from, const char *to, bool is_conditional, struct s3_op *ret_op,
    struct err *e)
{
    const struct s3_place *place = &((struct store_s3 *)s)->client.place;
    char *source = mem_printf("/%s/%s%s", place->bucket, place->prefix, from);
    struct s3_op op = op_make(s, "PUT", to, NULL);
    op_header(&op, "x-amz-copy-source", source);
    if (is_conditional)
        op_header(&op, "If-None-Match", "*");
    op.may_lack = is_conditional;
    op.result = "CopyObject";
    int rc = op_run(&op, e);
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
    int rc = check_name(from, e);
    if (rc == 0)
        rc = check_name(to, e);
    if (rc == 0)
        rc = copy(s, from, to, false, &op, e);
    return rc == 0 ? s3_remove(s, names, 1, e) : rc;
}

/* A copy whose reply was lost and that finds its own work is done: what has the name is a copy of something, and who
 * asks for one only does so for content that the name stands for. */
static int s3_link(struct store *s, const char *from, const char *to, struct err *e)
{
    struct s3_client *c = &((struct store_s3 *)s)->client;
    bool exists = false;
    struct s3_op op = {0};
    int rc = check_name(from, e);
    if (rc == 0)
        rc = check_name(to, e);
    if (rc == 0 && !atomic_load(&c->facts->no_conditional_copy)) {
        rc = copy(s, from, to, true, &op, e);
        if (rc == 0 && op.meaning == S3_EXISTS)
            return op.is_unsure ? 0 : err_set(e, ERR_CONFLICT, "%s exists", to);
        if (rc != 0 || op.meaning == S3_DONE)
            return rc;
        note_no_conditions(&c->facts->no_conditional_copy, c, "copy");
    }
    if (rc == 0)
        rc = is_there(s, to, &exists, e);
    if (rc == 0 && exists)
        return err_set(e, ERR_CONFLICT, "%s exists", to);
    return rc == 0 ? copy(s, from, to, false, &op, e) : rc;
}

/* ---- open, close ---- */

static void s3_close(struct store *s)
{
    struct store_s3 *s3 = (struct store_s3 *)s;
    s3_place_deinit(&s3->client.place);
    free(s3);
}

static const struct store_ops s3_ops = {
    .scheme = "s3",
    .create = s3_create,
    .read = s3_read,
    .stat = s3_stat,
    .list = s3_list,
    .remove = s3_remove,
    .rename = s3_rename,
    .link = s3_link,
    .close = s3_close,
};

int store_s3_open(const char *url, const struct store_options *o, struct store **ret_store, struct err *e)
{
    struct s3_place place;
    if (s3_place_parse(url, &place, e) != 0)
        return err_wrap(e, "store '%.200s'", url);
    if (!o->net) {
        s3_place_deinit(&place);
        return err_set(e, ERR_UNSUPPORTED, "store '%.200s': there is no network here to reach it over", url);
    }
    struct store_s3 *s = mem_alloc(sizeof(*s));
    s->base.ops = &s3_ops;
    s->client = (struct s3_client){.place = place,
        .http = store_net_http(o->net),
        .auth = store_net_auth(o->net),
        .facts = store_net_facts(o->net, place.root),
        .cancel = o->cancel};
    *ret_store = &s->base;
    return 0;
}
