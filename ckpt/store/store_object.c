/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/store_object.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BYTES "application/octet-stream"

int object_check_name(const char *name, struct err *e)
{
    return store_name_is_valid(name)
               ? 0
               : err_set(e, ERR_INVALID, "'%.100s' is not a valid object name", name);
}

void object_if_absent(struct s3_op *op)
{
    if (op->client->location.dialect == STORE_KEYS_GOOGLE)
        s3_op_header(op, "x-goog-if-generation-match", "0");
    else
        s3_op_header(op, "If-None-Match", "*");
}

void object_note_no_conditions(atomic_bool *fact, const struct s3_client *c, const char *what)
{
    if (!atomic_exchange(fact, true))
        log_warn("the store has no conditional writes: names are looked up before they are written",
            log_s("store", c->location.root), log_s("bucket", c->location.bucket),
            log_s("for", what));
}

/* ---- Lookups ---- */

/* Stats the object. *ret_meaning is S3_DONE, with size and checksum ("" = not known), or
 * S3_MISSING. */
static int head_object(struct store *s, const char *name, enum s3_meaning *ret_meaning,
    int64_t *ret_size, char ret_sha256[S3_BASE64_MAX], struct err *e)
{
    struct s3_op op = s3_op_make(object_client(s), "HEAD", name, NULL);
    if (op.client->location.dialect == STORE_KEYS_AWS)
        s3_op_header(&op, "x-amz-checksum-mode", "ENABLED");
    int rc = s3_op_run(&op, e);
    if (rc == 0 && op.meaning == S3_DONE) {
        const char *size = http_reply_header(&op.reply, "content-length");
        const char *sum = http_reply_header(&op.reply, "x-amz-checksum-sha256");
        rc = str_to_i64(size ? size : "", 0, INT64_MAX, "Content-Length", ret_size, e);
        if (rc != 0)
            rc = s3_op_refused(&op, ERR_IO, "the reply has no object size", e);
        if (!sum || !str_copy(ret_sha256, S3_BASE64_MAX, sum))
            ret_sha256[0] = '\0';
    }
    *ret_meaning = op.meaning;
    s3_op_deinit(&op);
    return rc;
}

int object_exists(struct store *s, const char *name, bool *ret_yes, struct err *e)
{
    char sum[S3_BASE64_MAX];
    enum s3_meaning meaning;
    int64_t size;
    int rc = head_object(s, name, &meaning, &size, sum, e);
    *ret_yes = meaning != S3_MISSING;
    return rc;
}

static int read_all(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    struct s3_op op = s3_op_make(object_client(s), "GET", name, NULL);
    op.resumes = out;
    op.reply_max = max;
    int rc = s3_op_finish(&op, e);
    if (rc == 0 && op.meaning != S3_DONE)
        rc = s3_op_refused(&op, ERR_NOT_FOUND, "there is no such object", e);
    else if (rc == 0 && out->len > max)
        rc = err_set(e, ERR_INVALID, "%s is larger than the %zu bytes allowed", name, max);
    return rc;
}

/* After a lost reply: checks whether the object is ours. Returns 0, ERR_CONFLICT, or an error if
 * that cannot be determined. */
static int check_ours(struct store *s, const char *name, const void *p, size_t n, struct err *e)
{
    char sum[S3_BASE64_MAX], hex[SIGV4_HEX_MAX], ours[S3_BASE64_MAX];
    struct buf there = {0};
    enum s3_meaning meaning;
    int64_t size;
    int rc = head_object(s, name, &meaning, &size, sum, e);
    if (rc != 0)
        return rc;
    if (meaning == S3_MISSING)
        return err_set(e, ERR_UNAVAILABLE, "%s existed, and has disappeared", name);
    if ((uint64_t)size != n)
        return err_set(e, ERR_CONFLICT, "%s exists", name);
    /* not of an upload in parts, whose checksum is a hash of hashes */
    if (sum[0] && !strchr(sum, '-')) {
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

void object_encrypted(struct s3_op *op)
{
    struct http_header headers[S3_ENCRYPTION_HEADERS];
    s3_encryption_headers(&op->client->location, headers);
    for (size_t i = 0; i < S3_ENCRYPTION_HEADERS && headers[i].name; i++)
        s3_op_header(op, headers[i].name, headers[i].value);
}

int object_write(
    struct store *s, const char *name, struct s3_op *op, const void *body, size_t n, struct err *e)
{
    const struct s3_client *c = object_client(s);
    struct s3_op plain = *op;
    bool exists = false;
    int rc;
    object_if_absent(op);
    op->may_lack = true;
    if (!atomic_load(&c->facts->no_conditional_put)) {
        rc = s3_op_finish(op, e);
        if (rc != 0 || op->meaning != S3_NOT_IMPLEMENTED)
            goto judge;
        object_note_no_conditions(&c->facts->no_conditional_put, c, "create");
    }
    *op = plain;
    rc = object_exists(s, name, &exists, e);
    if (rc == 0 && exists)
        return err_set(e, ERR_CONFLICT, "%s exists", name);
    if (rc == 0)
        rc = s3_op_finish(op, e);
judge:
    if (rc != 0 || op->meaning == S3_DONE)
        return rc;
    if (op->is_unsure) {
        rc = check_ours(s, name, body, n, e);
        if (rc == 0 || op->meaning == S3_EXISTS)
            return rc;
    }
    if (op->meaning == S3_MISSING)
        return s3_op_refused(op, ERR_NOT_FOUND, "the upload is gone", e);
    return err_set(e, ERR_CONFLICT, "%s exists", name);
}

int object_complete(
    struct store *s, const char *name, struct s3_op *op, const void *body, size_t n, struct err *e)
{
    bool exists = false;
    int rc = object_exists(s, name, &exists, e);
    if (rc == 0 && exists)
        rc = err_set(e, ERR_CONFLICT, "%s exists", name);
    if (rc == 0)
        rc = object_write(s, name, op, body, n, e);
    if (rc == ERR_NOT_FOUND)
        e->kind = rc = ERR_UNAVAILABLE;
    return rc;
}

/* Lets the server verify the bytes received: Amazon by SHA-256, the others by MD5. */
static void add_sum(struct s3_op *op, char sum[S3_BASE64_MAX])
{
    const struct s3_request *r = &op->request;
    if (op->client->location.dialect == STORE_KEYS_AWS) {
        s3_base64_of_hex(r->sha256, sum);
        s3_op_header(op, "x-amz-checksum-sha256", sum);
        return;
    }
    s3_md5_base64(r->body, r->n, sum);
    if (sum[0])
        s3_op_header(op, "Content-MD5", sum);
}

void object_put_op(struct store *s, const char *name, const void *p, size_t n, const char *sha256,
    struct object_put *ret)
{
    ret->op = s3_op_make(object_client(s), "PUT", name, NULL);
    if (sha256)
        s3_op_body_known(&ret->op, p, n, sha256);
    else
        s3_op_body(&ret->op, p, n, ret->sha256);
    s3_op_header(&ret->op, "Content-Type", BYTES);
    if (ret->op.client->location.dialect == STORE_KEYS_AZURE)
        s3_op_header(&ret->op, "x-ms-blob-type", "BlockBlob");
    object_encrypted(&ret->op);
    add_sum(&ret->op, ret->sum);
}

int object_create_whole(
    struct store *s, const char *name, const void *p, size_t n, const char *sha256, struct err *e)
{
    struct object_put put;
    object_put_op(s, name, p, n, sha256, &put);
    int rc = object_write(s, name, &put.op, p, n, e);
    if (rc == ERR_NOT_FOUND) /* a PUT is answered by 404 only if the bucket is missing */
        e->kind = rc = ERR_CONFIG;
    return rc;
}

/* ---- read, stat, list ---- */

int object_read(struct store *s, const char *name, size_t max, struct buf *out, struct err *e)
{
    int rc = object_check_name(name, e);
    return rc == 0 ? read_all(s, name, max, out, e) : rc;
}

int object_stat(struct store *s, const char *name, int64_t *ret_size, struct err *e)
{
    char sum[S3_BASE64_MAX];
    enum s3_meaning meaning;
    int64_t size;
    int rc = object_check_name(name, e);
    if (rc == 0)
        rc = head_object(s, name, &meaning, &size, sum, e);
    if (rc == 0 && meaning != S3_DONE)
        rc = err_set(e, ERR_NOT_FOUND, "there is no object %s", name);
    if (rc == 0)
        *ret_size = size;
    return rc;
}

/* One page, used only after it was read completely, so that a truncated one can be requested
 * again. */
struct listing {
    int (*read)(
        const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *page, struct err *e);
    size_t skip; /* bytes of the location's prefix */
    const char *prefix;
    char before[S3_TOKEN_MAX]; /* the token of this page */
    struct s3_page page;
    struct buf names; /* entries of an int64_t, the size, and the name with its NUL */
};

static int collect_key(void *ctx, const char *key, int64_t size_bytes)
{
    struct listing *l = ctx;
    const char *name = key + l->skip;
    if (!str_starts(key, l->prefix) || !store_name_is_valid(name))
        return 0; /* not an object of this store */
    buf_add(&l->names, &size_bytes, sizeof(size_bytes));
    buf_add(&l->names, name, strlen(name) + 1);
    return 0;
}

static int accept_page(void *ctx, const char *body, size_t n, struct err *e)
{
    struct listing *l = ctx;
    buf_clear(&l->names);
    int rc = l->read(body, n, collect_key, l, &l->page, e);
    if (rc == 0 && !l->page.is_last && str_eq(l->page.token, l->before))
        rc = err_set(e, ERR_INVALID, "the list does not advance: the next page is this one");
    return rc;
}

/* Returns true if fn has stopped the walk. */
static bool report_names(const struct listing *l, store_each_fn fn, void *ctx)
{
    bool is_stopped = false;
    for (size_t at = 0; !is_stopped && at < l->names.len;) {
        int64_t size_bytes;
        memcpy(&size_bytes, l->names.data + at, sizeof(size_bytes));
        const char *name = l->names.data + at + sizeof(size_bytes);
        is_stopped = fn(ctx, name, size_bytes) != 0;
        at += sizeof(size_bytes) + strlen(name) + 1;
    }
    return is_stopped;
}

int object_list(struct store *s, const char *prefix, store_each_fn fn, void *ctx, struct err *e)
{
    const struct s3_location *location = &object_client(s)->location;
    struct listing l = {
        .read = location->dialect == STORE_KEYS_AZURE ? s3_read_blobs : s3_read_list,
        .skip = strlen(location->prefix),
        .prefix = location->prefix};
    bool is_over = false;
    int rc = 0;
    while (rc == 0 && !is_over) {
        struct buf query = {0};
        STR_COPY(l.before, l.page.token);
        s3_write_list_query(&query, location, prefix, l.before);
        struct s3_op op = s3_op_make(object_client(s), "GET", NULL, buf_str(&query));
        op.accept = accept_page;
        op.accept_ctx = &l;
        rc = s3_op_run(&op, e);
        if (rc == 0 && op.meaning != S3_DONE)
            rc = s3_op_refused(&op, ERR_CONFIG, "nothing to list: check the bucket's name", e);
        if (rc == 0)
            is_over = report_names(&l, fn, ctx) || l.page.is_last;
        s3_op_deinit(&op);
        buf_deinit(&query);
    }
    buf_deinit(&l.names);
    return rc;
}

/* Google and Azure have batches of 100 removals, as requests within a request. Parallel requests
 * over kept-alive connections are as fast, and each is retried by itself. */
#define REMOVERS 8

struct removal {
    struct store *store;
    const char *const *names;
    size_t n;
    atomic_size_t next;
    pthread_mutex_t lock; /* of the first error */
    struct err first;
    atomic_bool failed;
};

static int remove_one(struct store *s, const char *name, struct err *e)
{
    struct s3_op op = s3_op_make(object_client(s), "DELETE", name, NULL);
    int rc = s3_op_finish(&op, e);
    if (rc == 0 && op.meaning != S3_DONE && op.meaning != S3_MISSING)
        rc = s3_op_refused(&op, ERR_DENIED, "the object is protected", e);
    return rc;
}

static void *remove_some(void *ctx)
{
    struct removal *r = ctx;
    struct err e;
    size_t i;
    while (!atomic_load(&r->failed) && (i = atomic_fetch_add(&r->next, 1)) < r->n) {
        if (remove_one(r->store, r->names[i], &e) == 0)
            continue;
        pthread_mutex_lock(&r->lock);
        if (!atomic_exchange(&r->failed, true))
            r->first = e;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

int object_remove_each(struct store *s, const char *const *names, size_t n, struct err *e)
{
    struct removal r = {.store = s, .names = names, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[REMOVERS - 1];
    size_t started = 0;
    int rc =
        n > STORE_REMOVE_MAX ? err_set(e, ERR_INVALID, "more than %d names", STORE_REMOVE_MAX) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = object_check_name(names[i], e);
    if (rc != 0)
        return rc;
    /* If a thread cannot be started, the others do its work. */
    while (started < REMOVERS - 1 && started + 1 < n &&
           pthread_create(&threads[started], NULL, remove_some, &r) == 0)
        started++;
    remove_some(&r);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&r.lock);
    if (atomic_load(&r.failed))
        *e = r.first;
    return atomic_load(&r.failed) ? (int)r.first.kind : 0;
}

/* ---- open, close ---- */

void object_close(struct store *s)
{
    s3_location_deinit(&((struct store_object *)s)->client.location);
    free(s);
}

void object_open(struct s3_location *location, const struct store_ops *ops,
    const struct store_options *o, struct store **ret_store)
{
    struct store_object *s = mem_alloc(sizeof(*s));
    s->base.ops = ops;
    s->client = (struct s3_client){.location = *location,
        .http = store_net_http(o->net),
        .auth = store_net_auth(o->net, location->dialect),
        .facts = store_net_facts(o->net, location->root),
        .cancel = o->cancel};
    *ret_store = &s->base;
}
