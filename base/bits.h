/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of integers in 0 .. n - 1, one bit each. A zeroed set is valid: n is 0 and it is empty.
 */
#ifndef BELAY_BASE_BITS_H
#define BELAY_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct bits {
    uint64_t *words; /* owned */
    int32_t n;       /* the range is 0 .. n - 1 */
};

void bits_init(struct bits *b, int32_t n); /* n >= 0; the set is empty */
void bits_deinit(struct bits *b);          /* frees; *b is zeroed */
/* A number outside the range is never in the set: adding or removing it does nothing. bits_set and
 * bits_clear return true if they changed the set. */
bool bits_has(const struct bits *b, int32_t i);
bool bits_set(struct bits *b, int32_t i);
bool bits_clear(struct bits *b, int32_t i);
/* the first member >= from, or n if there is none; from >= 0 */
int32_t bits_next(const struct bits *b, int32_t from);

#endif
