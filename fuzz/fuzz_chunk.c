/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk as stored. Three bytes give the expected length of its content, the rest is the object:
 * it must only unpack to content with the right hash. Packing the same bytes and unpacking them
 * gives them back.
 */
#include "ckpt/chunk.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <openssl/evp.h>
#include <stdint.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct chunk_work *the_work(void)
{
    static struct chunk_work w;
    if (!w.content)
        w = (struct chunk_work){.content = mem_alloc(CKPT_CHUNK_BYTES),
            .packed = mem_alloc(ZSTD_COMPRESSBOUND(CKPT_CHUNK_BYTES)),
            .hash = EVP_MD_CTX_new(),
            .sha256 = EVP_MD_fetch(NULL, "SHA256", NULL),
            .cctx = ZSTD_createCCtx(),
            .dctx = ZSTD_createDCtx()};
    return &w;
}

static void unpack_foreign(struct chunk_work *w, const uint8_t *p, size_t n, size_t expected)
{
    static const char hash[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const void *content = NULL;
    struct err e = {0};
    buf_clear(&w->object);
    buf_add(&w->object, p, n);
    int rc = chunk_unpack(w, expected, hash, &content, &e);
    check_error(rc, &e);
    assert(rc == ERR_CORRUPT && !content);
}

static void round_trip(struct chunk_work *w, const uint8_t *p, size_t n)
{
    const void *content;
    void *stored;
    size_t n_stored;
    char hash[CHUNK_HEX_SIZE];
    struct err e;
    memcpy(w->content, p, n);
    chunk_hash(p, n, hash);
    chunk_pack(w, n, &stored, &n_stored);
    assert(n_stored >= 1 && n_stored <= n);
    buf_clear(&w->object);
    buf_add(&w->object, stored, n_stored);
    memset(w->content, 0, n);
    int rc = chunk_unpack(w, n, hash, &content, &e);
    assert(rc == 0 && memcmp(content, p, n) == 0);
    (void)rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    size_t expected =
        ((size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % CKPT_CHUNK_BYTES + 1;
    unpack_foreign(the_work(), data + 3, size - 3, expected);
    if (size - 3 <= CKPT_CHUNK_BYTES)
        round_trip(the_work(), data + 3, size - 3);
    return 0;
}
