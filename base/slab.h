/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of one size that lie close together, each in cache lines of its own: for what is looked
 * at in passing, step after step from one to the next, as the elements of a large tree are, or of
 * which there may be a million. Their memory goes back with the slab, not before.
 */
#ifndef BELAY_BASE_SLAB_H
#define BELAY_BASE_SLAB_H

#include <stddef.h>

struct slab {
    void *free;   /* the first that is not taken; each begins with the address of the next */
    void *pieces; /* of memory, likewise */
    size_t n_pieces;
    size_t each; /* bytes that one takes */
};

/* Zeroed. size: the same at every call of a slab, at most SLAB_SIZE_MAX. */
#define SLAB_SIZE_MAX 4096
void *slab_take(struct slab *s, size_t size);
void slab_give(struct slab *s, void *p); /* NULL is fine */
void slab_deinit(struct slab *s);        /* whatever is taken still is gone */

#endif
