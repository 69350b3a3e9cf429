/* SPDX-License-Identifier: Apache-2.0
 *
 * Input is a manifest without its hash member, which is added here, because a wrong hash would
 * reject everything. An accepted manifest must be safe to build, and encode to a text that parses
 * to the same.
 */
#include "ckpt/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse_hashed(const uint8_t *data, size_t size, struct manifest *m, struct err *e)
{
    struct buf text = {0};
    char hash[CHUNK_HEX_SIZE];
    int rc;

    chunk_hash(data, size, hash);
    buf_add(&text, data, size);
    buf_printf(&text, ",\"sha256\":\"%s\"}", hash);
    rc = manifest_parse(text.data, text.len, m, e);
    buf_deinit(&text);
    return rc;
}

static int sum_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    (void)e;
    if (p->file->type != MANIFEST_FILE || p->file_offset < 0 ||
        p->file_offset + (int64_t)p->n > p->file->size || p->chunk_offset != *(size_t *)ctx)
        abort();
    *(size_t *)ctx += p->n;
    return 0;
}

static void check_pieces(const struct manifest *m)
{
    for (size_t i = 0; i < m->n_chunks; i++) {
        size_t sum = 0;

        manifest_each_piece(m, &m->chunks[i], sum_piece, &sum, NULL);
        if (sum != (size_t)m->chunks[i].size || sum > CKPT_CHUNK_BYTES)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest m, back;
    struct buf first = {0}, second = {0};
    struct err e;

    manifest_parse((const char *)data, size, &m, &e);
    if (parse_hashed(data, size, &m, &e))
        return 0;
    for (size_t i = 0; i < m.n_entries; i++)
        if (manifest_check_path(m.entries[i].path, &e))
            abort();
    check_pieces(&m);
    if (manifest_encode(&m, &first, &e) || manifest_parse(first.data, first.len, &back, &e) ||
        manifest_encode(&back, &second, &e) || strcmp(first.data, second.data) != 0)
        abort();
    buf_deinit(&first);
    buf_deinit(&second);
    manifest_deinit(&m);
    manifest_deinit(&back);
    return 0;
}
