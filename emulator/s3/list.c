/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing, and deleting many objects.
 */
#include "base/b64.h"
#include "base/str.h"
#include "emulator/s3/parts.h"
#include "emulator/xml_write.h"
#include "cloud/xml.h"
#include <string.h>

#define DELETE_MAX 1000
#define DELETE_BYTES_MAX (2u << 20)

void s3_list_buckets(struct s3_call *c)
{
    struct buf *b = &c->reply->body;
    s3_open(c, "ListAllMyBucketsResult");
    xmlw_open(b, "Buckets");
    for (size_t k = 0; k < c->account->objects.n_buckets; k++) {
        xmlw_open(b, "Bucket");
        xmlw_leaf(b, "Name", c->account->objects.buckets[k].name);
        xmlw_leaf(b, "CreationDate", "2026-01-01T00:00:00Z");
        xmlw_close(b, "Bucket");
    }
    xmlw_close(b, "Buckets");
    xmlw_close(b, "ListAllMyBucketsResult");
}

void s3_get_location(struct s3_call *c)
{
    s3_open(c, "LocationConstraint");
    buf_adds(&c->reply->body, str_eq(c->account->region, "us-east-1") ? "" : c->account->region);
    xmlw_close(&c->reply->body, "LocationConstraint");
}

/* ---- ListObjectsV2 ---- */

struct listing {
    struct s3_call *c;
    const char *prefix, *delimiter;
    bool is_encoded;
    int64_t max, n;
    char last[S3_KEY_BYTES + 1]; /* the last key or common prefix returned */
    struct buf commons;
};

static void write_key(
    const struct listing *l, struct buf *b, const char *name, const char *key, size_t n)
{
    struct buf text = {0};
    if (l->is_encoded)
        str_url_encode(&text, key, n);
    else
        buf_add(&text, key, n);
    xmlw_leaf(b, name, buf_str(&text));
    buf_deinit(&text);
}

static void write_object(struct listing *l, const struct s3_object *object)
{
    struct buf *b = &l->c->reply->body;
    char iso[TIME_ISO_MAX];
    time_format_iso(object->modified, iso);
    xmlw_open(b, "Contents");
    write_key(l, b, "Key", object->key, strlen(object->key));
    xmlw_leaf(b, "LastModified", iso);
    xmlw_printf(b, "ETag", "\"%s\"", object->etag);
    xmlw_printf(b, "Size", "%zu", object->data.len);
    xmlw_leaf(b, "StorageClass", "STANDARD");
    xmlw_close(b, "Contents");
    STR_COPY(l->last, object->key);
}

/* Length of key up to and including the delimiter after the prefix; 0 if there is none. */
static size_t common_bytes(const struct listing *l, const char *key)
{
    const char *at = l->delimiter[0] ? strstr(key + strlen(l->prefix), l->delimiter) : NULL;
    return at ? (size_t)(at - key) + strlen(l->delimiter) : 0;
}

static bool is_listed(const struct listing *l, const char *key, size_t n_common)
{
    return n_common > 0 && strlen(l->last) == n_common && memcmp(l->last, key, n_common) == 0;
}

/* True if there is more than a page. */
static bool walk(struct listing *l, size_t from)
{
    const struct s3_bucket *bucket = l->c->bucket;
    for (size_t i = from; i < bucket->n && str_starts(bucket->objects[i]->key, l->prefix); i++) {
        const char *key = bucket->objects[i]->key;
        size_t n_common = common_bytes(l, key);
        if (is_listed(l, key, n_common))
            continue;
        if (l->n == l->max)
            return true;
        l->n++;
        if (n_common == 0) {
            write_object(l, bucket->objects[i]);
            continue;
        }
        xmlw_open(&l->commons, "CommonPrefixes");
        write_key(l, &l->commons, "Prefix", key, n_common);
        xmlw_close(&l->commons, "CommonPrefixes");
        memcpy(l->last, key, n_common);
        l->last[n_common] = '\0';
    }
    return false;
}

/* Where the page starts; -1 if refused. The token is the last name of the previous page, in base64.
 */
static int find_start(struct listing *l, const char *token, const char *after, size_t *ret_from)
{
    const struct s3_bucket *bucket = l->c->bucket;
    size_t by_prefix = s3_bucket_after(bucket, l->prefix, true);
    size_t by_after = after ? s3_bucket_after(bucket, after, false) : 0;
    struct buf text = {0};
    if (token) {
        if (b64_decode(&text, token, strlen(token), NULL) < 0 ||
            !STR_COPY(l->last, buf_str(&text))) {
            buf_deinit(&text);
            return s3_fail(l->c, "InvalidArgument", "The continuation token provided is incorrect");
        }
        buf_deinit(&text);
        by_after = s3_bucket_after(bucket, l->last, false);
    }
    *ret_from = by_prefix > by_after ? by_prefix : by_after;
    return 0;
}

static void finish(struct listing *l, bool is_truncated)
{
    struct buf *b = &l->c->reply->body, token = {0};
    buf_add(b, buf_str(&l->commons), l->commons.len);
    xmlw_leaf(b, "Name", l->c->bucket->name);
    write_key(l, b, "Prefix", l->prefix, strlen(l->prefix));
    xmlw_printf(b, "MaxKeys", "%lld", (long long)l->max);
    xmlw_printf(b, "KeyCount", "%lld", (long long)l->n);
    if (l->is_encoded)
        xmlw_leaf(b, "EncodingType", "url");
    xmlw_leaf(b, "IsTruncated", is_truncated ? "true" : "false");
    if (is_truncated) {
        b64_encode(&token, l->last, strlen(l->last));
        xmlw_leaf(b, "NextContinuationToken", buf_str(&token));
        buf_deinit(&token);
    }
    xmlw_close(b, "ListBucketResult");
}

void s3_list_objects(struct s3_call *c)
{
    struct form *q = &c->query;
    const char *prefix = form_get(q, "prefix"), *delimiter = form_get(q, "delimiter");
    const char *max = form_get(q, "max-keys"), *encoding = form_get(q, "encoding-type");
    struct listing l = {.c = c,
        .prefix = prefix ? prefix : "",
        .delimiter = delimiter ? delimiter : "",
        .is_encoded = str_eq(encoding, "url"),
        .max = S3_PAGE_MAX};
    size_t from;
    const char *token = form_get(q, "continuation-token"), *after = form_get(q, "start-after");
    form_get(q, "fetch-owner");
    if (!str_eq(form_get(q, "list-type"), "2")) {
        s3_fail(c, "NotImplemented", "only list-type=2 is emulated");
        return;
    }
    if (max && str_to_i64(max, 0, INT32_MAX, "max-keys", &l.max, NULL) < 0) {
        s3_fail(c, "InvalidArgument", "max-keys is not a number");
        return;
    }
    if (s3_query_end(c) < 0 || find_start(&l, token, after, &from) < 0)
        return;
    if (l.max > c->account->page)
        l.max = c->account->page;
    s3_open(c, "ListBucketResult");
    finish(&l, walk(&l, from));
    buf_deinit(&l.commons);
}

/* ---- DeleteObjects ---- */

static void write_key_error(struct buf *b, const char *key, const char *code, const char *text)
{
    xmlw_open(b, "Error");
    xmlw_leaf(b, "Key", key);
    xmlw_leaf(b, "Code", code);
    xmlw_leaf(b, "Message", text);
    xmlw_close(b, "Error");
}

static void delete_keys(struct s3_call *c, const struct xml_node *root)
{
    char quiet[8] = "", key[S3_KEY_BYTES + 1];
    struct buf *b = &c->reply->body;
    xml_text_cut(root, "Quiet", quiet, sizeof(quiet));
    s3_open(c, "DeleteResult");
    for (const struct xml_node *node = xml_child(root, "Object"); node; node = xml_next(node)) {
        if (xml_text(node, "Key", key, sizeof(key), NULL) < 0 || !key[0])
            continue;
        if (!s3_may(c, "s3:DeleteObject", key, NULL)) {
            write_key_error(b, key, "AccessDenied", "Access Denied");
            continue;
        }
        s3_bucket_remove(&c->account->objects, c->bucket, key);
        if (str_eq(quiet, "true"))
            continue;
        xmlw_open(b, "Deleted");
        xmlw_leaf(b, "Key", key);
        xmlw_close(b, "Deleted");
    }
    xmlw_close(b, "DeleteResult");
}

static size_t count_keys(const struct xml_node *root)
{
    size_t n = 0;
    for (const struct xml_node *node = xml_child(root, "Object"); node; node = xml_next(node))
        n++;
    return n;
}

/* A fault of the action "DeleteObjects/key": the first key is kept, and reported as an error. */
static void refuse_key(struct s3_call *c, const struct xml_node *root, const char *code)
{
    char key[S3_KEY_BYTES + 1] = "";
    struct buf *b = &c->reply->body;
    xml_text_cut(xml_child(root, "Object"), "Key", key, sizeof(key));
    s3_open(c, "DeleteResult");
    write_key_error(b, key, code, "a fault");
    xmlw_close(b, "DeleteResult");
}

void s3_delete_objects(struct s3_call *c)
{
    char sha256[S3_CHECKSUM_BYTES];
    const struct front_request *r = c->request;
    struct xml x;
    struct err e;
    if (!front_header(r, "Content-MD5") && !front_header(r, "x-amz-checksum-sha256") &&
        !front_header(r, "x-amz-checksum-crc32") && !front_header(r, "x-amz-checksum-crc64nvme")) {
        s3_fail(c, "InvalidRequest", "Missing required header for this request: Content-MD5");
        return;
    }
    form_get(&c->query, "delete");
    if (s3_query_end(c) < 0 || s3_check_body(c, sha256) < 0)
        return;
    if (r->body_len > DELETE_BYTES_MAX || xml_open(&x, r->body, r->body_len, &e) < 0) {
        s3_fail(c, "MalformedXML", "The XML you provided was not well-formed");
        return;
    }
    const struct xml_node *root = xml_root(&x);
    struct fault fault;
    if (!str_eq(xml_name(root), "Delete") || count_keys(root) == 0 || count_keys(root) > DELETE_MAX)
        s3_fail(c, "MalformedXML", "expected <Delete> with 1 to %d objects", DELETE_MAX);
    else if (faults_take(c->faults, FAULT_REFUSE, "DeleteObjects/key", &fault))
        refuse_key(c, root, fault.code);
    else
        delete_keys(c, root);
    xml_close(&x);
}
