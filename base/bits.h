/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of numbers below a limit, a bit each. Zeroed is valid, empty, and of nothing; it may be
 * read, and holds no number.
 */
#ifndef BELAY_BASE_BITS_H
#define BELAY_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct bits {
    uint64_t *words; /* owned */
    int32_t n;       /* it is of 0 .. n - 1 */
};

void bits_init(struct bits *b, int32_t n); /* empty; n >= 0 */
void bits_deinit(struct bits *b);          /* zeroed */
/* Numbers outside are in no set: they are not there, and neither put in nor taken out. True: that
 * changed something. */
bool bits_has(const struct bits *b, int32_t i);
bool bits_set(struct bits *b, int32_t i);
bool bits_clear(struct bits *b, int32_t i);
/* the first in it from there on, from >= 0; n: there is none */
int32_t bits_next(const struct bits *b, int32_t from);

#endif
