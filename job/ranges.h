/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of small numbers as people write them, "0-99:2,150": the indices of an array of jobs. Pieces
 * stand in order, and none begins before the one before it has ended. Zeroed is valid and empty.
 */
#ifndef BELAY_JOB_RANGES_H
#define BELAY_JOB_RANGES_H

#include "base/bits.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX 32
#define RANGES_NUMBER_MAX 999999                   /* the greatest that a set may hold */
#define RANGES_TEXT_MAX (RANGES_MAX * (3 * 6 + 3)) /* "999990-999999:999999," each */

struct range {
    int32_t first, last, step; /* step >= 1; last is one of them */
};

struct ranges {
    int n;
    struct range v[RANGES_MAX];
};

/* "3", "0-7", "0-20:5" with commas between. ERR_INVALID: not that, a number that is too great, or
 * more than RANGES_MAX pieces. A number that is said twice counts once. */
int ranges_parse(const char *text, struct ranges *ret_set, struct err *e);
void ranges_format(const struct ranges *s, char out[RANGES_TEXT_MAX]); /* "" when it is empty */

int64_t ranges_count(const struct ranges *s);
bool ranges_has(const struct ranges *s, int32_t n);
int32_t ranges_first(const struct ranges *s); /* s is not empty */
int32_t ranges_last(const struct ranges *s);  /* likewise */
/* Takes n out, which is in it. False: what is left would be more than `most` pieces, at most
 * RANGES_MAX; nothing is changed. */
bool ranges_take(struct ranges *s, int32_t n, int most);
/* Takes out what is in both. Returns how many; -1: what is left would be more than RANGES_MAX
 * pieces, and nothing is changed. */
int64_t ranges_remove(struct ranges *s, const struct ranges *what);
int64_t ranges_remove_bits(struct ranges *s, const struct bits *what);
/* of 0 to its last; the caller's to deinit */
void ranges_bits(const struct ranges *s, struct bits *ret_bits);

#endif
