/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of a request, and its chunked body: the end of the head does not depend on how the bytes
 * are split; an accepted head has no control characters and one framing; a body decodes to the same
 * data in one piece as byte by byte.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/uv/http_head.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int find(const char *p, size_t n, size_t piece, size_t *ret_bytes)
{
    size_t scanned = 0;
    struct err e = {0};
    int status = 0, rc = 0;
    *ret_bytes = 0;
    for (size_t at = 0; at < n && rc == 0 && *ret_bytes == 0;) {
        at = at + piece < n ? at + piece : n;
        rc = http_head_find(p, at, &scanned, ret_bytes, &status, &e);
    }
    if (rc != 0) {
        check_error(rc, &e);
        assert(status >= 400);
    }
    return rc;
}

static void check_head(const struct http_head *h)
{
    for (size_t i = 0; i < h->n_fields; i++)
        assert(http_field_is_valid(h->fields[i].name, h->fields[i].value));
    bool has_length = http_head_field(h, "content-length"),
         is_chunked = http_head_field(h, "transfer-encoding");
    assert(!(has_length && is_chunked) && is_chunked == (h->framing == HTTP_CHUNKED));
    assert((h->framing == HTTP_LENGTH) == (h->content_length > 0));
    assert(*h->method && *h->target && !strchr(h->target, ' '));
}

static int decode(const char *p, size_t n, size_t piece, struct buf *out, size_t *ret_used)
{
    struct http_chunks c = {0};
    struct err e = {0};
    size_t at = 0;
    while (at < n && c.state != CHUNKS_DONE) {
        size_t used, n_data, end = n - at < piece ? n : at + piece;
        int rc = http_chunks_take(&c, p + at, end - at, &used, &n_data, &e);
        if (rc != 0) {
            check_error(rc, &e);
            return rc;
        }
        assert(used > 0 && used <= end - at && n_data <= used);
        at += used;
        buf_add(out, p + at - n_data, n_data);
    }
    *ret_used = at;
    return 0;
}

static void check_body(const char *p, size_t n)
{
    struct buf whole = {0}, single = {0};
    size_t n_whole = 0, n_single = 0;
    int rc = decode(p, n, n, &whole, &n_whole);
    assert(decode(p, n, 1, &single, &n_single) == rc);
    if (rc == 0)
        assert(n_whole == n_single && whole.len == single.len &&
               (whole.len == 0 || memcmp(whole.data, single.data, whole.len) == 0));
    buf_deinit(&whole);
    buf_deinit(&single);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *p = mem_dup(data, size);
    struct http_head h = {0};
    struct err e = {0};
    size_t n, n_single;
    int status = 0;
    bool is_found = find(p, size, size, &n) == 0 && n > 0;
    assert((find(p, size, 1, &n_single) == 0 && n_single > 0) == is_found);
    if (is_found) {
        assert(n == n_single);
        check_body(p + n, size - n);
        int rc = http_head_parse(p, n, &h, &status, &e);
        if (rc == 0)
            check_head(&h);
        else
            check_error(rc, &e);
        assert(rc == 0 || status >= 400);
        http_head_deinit(&h);
    }
    free(p);
    return 0;
}
