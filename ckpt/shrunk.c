/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/shrunk.h"
#include "ckpt/manifest.h"
#include <assert.h>
#include <string.h>
#include <zstd.h>

#define HEAD "{\"format\":\"belay-checkpoint\",\"version\":5,\"zstd\":\""
#define HEAD_BYTES (sizeof(HEAD) - 1)
#define LEVEL 1

void shrunk_close(struct buf *text)
{
    struct buf out = {0};
    char *to;
    size_t n;

    if (text->len < SHRUNK_FROM_BYTES)
        return;
    buf_adds(&out, HEAD);
    to = buf_reserve(&out, ZSTD_compressBound(text->len));
    n = ZSTD_compress(to, ZSTD_compressBound(text->len), text->data, text->len, LEVEL);
    assert(!ZSTD_isError(n)); /* the output has space for the worst case */
    buf_commit(&out, n);
    buf_deinit(text);
    manifest_add_tail(&out);
    *text = out;
}

bool shrunk_is(const struct buf *stored)
{
    return stored->len >= HEAD_BYTES && !memcmp(stored->data, HEAD, HEAD_BYTES);
}

int shrunk_open(struct buf *stored, struct err *e)
{
    const char *frame = stored->data + HEAD_BYTES;
    unsigned long long size;
    struct buf text = {0};
    size_t n, got;

    if (stored->len <= HEAD_BYTES + MANIFEST_TAIL_BYTES ||
        !manifest_tail_fits(stored->data, stored->len))
        return err_set(e, ERR_CORRUPT, "the compressed manifest does not match its own hash");
    n = stored->len - HEAD_BYTES - MANIFEST_TAIL_BYTES;
    size = ZSTD_getFrameContentSize(frame, n);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
        return err_set(e, ERR_CORRUPT, "the compressed manifest does not say its size");
    if (size > CKPT_MANIFEST_BYTES_MAX)
        return err_set(e, ERR_CORRUPT, "the manifest has %llu bytes: expected at most %u", size,
            CKPT_MANIFEST_BYTES_MAX);
    buf_reserve(&text, (size_t)size + 1);
    got = ZSTD_decompress(text.data, (size_t)size, frame, n);
    if (ZSTD_isError(got) || got != size) {
        buf_deinit(&text);
        return err_set(e, ERR_CORRUPT, "the compressed manifest cannot be decompressed: %s",
            ZSTD_isError(got) ? ZSTD_getErrorName(got) : "it is too short");
    }
    buf_commit(&text, got);
    buf_deinit(stored);
    *stored = text;
    return 0;
}
