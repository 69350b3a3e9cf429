/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/pack.h"
#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pack_append(struct pack_content *c, uint32_t chunk, size_t n_bytes)
{
    if (c->n_chunks == c->cap_chunks) {
        c->cap_chunks = c->cap_chunks ? 2 * c->cap_chunks : 64;
        c->chunks = mem_resize(c->chunks, c->cap_chunks, sizeof(c->chunks[0]));
    }
    c->chunks[c->n_chunks++] = chunk;
    c->n_bytes += n_bytes;
}

static int by_hash(const void *a, const void *b)
{
    const struct manifest_chunk *const *x = a, *const *y = b;

    return strcmp((*x)->sha256, (*y)->sha256);
}

static void index_previous(struct packs *p)
{
    const struct manifest *m = p->previous;

    p->by_hash = mem_array(m->n_chunks + 1, sizeof(p->by_hash[0]));
    for (size_t i = 0; i < m->n_chunks; i++)
        if (m->chunks[i].pack && p->old[m->chunks[i].pack - 1].is_used)
            p->by_hash[p->n_by_hash++] = &m->chunks[i];
    if (p->n_by_hash)
        qsort(p->by_hash, p->n_by_hash, sizeof(p->by_hash[0]), by_hash);
}

static int64_t *count_live(const struct manifest *m)
{
    int64_t *live = mem_array(m->n_packs + 1, sizeof(*live));

    for (size_t i = 0; i < m->n_chunks; i++)
        if (m->chunks[i].pack)
            live[m->chunks[i].pack - 1] += m->chunks[i].size;
    return live;
}

static void choose_old(struct packs *p, int32_t ranks, bool compacts)
{
    const struct manifest *m = p->previous;
    int64_t *live = count_live(m), budget = PACK_COMPACT_BYTES;
    int32_t n_small = 0;

    for (size_t i = 0; i < m->n_packs; i++)
        n_small += live[i] < PACK_SMALL_BYTES;
    for (size_t i = 0; i < m->n_packs; i++) {
        bool drop = live[i] < PACK_SMALL_BYTES && n_small > PACKS_SMALL_MAX * ranks;

        drop |= live[i] < m->packs[i].size / 2;
        p->old[i].is_used = !compacts || !drop || live[i] > budget;
        budget -= p->old[i].is_used ? 0 : live[i];
    }
    free(live);
}

void packs_init(struct packs *p, struct manifest *m, const struct manifest *previous, int32_t ranks,
    bool compacts)
{
    *p = (struct packs){.m = m, .previous = previous};
    pthread_mutex_init(&p->lock, NULL);
    m->n_packs = 0;
    p->old = mem_array(previous->n_packs + 1, sizeof(p->old[0]));
    choose_old(p, ranks, compacts);
    index_previous(p);
    p->rest.bytes = mem_pages(CKPT_CHUNK_BYTES + CRYPT_MORE);
}

void packs_deinit(struct packs *p)
{
    free(p->old);
    free(p->by_hash);
    free(p->rest.bytes);
    free(p->rest.chunks);
    pthread_mutex_destroy(&p->lock);
    *p = (struct packs){0};
}

/* Call with the lock held. */
static uint32_t name(struct packs *p, const struct manifest_chunk *object)
{
    struct manifest_chunk *pack = manifest_add_pack(p->m);

    *pack = *object;
    pack->pack = pack->at = 0;
    return (uint32_t)p->m->n_packs;
}

bool packs_find(struct packs *p, struct manifest_chunk *c)
{
    const struct manifest_chunk *key = c, *const * found, *old;

    found = p->n_by_hash ? bsearch(&key, p->by_hash, p->n_by_hash, sizeof(p->by_hash[0]), by_hash)
                         : NULL;
    old = found ? *found : NULL;
    if (!old || old->size != c->size || !p->old[old->pack - 1].is_used)
        return false;
    struct pack_old *pack = &p->old[old->pack - 1];
    pthread_mutex_lock(&p->lock);
    if (!pack->as)
        pack->as = name(p, &p->previous->packs[old->pack - 1]);
    pthread_mutex_unlock(&p->lock);
    c->pack = pack->as;
    c->at = old->at;
    return true;
}

bool packs_add_rest(struct packs *p, struct pack_content *c)
{
    struct pack_content *rest = &p->rest, full;
    bool fits;

    pthread_mutex_lock(&p->lock);
    fits = rest->n_bytes + c->n_bytes <= CKPT_CHUNK_BYTES;
    if (fits) {
        memcpy((char *)rest->bytes + rest->n_bytes, c->bytes, c->n_bytes);
        for (size_t i = 0; i < c->n_chunks; i++)
            pack_append(rest, c->chunks[i], 0);
        rest->n_bytes += c->n_bytes;
        c->n_chunks = c->n_bytes = 0;
    } else {
        full = *rest;
        *rest = *c;
        *c = full;
    }
    pthread_mutex_unlock(&p->lock);
    return !fits;
}

void packs_place(struct packs *p, const struct pack_content *c, const struct manifest_chunk *object)
{
    uint32_t number, at = 0;

    pthread_mutex_lock(&p->lock);
    number = name(p, object);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < c->n_chunks; i++) {
        struct manifest_chunk *chunk = &p->m->chunks[c->chunks[i]];

        chunk->pack = number;
        chunk->at = at;
        at += (uint32_t)chunk->size;
    }
    assert(at == c->n_bytes);
}
