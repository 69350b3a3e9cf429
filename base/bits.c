/* SPDX-License-Identifier: Apache-2.0
 *
 * See bits.h.
 */
#include "base/bits.h"

#include "base/mem.h"
#include <stdlib.h>

#define WORD 64

static bool is_inside(const struct bits *b, int32_t i)
{
    return i >= 0 && i < b->n;
}

static uint64_t bit_of(int32_t i)
{
    return (uint64_t)1 << i % WORD;
}

void bits_init(struct bits *b, int32_t n)
{
    *b = (struct bits){mem_array((size_t)n / WORD + 1, sizeof(*b->words)), n};
}

void bits_deinit(struct bits *b)
{
    free(b->words);
    *b = (struct bits){0};
}

bool bits_has(const struct bits *b, int32_t i)
{
    return is_inside(b, i) && (b->words[i / WORD] & bit_of(i)) != 0;
}

bool bits_set(struct bits *b, int32_t i)
{
    if (!is_inside(b, i) || bits_has(b, i))
        return false;
    b->words[i / WORD] |= bit_of(i);
    return true;
}

bool bits_clear(struct bits *b, int32_t i)
{
    if (!bits_has(b, i))
        return false;
    b->words[i / WORD] &= ~bit_of(i);
    return true;
}

int32_t bits_next(const struct bits *b, int32_t from)
{
    while (from < b->n) {
        uint64_t rest = b->words[from / WORD] >> from % WORD;
        if (rest)
            return from + __builtin_ctzll(rest);
        from += WORD - from % WORD;
    }
    return b->n;
}
