/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatch, calls on single objects, errors. Lists, deletes and uploads are in s3/list.c and
 * s3/upload.c.
 */
#include "emulator/s3/api.h"
#include "base/b64.h"
#include "base/http_date.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/s3/parts.h"
#include "emulator/xml_write.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES "application/octet-stream"

static const struct {
    const char *code;
    int status;
    const char *text;
} errors[] = {
    {"AccessDenied", 403, "Access Denied"},
    {"InvalidAccessKeyId", 403,
        "The AWS Access Key Id you provided does not exist in our records."},
    {"SignatureDoesNotMatch", 403,
        "The request signature we calculated does not match the signature you provided. Check your "
        "key and signing method."},
    {"RequestTimeTooSkewed", 403,
        "The difference between the request time and the current time is too large."},
    {"QuotaExceeded", 403, "The quota of this account is used up."},
    {"NoSuchBucket", 404, "The specified bucket does not exist"},
    {"NoSuchKey", 404, "The specified key does not exist."},
    {"NoSuchUpload", 404,
        "The specified multipart upload does not exist. The upload ID may be invalid, or the "
        "upload may have been aborted or completed."},
    {"MethodNotAllowed", 405, "The specified method is not allowed against this resource."},
    {"OperationAborted", 409,
        "A conflicting conditional operation is currently in progress against this resource."},
    {"ConditionalRequestConflict", 409,
        "The conditional request cannot succeed due to a conflicting operation against this "
        "resource."},
    {"PreconditionFailed", 412, "At least one of the pre-conditions you specified did not hold"},
    {"InvalidRange", 416, "The requested range is not satisfiable"},
    {"PermanentRedirect", 301,
        "The bucket you are attempting to access must be addressed using the specified endpoint. "
        "Please send all future requests to this endpoint."},
    {"InternalError", 500, "We encountered an internal error. Please try again."},
    {"NotImplemented", 501, "A header you provided implies functionality that is not implemented"},
    {"SlowDown", 503, "Please reduce your request rate."},
    {"ServiceUnavailable", 503, "Service is unable to handle request."},
    {"InsufficientStorage", 507, "There is no space left."},
    {"ExpiredToken", 400, "The provided token has expired."},
    {"InvalidToken", 400, "The provided token is malformed or otherwise invalid."},
    {"BadDigest", 400, "The checksum you specified did not match what we received."},
    {"EntityTooSmall", 400, "Your proposed upload is smaller than the minimum allowed size"},
    {"RequestTimeout", 400,
        "Your socket connection to the server was not read from or written to in time."},
};

void s3_api_error(const char *code, const char *text, const char *region, struct front_reply *reply)
{
    reply->status = 400;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (!str_eq(errors[i].code, code))
            continue;
        reply->status = errors[i].status;
        text = text ? text : errors[i].text;
    }
    reply->content_type = S3_CONTENT_TYPE;
    reply->n_headers = 0;
    if (reply->status == 301)
        front_reply_header(reply, "x-amz-bucket-region", "%s", region);
    buf_clear(&reply->body);
    buf_adds(&reply->body, S3_XML_HEAD);
    xmlw_open(&reply->body, "Error");
    xmlw_leaf(&reply->body, "Code", code);
    xmlw_leaf(&reply->body, "Message", text ? text : code);
    if (str_eq(code, "AuthorizationHeaderMalformed"))
        xmlw_leaf(&reply->body, "Region", region);
    xmlw_leaf(&reply->body, "RequestId", reply->request_id);
    xmlw_close(&reply->body, "Error");
}

int s3_fail(struct s3_call *c, const char *code, const char *fmt, ...)
{
    char text[512];
    if (fmt) {
        VFORMAT(text, fmt);
    }
    s3_api_error(code, fmt ? text : NULL, c->account->region, c->reply);
    return -1;
}

/* ---- Shared by the calls on objects ---- */

static int check_md5(struct s3_call *c, const char *given)
{
    struct buf raw = {0};
    char hex[65], ours[33];
    int rc = b64_decode(&raw, given, strlen(given), NULL);
    if (rc != 0 || raw.len != 16) {
        buf_deinit(&raw);
        return s3_fail(c, "InvalidDigest", "The Content-MD5 you specified is not valid.");
    }
    str_hex(raw.data, raw.len, hex);
    buf_deinit(&raw);
    s3_md5_hex(c->request->body, c->request->body_len, ours);
    return str_eq(hex, ours)
               ? 0
               : s3_fail(c, "BadDigest", "The Content-MD5 you specified did not match.");
}

int s3_check_body(struct s3_call *c, char ret_sha256[S3_CHECKSUM_BYTES])
{
    const char *md5 = front_header(c->request, "Content-MD5");
    const char *sha256 = front_header(c->request, "x-amz-checksum-sha256");
    char ours[S3_CHECKSUM_BYTES] = "";
    if (sha256)
        s3_sha256_base64(c->request->body, c->request->body_len, ours);
    if (sha256 && !str_eq(sha256, ours))
        return s3_fail(
            c, "BadDigest", "The SHA256 you specified did not match the calculated checksum.");
    str_copy(ret_sha256, S3_CHECKSUM_BYTES, ours);
    return md5 ? check_md5(c, md5) : 0;
}

int s3_check_space(struct s3_call *c, size_t n)
{
    return c->account->objects.bytes + n > c->account->quota_bytes
               ? s3_fail(c, "QuotaExceeded", NULL)
               : 0;
}

int s3_check_condition(struct s3_call *c)
{
    const char *none = front_header(c->request, "If-None-Match");
    if (!none && !front_header(c->request, "If-Match"))
        return 0;
    if (!c->account->has_conditions || !str_eq(none, "*"))
        return s3_fail(c, "NotImplemented", NULL);
    return s3_bucket_find(c->bucket, c->key) ? s3_fail(c, "PreconditionFailed", NULL) : 0;
}

/* ---- One object ---- */

static void add_etag(struct s3_call *c, const struct s3_object *object)
{
    front_reply_header(c->reply, "ETag", "\"%s\"", object->etag);
    if (object->sha256[0])
        front_reply_header(c->reply, "x-amz-checksum-sha256", "%s", object->sha256);
}

static void put_object(struct s3_call *c)
{
    char sha256[S3_CHECKSUM_BYTES];
    struct buf data = {0};
    if (s3_check_body(c, sha256) < 0 || s3_check_condition(c) < 0 ||
        s3_check_space(c, c->request->body_len) < 0)
        return;
    buf_add(&data, c->request->body, c->request->body_len);
    struct s3_object *object =
        s3_bucket_put(&c->account->objects, c->bucket, c->key, &data, c->now);
    STR_COPY(object->sha256, sha256);
    add_etag(c, object);
}

/* "/bucket/key" or "bucket/key", encoded. */
/* NULL if there is none, or (*ret_denied) it may not be read. */
static const struct s3_object *find_source(struct s3_call *c, bool *ret_denied)
{
    const char *text = front_header(c->request, "x-amz-copy-source");
    struct buf plain = {0};
    const struct s3_object *found = NULL;
    *ret_denied = false;
    text += text[0] == '/';
    if (str_url_decode(&plain, text, strlen(text), false, NULL) == 0 && plain.len > 0) {
        const char *slash = strchr(plain.data, '/');
        struct s3_bucket *b = slash ? s3_objects_bucket(&c->account->objects, plain.data,
                                          (size_t)(slash - plain.data))
                                    : NULL;
        found = b ? s3_bucket_find(b, slash + 1) : NULL;
        struct s3_call there = *c;
        there.bucket = b ? b : c->bucket;
        *ret_denied = slash && (!s3_may(&there, "s3:GetObject", slash + 1, NULL) ||
                                   (!found && !s3_may(&there, "s3:ListBucket", "", slash + 1)));
    }
    buf_deinit(&plain);
    return found;
}

static void copy_object(struct s3_call *c)
{
    bool is_denied;
    const struct s3_object *source = find_source(c, &is_denied);
    char iso[TIME_ISO_MAX], sha256[S3_CHECKSUM_BYTES];
    struct buf data = {0};
    if (!source || is_denied) {
        s3_fail(c, is_denied ? "AccessDenied" : "NoSuchKey", NULL);
        return;
    }
    if (s3_check_condition(c) < 0 || s3_check_space(c, source->data.len) < 0)
        return;
    buf_add(&data, buf_str(&source->data), source->data.len);
    STR_COPY(sha256, source->sha256);
    struct s3_object *object =
        s3_bucket_put(&c->account->objects, c->bucket, c->key, &data, c->now);
    STR_COPY(object->sha256, strchr(sha256, '-') ? "" : sha256);
    time_format_iso(object->modified, iso);
    s3_open(c, "CopyObjectResult");
    xmlw_leaf(&c->reply->body, "LastModified", iso);
    xmlw_printf(&c->reply->body, "ETag", "\"%s\"", object->etag);
    xmlw_close(&c->reply->body, "CopyObjectResult");
}

/* "bytes=A-B", "bytes=A-", "bytes=-N" of n bytes. False if it cannot be satisfied. Anything else
 * counts as no range. */
static bool read_range(
    const char *text, size_t n, size_t *ret_from, size_t *ret_to, bool *ret_is_one)
{
    int64_t from, to = (int64_t)n - 1;
    char first[24] = "";
    *ret_is_one = false;
    const char *dash = str_starts(text, "bytes=") ? strchr(text, '-') : NULL;
    if (!dash || (size_t)(dash - text) - 6 >= sizeof(first))
        return true;
    memcpy(first, text + 6, (size_t)(dash - text) - 6);
    if (dash[1] && str_to_i64(dash + 1, 0, INT64_MAX, "range", &to, NULL) != 0)
        return true;
    if (!first[0]) {
        from = to < (int64_t)n ? (int64_t)n - to : 0;
        to = (int64_t)n - 1;
    } else if (str_to_i64(first, 0, INT64_MAX, "range", &from, NULL) != 0) {
        return true;
    }
    *ret_is_one = true;
    *ret_from = (size_t)from;
    *ret_to = (size_t)(to < (int64_t)n ? to : (int64_t)n - 1);
    return from < (int64_t)n && from <= to;
}

static bool is_etag(const char *given, const char *etag)
{
    size_t n = strlen(etag);
    if (given[0] == '"')
        return strncmp(given + 1, etag, n) == 0 && str_eq(given + 1 + n, "\"");
    return str_eq(given, etag);
}

static void get_object(struct s3_call *c)
{
    const struct s3_object *object = s3_bucket_find(c->bucket, c->key);
    const char *match = front_header(c->request, "If-Match"),
               *range = front_header(c->request, "Range");
    char date[HTTP_DATE_MAX];
    size_t from = 0, to = 0;
    bool is_part = false;
    if (!object) {
        s3_fail(c, "NoSuchKey", NULL);
        return;
    }
    if (match && !str_eq(match, "*") && !is_etag(match, object->etag)) {
        s3_fail(c, "PreconditionFailed", NULL);
        return;
    }
    if (range && !read_range(range, object->data.len, &from, &to, &is_part)) {
        s3_fail(c, "InvalidRange", NULL);
        return;
    }
    c->reply->content_type = BYTES;
    front_reply_header(c->reply, "ETag", "\"%s\"", object->etag);
    http_date_write(object->modified, date);
    front_reply_header(c->reply, "Last-Modified", "%s", date);
    front_reply_header(c->reply, "Accept-Ranges", "bytes");
    if (str_eq(front_header(c->request, "x-amz-checksum-mode"), "ENABLED") && object->sha256[0] &&
        !is_part)
        front_reply_header(c->reply, "x-amz-checksum-sha256", "%s", object->sha256);
    if (is_part) {
        c->reply->status = 206;
        front_reply_header(
            c->reply, "Content-Range", "bytes %zu-%zu/%zu", from, to, object->data.len);
        buf_add(&c->reply->body, object->data.data + from, to - from + 1);
    } else {
        buf_add(&c->reply->body, buf_str(&object->data), object->data.len);
    }
}

static void delete_object(struct s3_call *c)
{
    s3_bucket_remove(&c->account->objects, c->bucket, c->key);
    c->reply->status = 204;
}

static void head_bucket(struct s3_call *c)
{
    front_reply_header(c->reply, "x-amz-bucket-region", "%s", c->account->region);
}

static void not_played(struct s3_call *c)
{
    s3_fail(c, "NotImplemented", "%s is not emulated", c->reply->action);
}

/* ---- Permissions ---- */

bool s3_may(const struct s3_call *c, const char *action, const char *key, const char *prefix)
{
    if (!c->policy)
        return true;
    char *resource = mem_printf(
        "arn:aws:s3:::%s%s%s", c->bucket ? c->bucket->name : "*", key[0] ? "/" : "", key);
    bool may = policy_allows(c->policy, action, resource, prefix);
    free(resource);
    return may;
}

/* ---- Dispatch ---- */

static const struct {
    const char *method;
    enum { ROOT, BUCKET, KEY } of;
    const char *param, *header; /* NULL for any; the first matching row is used */
    const char *name;
    const char *action; /* name in policies; NULL: checked for each key */
    void (*run)(struct s3_call *c);
} calls[] = {
    {"GET", ROOT, NULL, NULL, "ListBuckets", "s3:ListAllMyBuckets", s3_list_buckets},
    {"GET", BUCKET, "location", NULL, "GetBucketLocation", "s3:GetBucketLocation", s3_get_location},
    {"GET", BUCKET, "uploads", NULL, "ListMultipartUploads", "s3:ListBucketMultipartUploads",
        s3_list_uploads},
    {"GET", BUCKET, "list-type", NULL, "ListObjectsV2", "s3:ListBucket", s3_list_objects},
    {"HEAD", BUCKET, NULL, NULL, "HeadBucket", "s3:ListBucket", head_bucket},
    {"POST", BUCKET, "delete", NULL, "DeleteObjects", NULL, s3_delete_objects},
    {"GET", KEY, NULL, NULL, "GetObject", "s3:GetObject", get_object},
    {"HEAD", KEY, NULL, NULL, "HeadObject", "s3:GetObject", get_object},
    {"PUT", KEY, "partNumber", "x-amz-copy-source", "UploadPartCopy", "s3:PutObject", not_played},
    {"PUT", KEY, "partNumber", NULL, "UploadPart", "s3:PutObject", s3_upload_part},
    {"PUT", KEY, NULL, "x-amz-copy-source", "CopyObject", "s3:PutObject", copy_object},
    {"PUT", KEY, NULL, NULL, "PutObject", "s3:PutObject", put_object},
    {"POST", KEY, "uploads", NULL, "CreateMultipartUpload", "s3:PutObject", s3_create_upload},
    {"POST", KEY, "uploadId", NULL, "CompleteMultipartUpload", "s3:PutObject", s3_complete_upload},
    {"DELETE", KEY, "uploadId", NULL, "AbortMultipartUpload", "s3:AbortMultipartUpload",
        s3_abort_upload},
    {"DELETE", KEY, NULL, NULL, "DeleteObject", "s3:DeleteObject", delete_object},
};
#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

static size_t find_call(struct s3_call *c)
{
    for (size_t i = 0; i < N_CALLS; i++)
        if (str_eq(calls[i].method, c->request->method) &&
            (calls[i].of == KEY) == (c->key[0] != '\0') &&
            (calls[i].of == ROOT) == (c->bucket == NULL) &&
            (!calls[i].param || form_get(&c->query, "%s", calls[i].param)) &&
            (!calls[i].header || front_header(c->request, calls[i].header)))
            return i;
    return N_CALLS;
}

/* "BUCKET.the.rest" in the Host header, or "/BUCKET/KEY" in the path. */
static int find_object(struct s3_call *c)
{
    const char *host = front_header(c->request, "Host"), *path = c->request->path + 1;
    const char *dot = host ? strchr(host, '.') : NULL;
    c->bucket = dot ? s3_objects_bucket(&c->account->objects, host, (size_t)(dot - host)) : NULL;
    if (!c->bucket && path[0]) {
        size_t n = strcspn(path, "/");
        c->bucket = s3_objects_bucket(&c->account->objects, path, n);
        if (!c->bucket)
            return s3_fail(c, "NoSuchBucket", NULL);
        path += n + (path[n] == '/');
    }
    return STR_COPY(c->key, path) ? 0 : s3_fail(c, "KeyTooLongError", "Your key is too long");
}

bool s3_api_route(struct s3_call *c)
{
    const char *query = front_query(c->request);
    struct err e;
    if (form_parse(query, strlen(query), &c->query, &e) < 0) {
        s3_fail(c, "InvalidURI", "%s", e.text);
        return false;
    }
    if (find_object(c) < 0)
        return false;
    size_t i = find_call(c);
    if (i == N_CALLS) {
        s3_fail(c, "MethodNotAllowed", NULL);
        return false;
    }
    str_copy(c->reply->action, sizeof(c->reply->action), calls[i].name);
    return true;
}

/* Parts of an upload are encrypted as its creation specified. */
static bool is_encrypted(const struct s3_call *c)
{
    static const char *const makes[] = {"PutObject", "CopyObject", "CreateMultipartUpload"};
    bool is_new = false;
    for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]); i++)
        is_new = is_new || str_eq(c->reply->action, makes[i]);
    return !is_new || !c->account->encryption ||
           str_eq(front_header(c->request, "x-amz-server-side-encryption"), c->account->encryption);
}

bool s3_api_may(struct s3_call *c)
{
    const char *action = calls[find_call(c)].action, *prefix = form_get(&c->query, "prefix");
    bool is_read = str_eq(c->request->method, "GET") || str_eq(c->request->method, "HEAD");
    if (!action)
        return true;
    if (!is_encrypted(c)) {
        s3_fail(c, "AccessDenied", "a policy of the bucket refuses objects without its encryption");
        return false;
    }
    /* Without the permission to list, a missing object must not be revealed. */
    bool may = s3_may(c, action, c->key, prefix) &&
               (!is_read || !c->key[0] || s3_bucket_find(c->bucket, c->key) ||
                   s3_may(c, "s3:ListBucket", "", c->key));
    if (!may)
        s3_fail(c, "AccessDenied", NULL);
    return may;
}

void s3_api_run(struct s3_call *c)
{
    c->reply->content_type = S3_CONTENT_TYPE;
    calls[find_call(c)].run(c);
}

int s3_query_end(struct s3_call *c)
{
    const char *unknown = form_unused(&c->query);
    return unknown ? s3_fail(c, "InvalidArgument", "the parameter %.60s is not emulated", unknown)
                   : 0;
}

void s3_open(struct s3_call *c, const char *element)
{
    buf_printf(&c->reply->body,
        S3_XML_HEAD "<%s xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", element);
}
