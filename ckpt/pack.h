/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs: how a save stores small files, so that a changed file costs its own bytes and not those of
 * its neighbours.
 *
 *     manifest 6:  a ----.   b ----.   c ----.
 *                        v         v         v
 *     objects:        [ a . b . c . d . e ... ]  pack 1, of checkpoint 5 or before
 *                        ^         .         ^
 *     manifest 7:  a ----'   b'--. .   c ----'
 *                                v
 *                     [ b' ................. ]   pack 2, of checkpoint 7
 *
 * A small file is a chunk of its own (manifest_cut), named in the manifest by its hash and its
 * place in a pack. A pack is an object like any other: at most 4 MiB of content, compressed as a
 * whole, stored below chunks/ATTEMPT/ and never changed. So linking, encryption, damage, cleaning
 * and fences need nothing new: a pack stays as long as a kept manifest names it. Its name is the
 * hash of the hashes of its chunks, so their content is hashed only once; a reader verifies each
 * chunk that it needs. (It may also be that of the content, as in manifests of version 4.)
 *
 * A save reads the new and changed files and looks for the hash of each in the manifest before. If
 * an old pack has it, the new manifest names that place. All other content goes to new packs, once
 * even if several files have it.
 *
 * There is no separate compaction: a save that finds an old pack not worth keeping does not name
 * it, and stores its live content again, read from the job's own files. As ever, the new pack is
 * durable before the manifest that names it, and the old one is removed by the next cleaning of the
 * attempt that has the fence. A pack is not worth keeping
 *  1. if less than half of it is live, as of the manifest before. So a store has at most about
 *     twice the live content. At most PACK_COMPACT_BYTES are stored again by one save, and none in
 *     a save with a deadline;
 *  2. if it has less than PACK_SMALL_BYTES of live content, and more than PACKS_SMALL_MAX packs of
 *     the manifest before do. So many small saves do not leave many small packs to be fetched.
 */
#ifndef BELAY_CKPT_PACK_H
#define BELAY_CKPT_PACK_H

#include "ckpt/manifest.h"
#include <pthread.h>

#define PACK_SMALL_BYTES ((int64_t)256 << 10)
#define PACKS_SMALL_MAX 8 /* of each rank */
#define PACK_COMPACT_BYTES ((int64_t)64 << 20)
/* new content of neighbouring files is a pack of its own from this size on */
#define PACK_ALONE_BYTES (2u << 20)

/* Content for a new pack, and the chunks that it is the content of, in order. */
struct pack_content {
    void *bytes; /* as chunk_work.content */
    size_t n_bytes;
    uint32_t *chunks; /* positions in the manifest's chunks */
    size_t n_chunks, cap_chunks;
};

void pack_append(struct pack_content *c, uint32_t chunk, size_t n_bytes); /* n_bytes are there */

/* Positions of chunks by their hash: open addressing. */
struct pack_index {
    const struct manifest_chunk *chunks; /* borrowed */
    uint32_t *slots;                     /* from 1; 0 = free */
    size_t mask;
};

/* Packs of one save. Thread-safe where not said otherwise. */
struct packs {
    struct manifest *m;              /* being built; only its chunks in packs, and its packs */
    const struct manifest *previous; /* the manifest before, or empty */
    struct pack_index before;        /* chunks of previous that are in packs */
    struct pack_index claimed;       /* chunks of m for new packs */
    uint32_t *same;                  /* of m's chunks: the claimed one, from 1; 0 = none */
    struct pack_old {
        bool is_used;         /* worth keeping, and, once the caller has looked, in the store */
        uint32_t as;          /* its number in m; 0 = not named yet */
    } * old;                  /* of previous->packs */
    struct pack_content rest; /* less than PACK_ALONE_BYTES at a time, of any neighbours */
    pthread_mutex_t lock;
};

/* Decides which old packs are worth keeping. previous is borrowed, may be empty, and is of so many
 * ranks. */
void packs_init(struct packs *p, struct manifest *m, const struct manifest *previous, int32_t ranks,
    bool compacts);
void packs_deinit(struct packs *p);

/* If an old pack in use has the content of c (by hash and size), sets where. */
bool packs_find(struct packs *p, struct manifest_chunk *c);

/* For chunk i of m, whose hash is known and which no old pack has: true if it is to be stored. If
 * not, another chunk of this save has the same content, and packs_finish says where. */
bool packs_claim(struct packs *p, size_t i);

/* Adds c to the rest and leaves c empty; or, if the two do not fit into one pack, exchanges them:
 * true, and c is then to be stored. c->bytes may be another buffer in any case. */
bool packs_add_rest(struct packs *p, struct pack_content *c);

/* Sets the name of the object that is to have this content, which is m's. */
void packs_name(const struct packs *p, const struct pack_content *c, struct chunk_work *w,
    struct manifest_chunk *object);

/* Records a stored pack, and says of its chunks where they are. */
void packs_place(
    struct packs *p, const struct pack_content *c, const struct manifest_chunk *object);

/* Call when all packs are placed, from one thread. */
void packs_finish(struct packs *p);

#endif
