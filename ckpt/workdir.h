/* SPDX-License-Identifier: Apache-2.0
 *
 * A working directory that is sent with a job: what is in it, as a text, and its content in pieces
 * that have their SHA-256 for a name. Pure; the CLI makes it, belayd stores it, an agent puts it in
 * place.
 *
 *     belay-workdir 1
 *     d 755 src
 *     f 644 0 - src/__init__.py
 *     f 755 5242880 HASH,HASH src/train.py
 *     l latest TAB src/train.py
 *
 * A line an entry, each ended by a newline, in the order of the bytes of their paths; a file's
 * content is cut every WORKDIR_PIECE_BYTES. So the same directory is the same text, and the SHA-256
 * of that names the whole. What stands in it can be made without following a link: a path has no
 * "..", and each of its parents is a directory of the same text.
 *
 * Pieces travel in packs: "HASH SIZE\n" and SIZE bytes, one after the other.
 */
#ifndef BELAY_CKPT_WORKDIR_H
#define BELAY_CKPT_WORKDIR_H

#include "base/buf.h"
#include "ckpt/chunk.h"
#include <stdint.h>
#include <sys/types.h>

#define WORKDIR_PIECE_BYTES (4u << 20)
#define WORKDIR_PACK_BYTES                                                                         \
    (WORKDIR_PIECE_BYTES + (1u << 20)) /* of a pack at most: there is always room for a piece */
#define WORKDIR_TEXT_BYTES (4u << 20)
#define WORKDIR_ENTRIES_MAX 20000
#define WORKDIR_BYTES_MAX (INT64_C(2) << 30) /* of all files together */
#define WORKDIR_PATH_MAX 1023
#define WORKDIR_DEPTH_MAX 64
#define WORKDIR_PIECES_MAX (WORKDIR_ENTRIES_MAX + (size_t)(WORKDIR_BYTES_MAX / WORKDIR_PIECE_BYTES))
#define WORKDIR_ASK_MAX 1024 /* hashes in one question for pieces */

enum workdir_kind { WORKDIR_DIR, WORKDIR_FILE, WORKDIR_LINK };

struct workdir_entry {
    enum workdir_kind kind;
    mode_t mode;  /* permissions, 0 .. 0777; a link has none */
    int64_t size; /* of a file */
    char *path;
    char *target;         /* of a link */
    size_t piece, pieces; /* of a file: the first of workdir.hashes, and how many */
};

struct workdir {
    struct workdir_entry *v;
    size_t n;
    char(*hashes)
        /* of all files' pieces, one file after the other; the same one may come again */
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

/* A path below the directory, in its one form: UTF-8 without control characters, no "", "." or ".."
 * in it, no '/' before or behind it, within the limits. */
bool workdir_is_path(const char *path);
bool workdir_is_hash(const char *s); /* 64 lower-case hex digits */

struct workdir_piece {
    char hash[CHUNK_HEX_SIZE];
    const char *p; /* borrowed from the pack */
    size_t n;      /* 1 .. WORKDIR_PIECE_BYTES */
};

void workdir_pack(struct buf *out, const char *hash, const void *p, size_t n);
/* The next piece of *n bytes at *p, which move behind it; its hash is checked. 1, or 0 at the end;
 * ERR_INVALID: it is no pack, ERR_CORRUPT: not what the hash says. */
int workdir_unpack(const char **p, size_t *n, struct workdir_piece *ret_piece, struct err *e);

/* Hashes with a newline behind each, at most WORKDIR_ASK_MAX; *ret_hashes is the caller's to free.
 * ERR_INVALID. */
int workdir_parse_ask(
    const char *p, size_t n, char (**ret_hashes)[CHUNK_HEX_SIZE], size_t *ret_n, struct err *e);

#endif
