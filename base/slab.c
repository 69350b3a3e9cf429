/* SPDX-License-Identifier: Apache-2.0
 *
 * The first line of each piece of memory only links it to the others.
 */
#include "base/slab.h"

#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64
#define PIECE ((size_t)64 << 10)

static void push(void **list, void *p)
{
    *(void **)p = *list;
    *list = p;
}

static void *pop(void **list)
{
    void *p = *list;
    if (p)
        *list = *(void **)p;
    return p;
}

static void grow(struct slab *s, size_t each)
{
    char *piece = mem_pages(PIECE);
    push(&s->pages, piece);
    for (size_t at = (PIECE - LINE) / each * each; at > 0; at -= each) /* so that they are taken in order */
        push(&s->free, piece + LINE + at - each);
}

void *slab_take(struct slab *s, size_t size)
{
    size_t each = (size + LINE - 1) / LINE * LINE;
    assert(each > 0 && each <= PIECE / 16);
    if (!s->free)
        grow(s, each);
    return memset(pop(&s->free), 0, size);
}

void slab_give(struct slab *s, void *p)
{
    if (p)
        push(&s->free, p);
}

void slab_deinit(struct slab *s)
{
    for (void *piece; (piece = pop(&s->pages)) != NULL;)
        free(piece);
    *s = (struct slab){0};
}
