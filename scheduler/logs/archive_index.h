/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a job's output in the store (archive.h), a text:
 *
 *     belay-output 1 KEY            the id of the key that seals, or -
 *     file NAME SIZE MTIME_MS       followed by its content, SIZE bytes
 *     chunk SHA256 BYTES STORED
 *     hole BYTES                    zeros; not stored
 *     end
 *
 * There is one way to write an index: what is accepted is, written again, the same text. Names are
 * those of output, and unique. PURE.
 */
#ifndef BELAY_SCHEDULER_LOGS_ARCHIVE_INDEX_H
#define BELAY_SCHEDULER_LOGS_ARCHIVE_INDEX_H

#include "base/buf.h"
#include "base/err.h"
#include "ckpt/chunk.h"
#include "ckpt/crypt.h"
#include <stdbool.h>
#include <stdint.h>

#define ARCHIVE_INDEX_BYTES_MAX (64u << 20)
#define ARCHIVE_FILES_MAX 100000 /* in a job's directory */
#define ARCHIVE_NAME_SIZE 64     /* of the name of a file, with its NUL */

enum archive_line_type { ARCHIVE_BEGIN, ARCHIVE_FILE, ARCHIVE_CHUNK, ARCHIVE_HOLE, ARCHIVE_END };

struct archive_line {
    enum archive_line_type type;
    char key[CRYPT_ID_HEX + 1];   /* ARCHIVE_BEGIN; "" = not sealed */
    char name[ARCHIVE_NAME_SIZE]; /* ARCHIVE_FILE, with the next two */
    int64_t size, mtime_ms;
    char sha256[CHUNK_HEX_SIZE]; /* ARCHIVE_CHUNK */
    size_t bytes;                /* of a chunk or a hole: 1 .. CKPT_CHUNK_BYTES */
    size_t stored;               /* of a chunk, packed: 1 .. bytes */
};

/* Whether it is a file of output: N.log, N.RANK.log, and N.log.at and N.log.cut beside it. */
bool archive_is_output(const char *name);

void archive_index_add(struct buf *index, const struct archive_line *line);

/* Calls fn, which may be NULL, for each line, until it fails. ERR_CORRUPT names the line of the
 * index that is wrong; lines before it were given to fn, so call it without fn first. */
typedef int (*archive_line_fn)(void *ctx, const struct archive_line *line, struct err *e);
int archive_index_read(const char *text, size_t n, archive_line_fn fn, void *ctx, struct err *e);

#endif
