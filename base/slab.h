/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of one size, packed closely, each in its own cache lines: for large trees and other
 * structures that are traversed from object to object and may have a million of them. Memory is
 * freed with the slab, not before.
 */
#ifndef BELAY_BASE_SLAB_H
#define BELAY_BASE_SLAB_H

#include <stddef.h>

struct slab {
    void *free;   /* first free object; each has the address of the next */
    void *pieces; /* memory blocks, linked likewise */
    size_t n_pieces;
    size_t each; /* bytes per object */
};

/* Zeroed memory. size is the same for every call on one slab, at most SLAB_SIZE_MAX. */
#define SLAB_SIZE_MAX 4096
void *slab_take(struct slab *s, size_t size);
void slab_give(struct slab *s, void *p); /* p may be NULL */
void slab_deinit(struct slab *s);        /* frees all objects, including those in use */

#endif
