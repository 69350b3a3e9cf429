/* SPDX-License-Identifier: Apache-2.0
 *
 * Interprets replies. Codes take precedence over statuses: "slow down" comes as 503, an expired
 * token as 400.
 */
#include "base/str.h"
#include "ckpt/s3.h"
#include "cloud/xml.h"
#include <string.h>

/* ---- Errors ---- */

/* Codes are logged and compared, so only a single word is kept. */
static void clear_unless_word(char *s)
{
    if (s[0] && !str_is_name(s, 63))
        s[0] = '\0';
}

static void read_error(const struct xml_node *node, struct s3_error *ret)
{
    xml_text_cut(node, "Code", ret->code, sizeof(ret->code));
    xml_text_cut(node, "Message", ret->message, sizeof(ret->message));
    xml_text_cut(node, "Region", ret->region, sizeof(ret->region));
    xml_text_cut(node, "Key", ret->key, sizeof(ret->key));
    str_sanitize(ret->message, strlen(ret->message));
    str_sanitize(ret->key, strlen(ret->key));
    clear_unless_word(ret->code);
    clear_unless_word(ret->region);
}

void s3_read_error(const char *body, size_t n, struct s3_error *ret_error)
{
    struct xml x;
    *ret_error = (struct s3_error){0};
    if (n == 0 || n > S3_REPLY_MAX || xml_open(&x, body, n, NULL) != 0)
        return;
    if (str_eq(xml_name(xml_root(&x)), "Error"))
        read_error(xml_root(&x), ret_error);
    xml_close(&x);
}

/* ---- Malformed replies ---- */

/* The root element's name must have this prefix (a server may say Response for Result). On failure
 * x need not be closed. */
static int open_as(struct xml *x, const char *body, size_t n, const char *element, struct err *e)
{
    int rc = n > S3_REPLY_MAX ? err_set(e, ERR_INVALID, "a reply of %zu bytes", n)
                              : xml_open(x, body, n, e);
    if (rc == 0 && !str_starts(xml_name(xml_root(x)), element)) {
        rc =
            err_set(e, ERR_INVALID, "expected <%s>, found <%.40s>", element, xml_name(xml_root(x)));
        xml_close(x);
    }
    return rc;
}

static int read_key(const struct xml_node *node, struct buf *key, int64_t *ret_size, struct err *e)
{
    char text[3 * S3_KEY_MAX], size[24];
    int rc = xml_text(node, "Key", text, sizeof(text), e);
    if (rc == 0)
        rc = xml_text(node, "Size", size, sizeof(size), e);
    if (rc == 0)
        rc = str_to_i64(size, 0, INT64_MAX, "Size", ret_size, e);
    buf_clear(key);
    return rc == 0 ? str_url_decode(key, text, strlen(text), true, e) : rc;
}

static int read_keys(
    const struct xml_node *root, s3_key_fn fn, void *ctx, struct s3_page *page, struct err *e)
{
    struct buf key = {0};
    int rc = 0;
    for (const struct xml_node *c = xml_child(root, "Contents"); c && !rc && !page->is_stopped;
         c = xml_next(c)) {
        int64_t size;
        rc = read_key(c, &key, &size, e);
        if (rc == 0)
            page->is_stopped = fn(ctx, buf_str(&key), size) != 0;
    }
    buf_deinit(&key);
    return rc;
}

int s3_read_list(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e)
{
    struct xml x;
    struct s3_page page = {0};
    char truncated[8];
    int rc = open_as(&x, body, n, "ListBucketResult", e);
    if (rc != 0)
        return err_wrap(e, "the list");
    rc = xml_text(xml_root(&x), "IsTruncated", truncated, sizeof(truncated), e);
    if (rc == 0)
        rc = xml_text(xml_root(&x), "NextContinuationToken", page.token, sizeof(page.token), e);
    page.is_last = !str_eq(truncated, "true");
    if (rc == 0 && !page.is_last && !page.token[0])
        rc = err_set(e, ERR_INVALID, "it is truncated, but has no NextContinuationToken");
    if (rc == 0)
        rc = read_keys(xml_root(&x), fn, ctx, &page, e);
    xml_close(&x);
    if (rc != 0)
        return err_wrap(e, "the list");
    *ret_page = page;
    return 0;
}

static int read_blob(const struct xml_node *node, struct buf *key, int64_t *ret_size, struct err *e)
{
    char text[3 * S3_KEY_MAX], size[24];
    int rc = xml_text(node, "Name", text, sizeof(text), e);
    if (rc == 0)
        rc = xml_text(xml_child(node, "Properties"), "Content-Length", size, sizeof(size), e);
    if (rc == 0)
        rc = str_to_i64(size, 0, INT64_MAX, "Content-Length", ret_size, e);
    buf_clear(key);
    if (rc == 0)
        buf_adds(key, text);
    return rc;
}

int s3_read_blobs(
    const char *body, size_t n, s3_key_fn fn, void *ctx, struct s3_page *ret_page, struct err *e)
{
    struct xml x;
    struct s3_page page = {0};
    struct buf key = {0};
    int rc = open_as(&x, body, n, "EnumerationResults", e);
    if (rc != 0)
        return err_wrap(e, "the list");
    const struct xml_node *blobs = xml_child(xml_root(&x), "Blobs");
    rc = blobs ? xml_text(xml_root(&x), "NextMarker", page.token, sizeof(page.token), e)
               : err_set(e, ERR_INVALID, "it has no Blobs");
    page.is_last = !page.token[0];
    for (const struct xml_node *c = xml_child(blobs, "Blob"); c && !rc && !page.is_stopped;
         c = xml_next(c)) {
        int64_t size;
        rc = read_blob(c, &key, &size, e);
        if (rc == 0)
            page.is_stopped = fn(ctx, buf_str(&key), size) != 0;
    }
    buf_deinit(&key);
    xml_close(&x);
    if (rc != 0)
        return err_wrap(e, "the list");
    *ret_page = page;
    return 0;
}

int s3_read_upload(const char *body, size_t n, char ret_id[S3_UPLOAD_ID_MAX], struct err *e)
{
    struct xml x;
    int rc = open_as(&x, body, n, "InitiateMultipartUploadResult", e);
    if (rc != 0)
        return rc;
    rc = xml_text(xml_root(&x), "UploadId", ret_id, S3_UPLOAD_ID_MAX, e);
    if (rc == 0 && !ret_id[0])
        rc = err_set(e, ERR_INVALID, "it has no UploadId");
    xml_close(&x);
    return rc;
}

int s3_read_result(
    const char *body, size_t n, const char *element, struct s3_error *ret_error, struct err *e)
{
    struct xml x;
    *ret_error = (struct s3_error){0};
    s3_read_error(body, n, ret_error);
    if (ret_error->code[0])
        return 0;
    int rc = open_as(&x, body, n, element, e);
    if (rc == 0)
        xml_close(&x);
    return rc;
}

int s3_read_delete(const char *body, size_t n, struct s3_error *ret_error, struct err *e)
{
    struct xml x;
    *ret_error = (struct s3_error){0};
    int rc = open_as(&x, body, n, "DeleteResult", e);
    if (rc != 0)
        return rc;
    for (const struct xml_node *c = xml_child(xml_root(&x), "Error"); c && !ret_error->code[0];
         c = xml_next(c)) {
        read_error(c, ret_error);
        if (!ret_error->code[0])
            STR_COPY(ret_error->code, "InternalError"); /* an error without a code */
        if (str_eq(ret_error->code, "NoSuchKey"))
            *ret_error = (struct s3_error){0};
    }
    xml_close(&x);
    return 0;
}

/* ---- Meaning ---- */

static const struct {
    const char *code;
    enum s3_meaning meaning;
} codes[] = {
    {"PreconditionFailed", S3_EXISTS},
    {"NoSuchKey", S3_MISSING},
    {"NoSuchUpload", S3_MISSING},
    {"NoSuchBucket", S3_NO_BUCKET},
    {"SlowDown", S3_RETRY},
    {"Throttling", S3_RETRY},
    {"ThrottlingException", S3_RETRY},
    {"RequestLimitExceeded", S3_RETRY},
    {"TooManyRequests", S3_RETRY},
    {"BandwidthLimitExceeded", S3_RETRY},
    {"ServiceUnavailable", S3_RETRY},
    {"RequestTimeout", S3_RETRY},
    {"IncompleteBody", S3_RETRY},
    {"BadDigest", S3_RETRY},                  /* the body was damaged in transit */
    {"XAmzContentSHA256Mismatch", S3_RETRY},  /* likewise */
    {"OperationAborted", S3_RETRY},           /* another request is under way */
    {"ConditionalRequestConflict", S3_RETRY}, /* likewise */
    {"InternalError", S3_UNSURE},
    {"ExpiredToken", S3_KEYS},
    {"InvalidToken", S3_KEYS},
    {"TokenRefreshRequired", S3_KEYS},
    {"InvalidAccessKeyId", S3_KEYS},
    {"RequestTimeTooSkewed", S3_CLOCK},
    {"NotImplemented", S3_NOT_IMPLEMENTED},
    {"QuotaExceeded", S3_FULL},
    {"InsufficientStorage", S3_FULL},
    {"XMinioStorageFull", S3_FULL},
    {"AccessDenied", S3_DENIED}, /* also for one name among several */
    /* Azure's */
    {"BlobAlreadyExists", S3_EXISTS},
    {"ConditionNotMet", S3_EXISTS},
    {"BlobNotFound", S3_MISSING},
    {"InvalidBlockList", S3_MISSING}, /* another upload's list came first and dropped the blocks */
    {"ContainerNotFound", S3_NO_BUCKET},
    {"Md5Mismatch", S3_RETRY},
    {"AuthenticationFailed", S3_KEYS}, /* an expired signature */
    {"BlobImmutableDueToPolicy", S3_DENIED},
    {"PermanentRedirect", S3_ELSEWHERE},
    {"TemporaryRedirect", S3_ELSEWHERE},
    {"AuthorizationHeaderMalformed", S3_ELSEWHERE},
    {"IllegalLocationConstraintException", S3_ELSEWHERE},
};

static enum s3_meaning judge_status(int status)
{
    switch (status) {
    case 301:
    case 302:
    case 307:
    case 308:
        return S3_ELSEWHERE;
    case 401:
        return S3_KEYS;
    case 403:
        return S3_DENIED;
    case 404:
        return S3_MISSING;
    case 408:
    case 409:
    case 429:
    case 503:
        return S3_RETRY;
    case 412:
        return S3_EXISTS;
    case 501:
        return S3_NOT_IMPLEMENTED;
    case 507:
        return S3_FULL;
    default:
        return status >= 500 ? S3_UNSURE : S3_REFUSED;
    }
}

enum s3_meaning s3_judge(int status, const struct s3_error *error)
{
    if (status >= 200 && status < 300 && !error->code[0])
        return S3_DONE;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (str_eq(codes[i].code, error->code))
            return codes[i].meaning;
    /* an unknown error code in a reply with status 200 */
    return status < 300 ? S3_UNSURE : judge_status(status);
}
