/* SPDX-License-Identifier: Apache-2.0
 *
 * One chunk of content: its name (SHA-256 of the content) and its stored form, which is the content
 * itself or, if that is smaller, one zstd frame. The size distinguishes them: stored < content
 * means a frame.
 */
#ifndef BELAY_CKPT_CHUNK_H
#define BELAY_CKPT_CHUNK_H

#include "base/buf.h"
#include "ckpt/ckpt.h"
#include <stdatomic.h>

#define CHUNK_HEX_SIZE 65 /* of a SHA-256, including the NUL */

/* Lower-case hex of the SHA-256 of n bytes. */
void chunk_hash(const void *p, size_t n, char out[CHUNK_HEX_SIZE]);

/* One thread's working memory; all buffers are page-aligned. */
struct chunk_work {
    void *content; /* CKPT_CHUNK_BYTES, and CRYPT_MORE */
    void *packed;  /* space for a frame of the worst case, and CRYPT_MORE */
    struct evp_md_ctx_st *hash;
    struct evp_md_st *sha256; /* fetched once, which takes longer than hashing a small file */
    struct ZSTD_CCtx_s *cctx;
    struct ZSTD_DCtx_s *dctx;
    struct buf object; /* read from the store */
};

/* Hashes content that comes in pieces, each while it is still in the CPU cache: begin, add each
 * piece, end. */
void chunk_hash_begin(struct chunk_work *w);
void chunk_hash_add(struct chunk_work *w, const void *p, size_t n);
void chunk_hash_end(struct chunk_work *w, char out[CHUNK_HEX_SIZE]);

/* As chunk_hash, faster for small n. */
void chunk_hash_with(struct chunk_work *w, const void *p, size_t n, char out[CHUNK_HEX_SIZE]);

/* The stored form of the n bytes in w->content, 1 .. CKPT_CHUNK_BYTES; *ret_p is w->content or
 * w->packed, so there is space for CRYPT_MORE after it, until the next call with w. zstd level 1,
 * and only if a sample of the chunk, and then the chunk, shrinks by 5 % or more. */
void chunk_pack(struct chunk_work *w, size_t n, void **ret_p, size_t *ret_stored);

/* The inverse: unpacks w->object into w->content. ERR_CORRUPT unless it is exactly n bytes with
 * this hash. *ret_p is borrowed until the next call with w. */
int chunk_unpack(
    struct chunk_work *w, size_t n, const char *sha256, const void **ret_p, struct err *e);

/* As chunk_unpack, but leaves the hash of the content to the caller: of a pack, each chunk has
 * one. */
int chunk_expand(
    struct chunk_work *w, size_t n, const char *sha256, const void **ret_p, struct err *e);

/* Runs fn for 0 .. n-1 on a few threads, the caller's included, each with its own memory. Stops at
 * the first error, or with ERR_CANCELLED once *cancel (may be NULL) is not 0; it is then undefined
 * which items ran. Returns when all threads are done. */
typedef int (*chunk_fn)(void *ctx, struct chunk_work *w, size_t i, struct err *e);
int chunk_for_each(size_t n, chunk_fn fn, void *ctx, const atomic_int *cancel, struct err *e);

#endif
