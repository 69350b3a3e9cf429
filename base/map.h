/* SPDX-License-Identifier: Apache-2.0
 *
 * Hash map from a 64-bit number, or from a string, to a borrowed pointer. Open addressing.
 * Insertion order is NOT kept: code whose decisions must be repeatable iterates over its own lists,
 * never over a map. Zeroed is valid and empty. The hash is fixed, not keyed: bound the number of
 * keys that untrusted parties may choose.
 */
#ifndef BELAY_BASE_MAP_H
#define BELAY_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map {
    struct map_slot *slots;
    char **names; /* keys; smap only */
    size_t n, cap;
};

/* the map is empty and reusable afterwards */
void map_deinit(struct map *m);
void *map_get(const struct map *m, int64_t key);       /* NULL if absent */
void map_put(struct map *m, int64_t key, void *value); /* value must not be NULL; replaces */
void *map_remove(struct map *m, int64_t key);          /* the value removed, or NULL */
size_t map_size(const struct map *m);
/* Iterates: *pos starts at 0. Returns NULL at the end. The map must not change meanwhile. ret_key
 * may be NULL. */
void *map_next(const struct map *m, size_t *pos, int64_t *ret_key);

/* A map with string keys; the keys are copied. */
struct smap {
    struct map table;
};

void smap_deinit(struct smap *m);
void *smap_get(const struct smap *m, const char *key);
void smap_put(struct smap *m, const char *key, void *value);
void *smap_remove(struct smap *m, const char *key);
size_t smap_size(const struct smap *m);
/* *ret_key is borrowed from the map until that key is removed. */
void *smap_next(const struct smap *m, size_t *pos, const char **ret_key);

#endif
