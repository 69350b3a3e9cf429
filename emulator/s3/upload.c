/* SPDX-License-Identifier: Apache-2.0
 *
 * Multipart uploads.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/s3/parts.h"
#include "emulator/xml_write.h"
#include "cloud/xml.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES_MIN (5u << 20) /* of all parts except the last */

static struct s3_upload *find(struct s3_call *c)
{
    const char *id = form_get(&c->query, "uploadId");
    struct s3_upload *u = s3_upload_find(&c->account->objects, c->bucket, c->key, id ? id : "");
    if (!u)
        s3_fail(c, "NoSuchUpload", NULL);
    return u;
}

void s3_create_upload(struct s3_call *c)
{
    form_get(&c->query, "uploads");
    if (s3_query_end(c) < 0)
        return;
    const struct s3_upload *u = s3_upload_new(&c->account->objects, c->bucket, c->key);
    struct buf *b = &c->reply->body;
    s3_open(c, "InitiateMultipartUploadResult");
    xmlw_leaf(b, "Bucket", c->bucket->name);
    xmlw_leaf(b, "Key", c->key);
    xmlw_leaf(b, "UploadId", u->id);
    xmlw_close(b, "InitiateMultipartUploadResult");
}

void s3_upload_part(struct s3_call *c)
{
    char sha256[S3_CHECKSUM_BYTES];
    const char *text = form_get(&c->query, "partNumber");
    int64_t number;
    struct s3_upload *u = find(c);
    if (!u || s3_query_end(c) < 0)
        return;
    if (str_to_i64(text, 1, S3_PARTS_LIMIT, "partNumber", &number, NULL) < 0) {
        s3_fail(c, "InvalidArgument", "Part number must be an integer between 1 and %d",
            S3_PARTS_LIMIT);
        return;
    }
    if (s3_check_body(c, sha256) < 0 || s3_check_space(c, c->request->body_len) < 0)
        return;
    struct s3_upload_part *part = s3_upload_put(
        &c->account->objects, u, (size_t)number, c->request->body, c->request->body_len);
    STR_COPY(part->sha256, sha256);
    front_reply_header(c->reply, "ETag", "\"%s\"", part->etag);
    if (sha256[0])
        front_reply_header(c->reply, "x-amz-checksum-sha256", "%s", sha256);
}

/* ---- Completing ---- */

struct joining {
    struct s3_call *c;
    struct s3_upload *upload;
    struct buf data, md5s, sha256s;
    size_t n;
    int64_t last;
    bool has_sha256;
};

static void strip_quotes(char *s)
{
    size_t n = strlen(s);
    if (n >= 2 && s[0] == '"' && s[n - 1] == '"') {
        memmove(s, s + 1, n - 2);
        s[n - 2] = '\0';
    }
}

static void add_hex(struct buf *out, const char *hex)
{
    for (; hex[0] && hex[1]; hex += 2) {
        unsigned byte;
        if (sscanf(hex, "%2x", &byte) == 1)
            buf_addc(out, (char)byte);
    }
}

static int join_part(struct joining *j, const struct xml_node *node)
{
    char number[8] = "", etag[S3_ETAG_BYTES + 2] = "", sum[S3_CHECKSUM_BYTES] = "";
    int64_t k;
    xml_text_cut(node, "PartNumber", number, sizeof(number));
    xml_text_cut(node, "ETag", etag, sizeof(etag));
    xml_text_cut(node, "ChecksumSHA256", sum, sizeof(sum));
    strip_quotes(etag);
    if (str_to_i64(number, 1, S3_PARTS_LIMIT, "PartNumber", &k, NULL) < 0)
        return s3_fail(j->c, "MalformedXML", "a part without a number");
    if (k <= j->last)
        return s3_fail(j->c, "InvalidPartOrder", "The list of parts was not in ascending order.");
    const struct s3_upload_part *part =
        (size_t)k <= j->upload->n_parts ? &j->upload->parts[k - 1] : NULL;
    if (!part || !part->is_there || !str_eq(part->etag, etag) ||
        (sum[0] && !str_eq(sum, part->sha256)))
        return s3_fail(
            j->c, "InvalidPart", "One or more of the specified parts could not be found.");
    if (xml_next(node) && part->data.len < PART_BYTES_MIN)
        return s3_fail(j->c, "EntityTooSmall", NULL);
    buf_add(&j->data, buf_str(&part->data), part->data.len);
    add_hex(&j->md5s, part->etag);
    j->has_sha256 = j->has_sha256 && part->sha256[0];
    if (j->has_sha256)
        b64_decode(&j->sha256s, part->sha256, strlen(part->sha256), NULL);
    j->n++;
    j->last = k;
    return 0;
}

static int join_parts(struct joining *j)
{
    const struct front_request *r = j->c->request;
    struct xml x;
    if (xml_open(&x, r->body, r->body_len, NULL) < 0)
        return s3_fail(j->c, "MalformedXML", "The XML you provided was not well-formed");
    int rc = 0;
    if (!str_eq(xml_name(xml_root(&x)), "CompleteMultipartUpload") ||
        !xml_child(xml_root(&x), "Part"))
        rc = s3_fail(j->c, "MalformedXML", "expected <CompleteMultipartUpload> with parts");
    for (const struct xml_node *p = xml_child(xml_root(&x), "Part"); rc == 0 && p; p = xml_next(p))
        rc = join_part(j, p);
    xml_close(&x);
    return rc;
}

static void finish(struct joining *j)
{
    struct s3_call *c = j->c;
    char md5[33], sha256[S3_CHECKSUM_BYTES];
    s3_md5_hex(j->md5s.data, j->md5s.len, md5);
    s3_sha256_base64(j->sha256s.data, j->sha256s.len, sha256);
    s3_upload_free(&c->account->objects, j->upload);
    struct s3_object *object =
        s3_bucket_put(&c->account->objects, c->bucket, c->key, &j->data, c->now);
    snprintf(object->etag, sizeof(object->etag), "%s-%zu", md5, j->n);
    if (j->has_sha256)
        snprintf(object->sha256, sizeof(object->sha256), "%.46s-%zu", sha256, j->n);
    s3_open(c, "CompleteMultipartUploadResult");
    xmlw_leaf(&c->reply->body, "Bucket", c->bucket->name);
    xmlw_leaf(&c->reply->body, "Key", c->key);
    xmlw_printf(&c->reply->body, "ETag", "\"%s\"", object->etag);
    xmlw_close(&c->reply->body, "CompleteMultipartUploadResult");
}

void s3_complete_upload(struct s3_call *c)
{
    struct joining j = {.c = c, .upload = find(c), .has_sha256 = true};
    if (!j.upload || s3_query_end(c) < 0 || s3_check_condition(c) < 0)
        return;
    if (join_parts(&j) == 0)
        finish(&j);
    buf_deinit(&j.data);
    buf_deinit(&j.md5s);
    buf_deinit(&j.sha256s);
}

void s3_abort_upload(struct s3_call *c)
{
    struct s3_upload *u = find(c);
    if (!u || s3_query_end(c) < 0)
        return;
    s3_upload_free(&c->account->objects, u);
    c->reply->status = 204;
}

void s3_list_uploads(struct s3_call *c)
{
    struct buf *b = &c->reply->body;
    s3_open(c, "ListMultipartUploadsResult");
    xmlw_leaf(b, "Bucket", c->bucket->name);
    xmlw_leaf(b, "IsTruncated", "false");
    LIST_FOREACH (&c->account->objects.uploads, l) {
        const struct s3_upload *u = LIST_ENTRY(l, struct s3_upload, link);
        if (u->bucket != c->bucket)
            continue;
        xmlw_open(b, "Upload");
        xmlw_leaf(b, "Key", u->key);
        xmlw_leaf(b, "UploadId", u->id);
        xmlw_close(b, "Upload");
    }
    xmlw_close(b, "ListMultipartUploadsResult");
}
