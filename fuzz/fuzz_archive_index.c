/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a job's output in the store. What is accepted has each file once, with as much
 * content as it says, and is the same text when it is written again.
 */
#include "scheduler/logs/archive_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct copy {
    struct buf text;
    int64_t left;
};

static int add(void *ctx, const struct archive_line *line, struct err *e)
{
    struct copy *c = ctx;
    (void)e;
    if (line->type == ARCHIVE_FILE || line->type == ARCHIVE_END) {
        if (c->left != 0 || line->size < 0 || line->mtime_ms < 0)
            abort();
        c->left = line->size;
    }
    if (line->type == ARCHIVE_FILE && (!archive_is_output(line->name) || strchr(line->name, '/')))
        abort();
    if (line->type == ARCHIVE_CHUNK || line->type == ARCHIVE_HOLE) {
        if (line->bytes == 0 || line->bytes > CKPT_CHUNK_BYTES || line->stored > line->bytes)
            abort();
        c->left -= (int64_t)line->bytes;
    }
    archive_index_add(&c->text, line);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct copy c = {0};
    struct err e;
    if (archive_index_read((const char *)data, size, NULL, NULL, &e) == 0 &&
        (archive_index_read((const char *)data, size, add, &c, &e) != 0 || c.left != 0 ||
            c.text.len != size || memcmp(c.text.data, data, size) != 0))
        abort();
    buf_deinit(&c.text);
    return 0;
}
