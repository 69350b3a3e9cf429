/* SPDX-License-Identifier: Apache-2.0
 *
 * The manifest of a checkpoint: what is in it and which chunks it is in.
 *
 * The content of all files, in the order of the entries, is one stream; the chunks are pieces of
 * that stream, in order. So a chunk may contain many small files, and a large file spans many
 * chunks; the writer chooses where to cut (manifest_cut), and the reader accepts any cuts. A chunk
 * is an object of its own in the store, or a part of a pack: an object that has the content of many
 * chunks, also of chunks that only earlier checkpoints have (pack.h says which, and why).
 *
 * Text: one JSON object, which must have one line for each entry and each chunk, so that it is read
 * and written without building a tree in memory:
 *     {"format":"belay-checkpoint","version":2,"cluster":"lab","job":42,"attempt":3,"sequence":7,
 *      "saved_at":"2026-08-22T12:02:00Z","progress":1200,"entries":[
 *     {"path":"model","type":"dir","mode":493,"mtime_ns":1,"xattrs":{"user.origin":"6162"}},
 *     {"path":"model/again","type":"hard","target":"model/w.bin"}, ...
 *     {"path":"model/latest","type":"link","target":"w.bin","mtime_ns":1},
 *     {"path":"model/w.bin","type":"file","mode":420,"mtime_ns":1,"size":1048576,
 *      "data":[[0,4096],[65536,8192]]}
 *     ],"chunks":[
 *     {"sha256":"<hex>","size":12288,"stored":12288}
 *     ],"sha256":"<hex of the SHA-256 of all text before this comma>"}
 * All up to "entries":[ is one line; without "progress" it is unknown. "hard" is another name of
 * the inode of a file or link that comes before it; "data" says where in a sparse file its content
 * is (in order, not overlapping; the rest are holes); "xattrs" are in the order of their names,
 * their values in hex. Version 1, which is still read, has none of the three, and is one line.
 *
 * Version 6 is written if there are packs. It has chunks of a second form, and a third list:
 *     {"pack":1,"at":8192,"size":512,"sha256":"<hex>"}, ...
 *     ],"packs":[
 *     {"sha256":"<hex>","size":4194304,"stored":1048576}
 *     ],"sha256":"<hex of the SHA-256 of all text before this comma>"}
 * "pack" counts from 1, "at" is an offset in the content of that pack. Two chunks may be in the
 * same place, if their content is the same: the hash of each is checked. The hash of a pack names
 * it, and need not be that of its content (pack.h). In version 4, otherwise the same and still
 * read, it is.
 *
 * Version 3 is the stored form of an encrypted manifest (sealed.h), version 5 that of a compressed
 * one (shrunk.h). Everything here is pure: no I/O.
 */
#ifndef BELAY_CKPT_MANIFEST_H
#define BELAY_CKPT_MANIFEST_H

#include "base/buf.h"
#include "base/time.h"
#include "ckpt/chunk.h"
#include "ckpt/ckpt.h"
#include "ckpt/crypt.h"

#define MANIFEST_VERSION 2
#define MANIFEST_VERSION_SEALED 3    /* of an encrypted manifest: sealed.h */
#define MANIFEST_VERSION_PACKS_4 4   /* of one with packs that are named by their content */
#define MANIFEST_VERSION_SHRUNK 5    /* of a compressed one: shrunk.h */
#define MANIFEST_VERSION_PACKS 6     /* of one with packs */
#define MANIFEST_DEPTH_MAX 64        /* components of a path */
#define MANIFEST_CUT_BYTES (1 << 20) /* files below this size are in packs */
/* above so many small files, several of them share a chunk */
#define MANIFEST_PACKED_MAX 250000
/* Entries and chunks of a large manifest. Its memory is in blocks too small to return to the kernel
 * by themselves, of several threads: mem_trim after its use, or the agent keeps it. */
#define MANIFEST_LARGE 10000
#define MANIFEST_NO_PACK UINT32_MAX /* to be in a pack that is not known yet */
#define MANIFEST_BYTES_TOTAL_MAX ((int64_t)1 << 50)
#define MANIFEST_EXTENTS_MAX 4096            /* of one file */
#define MANIFEST_XATTRS_MAX 256              /* of one entry */
#define MANIFEST_XATTR_BYTES_MAX (64u << 10) /* of all values of one entry */
/* of all extents and attributes of a checkpoint, in memory */
#define MANIFEST_EXTRA_BYTES_MAX (32u << 20)

enum manifest_type { MANIFEST_DIR, MANIFEST_FILE, MANIFEST_LINK, MANIFEST_HARD };

struct manifest_extent {
    int64_t offset, size; /* in the file */
};

struct manifest_xattr {
    const char *name; /* UTF-8, "user...." */
    const void *value;
    size_t size;
};

/* Attributes that few entries have. */
struct manifest_extra {
    bool is_sparse;
    const struct manifest_extent *data; /* of a sparse file, in order, not touching */
    size_t n_data;
    int64_t content;                     /* bytes in data */
    const struct manifest_xattr *xattrs; /* by name, in byte order */
    size_t n_xattrs;
};

struct manifest_entry {
    const char *path;             /* relative, UTF-8 */
    const char *target;           /* of a link; of a hard link its first name; else NULL */
    struct manifest_extra *extra; /* NULL if none */
    int64_t mtime_ns;             /* since 1970; 0 for a hard link */
    int64_t size;                 /* of a file, holes included, else 0 */
    int64_t offset;               /* in the stream; derived by manifest_lay_out */
    int32_t mode;                 /* 0 .. 01777; 0 for a link and a hard link */
    enum manifest_type type;
};

struct manifest_chunk {
    char sha256[CHUNK_HEX_SIZE]; /* of the content */
    int64_t size;                /* 1 .. CKPT_CHUNK_BYTES, of the content */
    int64_t stored;              /* 1 .. size; smaller: a zstd frame; of an object */
    int64_t offset;              /* in the stream; derived by manifest_lay_out */
    uint32_t pack;               /* from 1: its content is in this pack; 0 = it is an object */
    uint32_t at;                 /* offset in the pack's content */
};

struct manifest {
    char cluster[65];
    int64_t job;
    struct ckpt_id id;
    struct wall saved_at;
    int64_t progress;            /* -1 = unknown */
    char sha256[CHUNK_HEX_SIZE]; /* hash of the manifest itself, set by manifest_parse */
    /* key of the manifest and its chunks, borrowed; NULL if not encrypted */
    const struct crypt_key *key;
    /* by path, in byte order, so a directory comes before its content */
    struct manifest_entry *entries;
    size_t n_entries, cap_entries;
    struct manifest_chunk *chunks;
    size_t n_chunks, cap_chunks;
    struct manifest_chunk *packs; /* objects; only sha256, size and stored are used */
    size_t n_packs, cap_packs;
    struct manifest_block *blocks; /* memory of texts and extras */
    size_t extra_bytes;
};

void manifest_deinit(struct manifest *m); /* zeroed is valid and empty */

/* Frees the entries, for callers that need only the chunks. */
void manifest_drop_entries(struct manifest *m);

/* Adds a zeroed entry or chunk at the end; borrowed until the next add. */
struct manifest_entry *manifest_add_entry(struct manifest *m);
struct manifest_chunk *manifest_add_chunk(struct manifest *m);
struct manifest_chunk *manifest_add_pack(struct manifest *m);

/* A copy of n bytes and a NUL, which lives as long as the entries. */
const char *manifest_text(struct manifest *m, const char *s, size_t n);

/* Gives an entry its extents or attributes (both copied), which must obey the rules above.
 * ERR_INVALID over a limit. */
int manifest_set_data(struct manifest *m, struct manifest_entry *entry,
    const struct manifest_extent *v, size_t n, struct err *e);
int manifest_set_xattrs(struct manifest *m, struct manifest_entry *entry,
    const struct manifest_xattr *v, size_t n, struct err *e);

/* Size of an entry's content in the stream. */
static inline int64_t manifest_content(const struct manifest_entry *entry)
{
    return entry->extra && entry->extra->is_sparse ? entry->extra->content : entry->size;
}

/* Returns 0 if path is safe to create below a directory: relative, 1 .. CKPT_PATH_MAX-1 bytes of
 * UTF-8, no empty, "." or ".." part, no part over 255 bytes, at most MANIFEST_DEPTH_MAX parts.
 * ERR_INVALID. */
int manifest_check_path(const char *path, struct err *e);

/* Cuts the stream of the entries' contents into chunks (replacing m->chunks; hashes empty, stored =
 * size). A file of MANIFEST_CUT_BYTES or more has chunks of 4 MiB; each other one is a chunk of its
 * own, to be in a pack (MANIFEST_NO_PACK). Over MANIFEST_PACKED_MAX of these, a hash of the names
 * says which neighbours share a chunk, so that a new or longer file changes only that chunk. */
void manifest_cut(struct manifest *m);

/* Sets the offsets and checks what a reader relies on: order and uniqueness of paths, every path
 * safe and its parent a directory entry, a hard link's target a file or link before it, limits, the
 * chunks' sizes adding up to the files'. ERR_CORRUPT. */
int manifest_lay_out(struct manifest *m, struct err *e);

int64_t manifest_bytes(const struct manifest *m); /* of content */
int64_t manifest_files(const struct manifest *m); /* regular files; hard links count once */

/* Calls fn for each file that a chunk has a part of, in order, until it returns non-zero, which is
 * then returned. m must be laid out. */
struct manifest_piece {
    const struct manifest_entry *file;
    int64_t file_offset;
    size_t chunk_offset, n; /* bytes */
};
typedef int (*manifest_piece_fn)(void *ctx, const struct manifest_piece *p, struct err *e);
int manifest_each_piece(const struct manifest *m, const struct manifest_chunk *c,
    manifest_piece_fn fn, void *ctx, struct err *e);

/* The objects of a manifest, packs first, and which chunks are in each. A pack may have none. */
struct manifest_objects {
    size_t n;
    size_t *first;    /* n + 1 positions in chunks */
    uint32_t *chunks; /* positions in m->chunks */
};
void manifest_objects_init(struct manifest_objects *o, const struct manifest *m);
void manifest_objects_deinit(struct manifest_objects *o); /* zeroed is valid and empty */

/* Writes the text of m (laid out) to out (cleared first). ERR_INVALID if it would be over
 * CKPT_MANIFEST_BYTES_MAX.
 */
int manifest_encode(const struct manifest *m, struct buf *out, struct err *e);

/* The last member, the hash of all text before it. */
#define MANIFEST_TAIL_BYTES 77
void manifest_add_tail(struct buf *text);
bool manifest_tail_fits(const char *text, size_t n); /* also false if n is too small */

/* Reads and lays out a manifest. ERR_CORRUPT if its hash or form is wrong; ERR_UNSUPPORTED if it is
 * intact but of a later version. *ret is untouched on failure. */
int manifest_parse(const char *text, size_t n, struct manifest *ret, struct err *e);

/* As manifest_parse, for callers that need only chunks and packs: reads no entries, sets no
 * offsets. */
int manifest_parse_chunks(const char *text, size_t n, struct manifest *ret, struct err *e);

#endif
