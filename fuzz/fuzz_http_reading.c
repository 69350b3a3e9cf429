/* SPDX-License-Identifier: Apache-2.0
 *
 * A local server's reply. The first byte says how the rest is split: no crash, and the same outcome
 * as without splitting.
 */
#include "base/uv/http_reading.h"
#include "fuzz/check.h"
#include <stdint.h>

#define REPLY_MAX 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_pieces(struct http_reading *g, const char *p, size_t n, size_t piece)
{
    const struct http_request r = {.method = "GET", .max_reply_bytes = REPLY_MAX};
    struct err e = {0};
    int rc = 0;
    http_reading_init(g, &r, "fuzz");
    for (size_t at = 0; rc == 0 && !g->is_done && at < n; at += piece)
        rc = http_reading_feed(g, p + at, n - at < piece ? n - at : piece, &e);
    if (rc == 0 && !g->is_done)
        rc = http_reading_feed(g, NULL, 0, &e);
    if (rc != 0)
        check_error(rc, &e);
    assert(rc != 0 || (g->is_done && g->reply.status >= 100 && g->reply.status <= 599));
    assert(g->reply.body.len <= REPLY_MAX && g->reply.n_headers <= HTTP_REPLY_HEADERS_MAX);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_reading whole, cut;
    if (size == 0)
        return 0;
    const char *p = (const char *)data + 1;
    int rc = read_pieces(&whole, p, size - 1, size);
    int rc_cut = read_pieces(&cut, p, size - 1, data[0] % 64 + 1);
    assert((rc == 0) == (rc_cut == 0));
    if (rc == 0) {
        const struct http_reply *a = &whole.reply, *b = &cut.reply;
        assert(
            a->status == b->status && a->n_headers == b->n_headers && a->body.len == b->body.len);
        assert(memcmp(buf_str(&a->body), buf_str(&b->body), a->body.len) == 0);
        for (size_t i = 0; i < a->n_headers; i++)
            assert(strcmp(a->headers[i], b->headers[i]) == 0);
    }
    http_reading_deinit(&whole);
    http_reading_deinit(&cut);
    return 0;
}
