/* SPDX-License-Identifier: Apache-2.0
 *
 * One open-addressing table for both maps. A number is its own id; a string's id is its hash, and
 * strings are compared only where the ids are equal.
 *
 * Invariants: cap is 0 or a power of two; a slot is free iff its value is NULL; at most 3/4 of the
 * slots are in use; no slot between a key's home and its actual slot is free. Removal keeps the
 * last invariant by moving later slots back (Knuth 6.4, algorithm R), so there are no tombstones.
 */
#include "base/map.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAP_CAP_MIN 8

struct map_slot {
    uint64_t id;
    void *value;
};

/* The finaliser of SplitMix64: spreads sequential ids over all bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static size_t home(const struct map *m, uint64_t id)
{
    return mix(id) & (m->cap - 1);
}

/* The slot that has the key, or the free slot where it would be inserted. cap > 0. */
static size_t find(const struct map *m, uint64_t id, const char *name)
{
    size_t i = home(m, id);
    while (m->slots[i].value && !(m->slots[i].id == id && (!name || str_eq(m->names[i], name))))
        i = (i + 1) & (m->cap - 1);
    return i;
}

/* A zeroed array of cap elements of `size` bytes; both are powers of two. From MEM_HUGE bytes on it
 * is in huge pages. */
static void *table(size_t cap, size_t size)
{
    size_t bytes = cap * size;
    return bytes < MEM_HUGE ? mem_array(cap, size) : memset(mem_huge(bytes / MEM_HUGE), 0, bytes);
}

static void grow(struct map *m, bool is_named)
{
    struct map bigger = {.n = m->n, .cap = m->cap ? m->cap * 2 : MAP_CAP_MIN};
    bigger.slots = table(bigger.cap, sizeof *bigger.slots);
    bigger.names = is_named ? table(bigger.cap, sizeof *bigger.names) : NULL;
    for (size_t i = 0; i < m->cap; i++) {
        if (!m->slots[i].value)
            continue;
        size_t to = find(&bigger, m->slots[i].id, is_named ? m->names[i] : NULL);
        bigger.slots[to] = m->slots[i];
        if (is_named)
            bigger.names[to] = m->names[i];
    }
    free(m->slots);
    free(m->names);
    *m = bigger;
}

static void *table_get(const struct map *m, uint64_t id, const char *name)
{
    return m->n ? m->slots[find(m, id, name)].value : NULL;
}

static void table_put(struct map *m, uint64_t id, const char *name, void *value)
{
    assert(value);
    if (4 * (m->n + 1) > 3 * m->cap)
        grow(m, name != NULL);
    size_t at = find(m, id, name);
    if (!m->slots[at].value && name)
        m->names[at] = mem_strdup(name);
    m->n += !m->slots[at].value;
    m->slots[at] = (struct map_slot){.id = id, .value = value};
}

static void *table_remove(struct map *m, uint64_t id, const char *name)
{
    if (!m->n)
        return NULL;
    size_t mask = m->cap - 1, hole = find(m, id, name);
    void *value = m->slots[hole].value;
    if (!value)
        return NULL;
    if (name)
        free(m->names[hole]);
    m->n--;
    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        /* Slot i may fill the hole unless its home lies after the hole. */
        if (((i - home(m, m->slots[i].id)) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        if (name)
            m->names[hole] = m->names[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){0};
    if (name)
        m->names[hole] = NULL;
    return value;
}

/* The next used slot at or after *pos, which is advanced past it; NULL at the end. */
static struct map_slot *table_next(const struct map *m, size_t *pos)
{
    while (*pos < m->cap) {
        struct map_slot *s = &m->slots[(*pos)++];
        if (s->value)
            return s;
    }
    return NULL;
}

void map_deinit(struct map *m)
{
    for (size_t i = 0; m->names && i < m->cap; i++)
        free(m->names[i]);
    free(m->names);
    free(m->slots);
    *m = (struct map){0};
}

void *map_get(const struct map *m, int64_t key)
{
    return table_get(m, (uint64_t)key, NULL);
}

void map_put(struct map *m, int64_t key, void *value)
{
    table_put(m, (uint64_t)key, NULL, value);
}

void *map_remove(struct map *m, int64_t key)
{
    return table_remove(m, (uint64_t)key, NULL);
}

size_t map_size(const struct map *m)
{
    return m->n;
}

void *map_next(const struct map *m, size_t *pos, int64_t *ret_key)
{
    struct map_slot *s = table_next(m, pos);
    if (s && ret_key)
        *ret_key = (int64_t)s->id;
    return s ? s->value : NULL;
}

void smap_deinit(struct smap *m)
{
    map_deinit(&m->table);
}

void *smap_get(const struct smap *m, const char *key)
{
    return table_get(&m->table, hash_text(key), key);
}

void smap_put(struct smap *m, const char *key, void *value)
{
    table_put(&m->table, hash_text(key), key, value);
}

void *smap_remove(struct smap *m, const char *key)
{
    return table_remove(&m->table, hash_text(key), key);
}

size_t smap_size(const struct smap *m)
{
    return m->table.n;
}

void *smap_next(const struct smap *m, size_t *pos, const char **ret_key)
{
    struct map_slot *s = table_next(&m->table, pos);
    if (s && ret_key)
        *ret_key = m->table.names[*pos - 1];
    return s ? s->value : NULL;
}
