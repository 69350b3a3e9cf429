/* SPDX-License-Identifier: Apache-2.0
 *
 * The first cache line of each memory block only links it to the others. A slab that has become
 * large allocates blocks of one huge page, because stepping between objects would otherwise be
 * dominated by TLB misses.
 *
 * The address sanitizer knows which objects are free.
 */
#include "base/slab.h"

#include "base/mem.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64
#define PIECE ((size_t)64 << 10)
#define SMALL_PIECES 16 /* the first blocks have PIECE bytes, later ones MEM_HUGE */

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_WATCHED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED
#endif
#ifdef IS_WATCHED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#endif

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

static void grow(struct slab *s)
{
    size_t size = s->n_pieces++ < SMALL_PIECES ? PIECE : MEM_HUGE;
    char *piece = size == PIECE ? mem_pages(PIECE) : mem_huge(1);
    push(&s->pieces, piece);
    /* backwards, so that objects are handed out in address order */
    for (size_t at = (size - LINE) / s->each * s->each; at > 0; at -= s->each)
        slab_give(s, piece + LINE + at - s->each);
}

void *slab_take(struct slab *s, size_t size)
{
    assert(size > 0 && size <= SLAB_SIZE_MAX && (s->each == 0 || size <= s->each));
    if (s->each == 0)
        s->each = (size + LINE - 1) / LINE * LINE;
    if (!s->free)
        grow(s);
    ASAN_UNPOISON_MEMORY_REGION(s->free, s->each);
    return memset(pop(&s->free), 0, size);
}

void slab_give(struct slab *s, void *p)
{
    if (!p)
        return;
    push(&s->free, p);
    ASAN_POISON_MEMORY_REGION(p, s->each);
}

void slab_deinit(struct slab *s)
{
    for (void *piece; (piece = pop(&s->pieces)) != NULL;)
        free(piece);
    *s = (struct slab){0};
}
