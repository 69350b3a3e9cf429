/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/pack.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
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

static void index_init(struct pack_index *x, const struct manifest *m)
{
    size_t cap = 16;

    while (cap < 2 * m->n_chunks)
        cap *= 2;
    *x = (struct pack_index){
        .chunks = m->chunks, .slots = mem_array(cap, sizeof(x->slots[0])), .mask = cap - 1};
}

/* The slot of the chunk with this content, or the free slot where it would be. */
static uint32_t *index_find(const struct pack_index *x, const struct manifest_chunk *c)
{
    size_t i = hash_bytes(HASH_INIT, c->sha256, 16) & x->mask;

    while (x->slots[i]) {
        const struct manifest_chunk *other = &x->chunks[x->slots[i] - 1];

        if (other->size == c->size && str_eq(other->sha256, c->sha256))
            break;
        i = (i + 1) & x->mask;
    }
    return &x->slots[i];
}

static void index_previous(struct packs *p)
{
    const struct manifest *m = p->previous;

    index_init(&p->before, m);
    for (size_t i = 0; i < m->n_chunks; i++)
        if (m->chunks[i].pack && p->old[m->chunks[i].pack - 1].is_used)
            *index_find(&p->before, &m->chunks[i]) = (uint32_t)i + 1;
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
    index_init(&p->claimed, m);
    p->same = mem_array(m->n_chunks + 1, sizeof(p->same[0]));
    p->rest.bytes = mem_pages(CKPT_CHUNK_BYTES + CRYPT_MORE);
}

void packs_deinit(struct packs *p)
{
    free(p->old);
    free(p->before.slots);
    free(p->claimed.slots);
    free(p->same);
    free(p->rest.bytes);
    free(p->rest.chunks);
    pthread_mutex_destroy(&p->lock);
    *p = (struct packs){0};
}

/* Call with the lock held. */
static uint32_t add_pack(struct packs *p, const struct manifest_chunk *object)
{
    struct manifest_chunk *pack = manifest_add_pack(p->m);

    *pack = *object;
    pack->pack = pack->at = 0;
    return (uint32_t)p->m->n_packs;
}

bool packs_find(struct packs *p, struct manifest_chunk *c)
{
    uint32_t found = *index_find(&p->before, c);
    const struct manifest_chunk *old = found ? &p->previous->chunks[found - 1] : NULL;

    if (!old || !p->old[old->pack - 1].is_used)
        return false;
    struct pack_old *pack = &p->old[old->pack - 1];
    pthread_mutex_lock(&p->lock);
    if (!pack->as)
        pack->as = add_pack(p, &p->previous->packs[old->pack - 1]);
    pthread_mutex_unlock(&p->lock);
    c->pack = pack->as;
    c->at = old->at;
    return true;
}

bool packs_claim(struct packs *p, size_t i)
{
    uint32_t *slot;

    pthread_mutex_lock(&p->lock);
    slot = index_find(&p->claimed, &p->m->chunks[i]);
    p->same[i] = *slot;
    if (!*slot)
        *slot = (uint32_t)i + 1;
    pthread_mutex_unlock(&p->lock);
    return p->same[i] == 0;
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

void packs_name(const struct packs *p, const struct pack_content *c, struct chunk_work *w,
    struct manifest_chunk *object)
{
    chunk_hash_begin(w);
    for (size_t i = 0; i < c->n_chunks; i++)
        chunk_hash_add(w, p->m->chunks[c->chunks[i]].sha256, CHUNK_HEX_SIZE - 1);
    chunk_hash_end(w, object->sha256);
}

void packs_finish(struct packs *p)
{
    for (size_t i = 0; i < p->m->n_chunks; i++)
        if (p->same[i]) {
            const struct manifest_chunk *claimed = &p->m->chunks[p->same[i] - 1];

            p->m->chunks[i].pack = claimed->pack;
            p->m->chunks[i].at = claimed->at;
        }
}

void packs_place(struct packs *p, const struct pack_content *c, const struct manifest_chunk *object)
{
    uint32_t number, at = 0;

    pthread_mutex_lock(&p->lock);
    number = add_pack(p, object);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < c->n_chunks; i++) {
        struct manifest_chunk *chunk = &p->m->chunks[c->chunks[i]];

        chunk->pack = number;
        chunk->at = at;
        at += (uint32_t)chunk->size;
    }
    assert(at == c->n_bytes);
}
