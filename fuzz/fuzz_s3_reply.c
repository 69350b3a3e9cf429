/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of an S3 store. The first byte selects the parser: '0' a list, '1' the start of an
 * upload, '2' a copy's result, '3' a removal, '4' a refusal, '6' a list of Azure's; '5' is the URL
 * of a store.
 */
#include "check.h"
#include "ckpt/s3.h"
#include "ckpt/store/store.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_key(void *ctx, const char *key, int64_t size_bytes)
{
    assert(size_bytes >= 0 && strlen(key) < 3 * S3_KEY_MAX);
    return ++*(int *)ctx >= 3;
}

static int read_list(const char *body, size_t n, struct err *e)
{
    struct s3_page page;
    int n_keys = 0, rc = s3_read_list(body, n, on_key, &n_keys, &page, e);
    assert(rc != 0 || page.is_last || page.token[0]);
    assert(rc != 0 || page.is_stopped == (n_keys >= 3));
    return rc;
}

static int read_blobs(const char *body, size_t n, struct err *e)
{
    struct s3_page page;
    int n_keys = 0, rc = s3_read_blobs(body, n, on_key, &n_keys, &page, e);
    assert(rc != 0 || page.is_last == !page.token[0]);
    assert(rc != 0 || page.is_stopped == (n_keys >= 3));
    return rc;
}

static int read_upload(const char *body, size_t n, struct err *e)
{
    char id[S3_UPLOAD_ID_MAX];
    int rc = s3_read_upload(body, n, id, e);
    assert(rc != 0 || id[0]);
    return rc;
}

static void check_refusal(const struct s3_error *error)
{
    assert(!error->code[0] || str_is_name(error->code, 63));
    assert(!error->region[0] || str_is_name(error->region, 63));
    for (int status = 200; status < 600; status++)
        assert((s3_judge(status, error) == S3_DONE) == (status < 300 && !error->code[0]));
}

static int read_result(const char *body, size_t n, struct err *e)
{
    struct s3_error error;
    int rc = s3_read_result(body, n, "CopyObjectResult", &error, e);
    check_refusal(&error);
    return rc;
}

static int read_removal(const char *body, size_t n, struct err *e)
{
    struct s3_error error;
    int rc = s3_read_delete(body, n, &error, e);
    check_refusal(&error);
    return rc;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    struct s3_error error;
    (void)e;
    s3_read_error(body, n, &error);
    check_refusal(&error);
    return 0;
}

/* An accepted URL can be signed and sent. */
static int read_url(const char *text, size_t n, struct err *e)
{
    static const struct store_keys all[STORE_KEYS_KINDS] = {
        [STORE_KEYS_AWS] = {.kind = STORE_KEYS_AWS,
            .access_key = "A",
            .secret_key = "S",
            .token = "T"},
        [STORE_KEYS_GOOGLE] = {.kind = STORE_KEYS_GOOGLE, .token = "T"},
        [STORE_KEYS_AZURE] = {
            .kind = STORE_KEYS_AZURE, .is_signature = true, .token = "sv=1&sig=T"}};
    char *url = mem_strndup(text, n);
    struct s3_location p;
    int rc = s3_location_parse(url, &p, e);
    if (rc == 0) {
        const struct s3_request r = {
            .method = "GET", .key = "chunks/1", .query = "uploads=", .sha256 = S3_EMPTY_SHA256};
        struct s3_signed s;
        struct err bad;
        assert(p.bucket[0] && p.shown[0] && (p.region[0] || p.dialect != STORE_KEYS_AWS) &&
               p.host[0] && (!p.prefix[0] || str_ends(p.prefix, "/")));
        if (s3_sign(&p, &r, &all[p.dialect], (struct wall){0}, &s, &bad) == 0) {
            assert(str_starts(s.url, p.root) && !strpbrk(s.url, "\r\n "));
            s3_signed_deinit(&s);
        }
        s3_location_deinit(&p);
    }
    free(url);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_list, read_upload, read_result, read_removal, read_refusal, read_url, read_blobs};
    if (size == 0)
        return 0;
    struct err e = {0};
    int rc = readers[(data[0] - '0') % 7u]((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
