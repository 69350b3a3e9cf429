/* SPDX-License-Identifier: Apache-2.0
 *
 * A working directory sent with a job: a text that lists its entries, and its content in pieces
 * named by their SHA-256. Pure; the CLI makes it, belayd stores it, an agent puts it in place.
 *
 *     belay-workdir 1
 *     d 755 src
 *     f 644 0 - src/__init__.py
 *     f 755 5242880 HASH,HASH src/train.py
 *     l latest TAB src/train.py
 *
 * One line per entry, each ended by a newline, in byte order of the paths; a file's content is cut
 * every WORKDIR_PIECE_BYTES. So equal directories have equal texts, and the SHA-256 of the text
 * identifies the directory. It can be created without following a link: a path has no "..", and
 * each of its parents is a directory in the same text.
 *
 * Pieces are sent in packs: a sequence of "HASH SIZE\n" and SIZE bytes.
 */
#ifndef BELAY_CKPT_WORKDIR_H
#define BELAY_CKPT_WORKDIR_H

#include "base/buf.h"
#include "ckpt/chunk.h"
#include <stdint.h>
#include <sys/types.h>

#define WORKDIR_PIECE_BYTES (4u << 20)
#define WORKDIR_PACK_BYTES                                                                         \
    (WORKDIR_PIECE_BYTES + (1u << 20)) /* of a pack at most; a piece always fits */
#define WORKDIR_TEXT_BYTES (4u << 20)
#define WORKDIR_ENTRIES_MAX 20000
#define WORKDIR_BYTES_MAX (INT64_C(2) << 30) /* of all files together */
#define WORKDIR_PATH_MAX 1023
#define WORKDIR_DEPTH_MAX 64
#define WORKDIR_PIECES_MAX (WORKDIR_ENTRIES_MAX + (size_t)(WORKDIR_BYTES_MAX / WORKDIR_PIECE_BYTES))
#define WORKDIR_ASK_MAX 1024 /* hashes in one request for pieces */

enum workdir_kind { WORKDIR_DIR, WORKDIR_FILE, WORKDIR_LINK };

struct workdir_entry {
    enum workdir_kind kind;
    mode_t mode;  /* permissions, 0 .. 0777; a link has none */
    int64_t size; /* of a file */
    char *path;
    char *target;         /* of a link */
    size_t piece, pieces; /* of a file: index of the first in workdir.hashes, and their number */
};

struct workdir {
    struct workdir_entry *v;
    size_t n;
    char(*hashes)
        /* of all files' pieces, file by file; may repeat */
        [CHUNK_HEX_SIZE];
    size_t n_hashes;
    int64_t bytes; /* of all files */
};

void workdir_deinit(struct workdir *w); /* a zeroed one is allowed */

/* ERR_INVALID names the line. */
int workdir_parse(const char *p, size_t n, struct workdir *ret_workdir, struct err *e);

/* How many pieces a file of this size has, and the bytes of its i-th. */
size_t workdir_pieces(int64_t size);
size_t workdir_piece_bytes(int64_t size, size_t i);

/* Adds entries, in order; ERR_INVALID for a path that cannot be sent. hashes: workdir_pieces(size)
 * of them. */
void workdir_begin(struct buf *out);
int workdir_add_dir(struct buf *out, const char *path, mode_t mode, struct err *e);
int workdir_add_file(struct buf *out, const char *path, mode_t mode, int64_t size,
    const char (*hashes)[CHUNK_HEX_SIZE], struct err *e);
int workdir_add_link(struct buf *out, const char *path, const char *target, struct err *e);

/* Whether s is a path below the directory in canonical form: UTF-8 without control characters, no
 * "", "." or ".." component, no leading or trailing '/', within the limits. */
bool workdir_is_path(const char *path);
bool workdir_is_hash(const char *s); /* 64 lower-case hex digits */

struct workdir_piece {
    char hash[CHUNK_HEX_SIZE];
    const char *p; /* borrowed from the pack */
    size_t n;      /* 1 .. WORKDIR_PIECE_BYTES */
};

void workdir_pack(struct buf *out, const char *hash, const void *p, size_t n);
/* Reads the next piece from the *n bytes at *p, advances both, and verifies its hash. Returns 1, or
 * 0 at the end; ERR_INVALID: not a pack; ERR_CORRUPT: wrong hash. */
int workdir_unpack(const char **p, size_t *n, struct workdir_piece *ret_piece, struct err *e);

/* Parses hashes, each followed by a newline, at most WORKDIR_ASK_MAX. The caller frees *ret_hashes.
 * ERR_INVALID. */
int workdir_parse_request(
    const char *p, size_t n, char (**ret_hashes)[CHUNK_HEX_SIZE], size_t *ret_n, struct err *e);

#endif
