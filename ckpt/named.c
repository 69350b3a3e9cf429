/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/named.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/store/layout.h"
#include <stdlib.h>
#include <string.h>

void named_deinit(struct named *l)
{
    named_start(l);
    named_end(l);
    free(l->v);
    *l = (struct named){0};
}

struct named_one *named_find(const struct named *l, struct ckpt_id id)
{
    for (size_t i = 0; i < l->n; i++)
        if (layout_compare_ids(l->v[i].id, id) == 0)
            return &l->v[i];
    return NULL;
}

static void add_name(struct named_one *one, const struct ckpt_job *j, const struct manifest *m,
    const struct manifest_chunk *object)
{
    struct layout_name name = layout_chunk(j, m->key, m->id.attempt, object->sha256);

    STR_COPY(one->names[one->n], strrchr(name.s, '/') + 1);
    one->n++;
}

struct named_one *named_add(struct named *l, const struct ckpt_job *j, const struct manifest *m)
{
    struct named_one *one = named_find(l, m->id);
    size_t n = m->n_packs;

    if (!one && l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 8;
        l->v = mem_resize(l->v, l->cap, sizeof(l->v[0]));
    }
    if (one)
        free(one->names);
    else
        one = &l->v[l->n++];
    for (size_t i = 0; i < m->n_chunks; i++)
        n += !m->chunks[i].pack;
    *one = (struct named_one){.id = m->id, .names = mem_array(n + 1, sizeof(one->names[0]))};
    for (size_t i = 0; i < m->n_chunks; i++)
        if (!m->chunks[i].pack)
            add_name(one, j, m, &m->chunks[i]);
    for (size_t i = 0; i < m->n_packs; i++)
        add_name(one, j, m, &m->packs[i]);
    return one;
}

void named_start(struct named *l)
{
    for (size_t i = 0; i < l->n; i++)
        l->v[i].is_kept = false;
}

void named_end(struct named *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].is_kept)
            l->v[n++] = l->v[i];
        else
            free(l->v[i].names);
    l->n = n;
}
