/* SPDX-License-Identifier: Apache-2.0
 *
 * Working directories sent by users and received by agents: texts, packs and queries. An accepted
 * text equals its re-encoding, and all its names stay inside the directory.
 */
#include "base/mem.h"
#include "ckpt/workdir.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_copy(const struct workdir *w, struct buf *out)
{
    struct err e;
    workdir_begin(out);
    for (size_t i = 0; i < w->n; i++) {
        const struct workdir_entry *x = &w->v[i];
        const char(*hashes)[CHUNK_HEX_SIZE] =
            x->pieces ? (const char(*)[CHUNK_HEX_SIZE])w->hashes + x->piece : NULL;
        int rc = x->kind == WORKDIR_DIR ? workdir_add_dir(out, x->path, x->mode, &e)
                 : x->kind == WORKDIR_LINK
                     ? workdir_add_link(out, x->path, x->target, &e)
                     : workdir_add_file(out, x->path, x->mode, x->size, hashes, &e);
        assert(rc == 0 && workdir_is_path(x->path));
    }
}

static void check_text(const char *p, size_t n)
{
    struct workdir w;
    struct buf again = {0};
    struct err e = {0};
    int rc = workdir_parse(p, n, &w, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    write_copy(&w, &again);
    assert(again.len == n && memcmp(again.data, p, n) == 0);
    buf_deinit(&again);
    workdir_deinit(&w);
}

static void check_pack(const char *p, size_t n)
{
    struct workdir_piece piece;
    struct err e = {0};
    int rc;
    while ((rc = workdir_unpack(&p, &n, &piece, &e)) > 0)
        assert(workdir_is_hash(piece.hash) && piece.n > 0);
    if (rc != 0)
        check_error(rc, &e);
}

static void check_request(const char *p, size_t n)
{
    char(*v)[CHUNK_HEX_SIZE];
    size_t many;
    struct err e = {0};
    int rc = workdir_parse_request(p, n, &v, &many, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return;
    }
    assert(many > 0 && workdir_is_hash(v[many - 1]));
    free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = mem_strndup("", 0);
    if (size > 0) {
        free(copy);
        copy = mem_dup(data, size); /* ends where a sanitizer detects reads beyond it */
    }
    check_text(copy, size);
    check_pack(copy, size);
    check_request(copy, size);
    free(copy);
    return 0;
}
