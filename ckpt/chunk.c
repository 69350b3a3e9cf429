/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashing, compressing and the threads that do it. Each of at most THREADS_MAX threads has buffers
 * of about 12 MiB together, and the contexts of zstd.
 */
#include "ckpt/chunk.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/direct.h"
#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL 1
#define PACKED_MAX ZSTD_COMPRESSBOUND(CKPT_CHUNK_BYTES)
#define SAMPLE_BYTES (16u << 10) /* each at the start, middle and end of a chunk */
/* may exceed the number of cores, because some wait for disk or network while others compute */
#define THREADS_MAX 6

void chunk_hash(const void *p, size_t n, char out[CHUNK_HEX_SIZE])
{
    unsigned char digest[32];
    unsigned int len = 0;
    int ok = EVP_Digest(p, n, digest, &len, EVP_sha256(), NULL);

    assert(ok == 1 && len == sizeof(digest));
    str_hex(digest, sizeof(digest), out);
}

void chunk_hash_begin(struct chunk_work *w)
{
    int ok = EVP_DigestInit_ex(w->hash, w->sha256, NULL);

    assert(ok == 1);
    (void)ok;
}

void chunk_hash_add(struct chunk_work *w, const void *p, size_t n)
{
    int ok = EVP_DigestUpdate(w->hash, p, n);

    assert(ok == 1);
    (void)ok;
}

void chunk_hash_end(struct chunk_work *w, char out[CHUNK_HEX_SIZE])
{
    unsigned char digest[32];
    unsigned int len = 0;
    int ok = EVP_DigestFinal_ex(w->hash, digest, &len);

    assert(ok == 1 && len == sizeof(digest));
    str_hex(digest, sizeof(digest), out);
}

void chunk_hash_with(struct chunk_work *w, const void *p, size_t n, char out[CHUNK_HEX_SIZE])
{
    chunk_hash_begin(w);
    chunk_hash_add(w, p, n);
    chunk_hash_end(w, out);
}

/* Compresses p into w->packed. Returns the compressed size, or 0 if it saves less than 5 %. */
static size_t try_pack(struct chunk_work *w, const void *p, size_t n)
{
    size_t limit = n - n / 20;
    size_t packed = ZSTD_compressCCtx(w->cctx, w->packed, PACKED_MAX, p, n, LEVEL);

    assert(!ZSTD_isError(packed)); /* the output has space for the worst case */
    return packed < n && packed <= limit ? packed : 0;
}

static bool sample_gains(struct chunk_work *w, size_t n)
{
    unsigned char sample[3 * SAMPLE_BYTES];
    const unsigned char *p = w->content;

    if (n <= sizeof(sample))
        return true; /* the sample is the whole chunk */
    memcpy(sample, p, SAMPLE_BYTES);
    memcpy(sample + SAMPLE_BYTES, p + (n - SAMPLE_BYTES) / 2, SAMPLE_BYTES);
    memcpy(sample + 2 * SAMPLE_BYTES, p + n - SAMPLE_BYTES, SAMPLE_BYTES);
    return try_pack(w, sample, sizeof(sample)) != 0;
}

void chunk_pack(struct chunk_work *w, size_t n, void **ret_p, size_t *ret_stored)
{
    size_t packed = sample_gains(w, n) ? try_pack(w, w->content, n) : 0;

    *ret_p = packed ? w->packed : w->content;
    *ret_stored = packed ? packed : n;
}

int chunk_expand(
    struct chunk_work *w, size_t n, const char *sha256, const void **ret_p, struct err *e)
{
    const void *p = w->object.data;

    if (w->object.len < n) {
        size_t got = ZSTD_decompressDCtx(w->dctx, w->content, CKPT_CHUNK_BYTES, p, w->object.len);

        if (ZSTD_isError(got))
            return err_set(e, ERR_CORRUPT, "chunk %s: cannot be decompressed: %s", sha256,
                ZSTD_getErrorName(got));
        if (got != n)
            return err_set(e, ERR_CORRUPT, "chunk %s: %zu bytes instead of %zu", sha256, got, n);
        p = w->content;
    } else if (w->object.len > n) {
        return err_set(
            e, ERR_CORRUPT, "chunk %s: %zu bytes instead of %zu", sha256, w->object.len, n);
    }
    *ret_p = p;
    return 0;
}

int chunk_unpack(
    struct chunk_work *w, size_t n, const char *sha256, const void **ret_p, struct err *e)
{
    char hash[CHUNK_HEX_SIZE];
    const void *p;
    int rc = chunk_expand(w, n, sha256, &p, e);

    if (rc)
        return rc;
    chunk_hash_with(w, p, n, hash);
    if (!str_eq(hash, sha256))
        return err_set(e, ERR_CORRUPT, "chunk %s: its content does not have this hash", sha256);
    *ret_p = p;
    return 0;
}

static void work_init(struct chunk_work *w)
{
    *w = (struct chunk_work){
        .content = mem_pages(CKPT_CHUNK_BYTES + CRYPT_MORE),
        .packed = mem_pages(PACKED_MAX + CRYPT_MORE),
        .object = {.data = mem_pages(CKPT_CHUNK_BYTES + DIRECT_MORE),
            .cap = CKPT_CHUNK_BYTES + DIRECT_MORE},
        .hash = EVP_MD_CTX_new(),
        .sha256 = EVP_MD_fetch(NULL, "SHA256", NULL),
        .cctx = ZSTD_createCCtx(),
        .dctx = ZSTD_createDCtx(),
    };
    if (!w->hash || !w->sha256 || !w->cctx || !w->dctx)
        abort(); /* out of memory */
    w->object.data[0] = '\0';
}

static void work_deinit(struct chunk_work *w)
{
    free(w->content);
    free(w->packed);
    EVP_MD_CTX_free(w->hash);
    EVP_MD_free(w->sha256);
    ZSTD_freeCCtx(w->cctx);
    ZSTD_freeDCtx(w->dctx);
    buf_deinit(&w->object);
}

struct crew {
    size_t n;
    chunk_fn fn;
    void *ctx;
    const atomic_int *cancel;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* guards the first error */
    struct err first;
};

static void fail(struct crew *c, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    if (!atomic_exchange(&c->failed, true))
        c->first = *e;
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *ctx)
{
    struct crew *c = ctx;
    struct chunk_work w;
    struct err e;
    size_t i;

    work_init(&w);
    while (!atomic_load(&c->failed) && (i = atomic_fetch_add(&c->next, 1)) < c->n) {
        if (c->cancel && atomic_load(c->cancel)) {
            err_set(&e, ERR_CANCELLED, "cancelled");
            fail(c, &e);
        } else if (c->fn(c->ctx, &w, i, &e)) {
            fail(c, &e);
        }
    }
    work_deinit(&w);
    return NULL;
}

int chunk_for_each(size_t n, chunk_fn fn, void *ctx, const atomic_int *cancel, struct err *e)
{
    struct crew c = {
        .n = n, .fn = fn, .ctx = ctx, .cancel = cancel, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS_MAX];
    size_t started = 0;

    if (n == 0)
        return 0;
    /* If a thread cannot be started, the others do its work. */
    while (started + 1 < (n < THREADS_MAX ? n : THREADS_MAX) &&
           pthread_create(&threads[started], NULL, work, &c) == 0)
        started++;
    work(&c);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&c.lock);
    if (!atomic_load(&c.failed))
        return 0;
    if (e)
        *e = c.first;
    return c.first.kind;
}
