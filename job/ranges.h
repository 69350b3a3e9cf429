/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of small numbers as text, "0-99:2,150": the indices of a job array. Ranges are ordered and
 * do not overlap. Zeroed is valid and empty.
 */
#ifndef BELAY_JOB_RANGES_H
#define BELAY_JOB_RANGES_H

#include "base/bits.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX 32
#define RANGES_NUMBER_MAX 999999                   /* the greatest number in a set */
#define RANGES_TEXT_MAX (RANGES_MAX * (3 * 6 + 3)) /* "999990-999999:999999," per range */

struct range {
    int32_t first, last, step; /* step >= 1; last is a member */
};

struct ranges {
    int n;
    struct range v[RANGES_MAX];
};

/* "3", "0-7", "0-20:5", separated by commas. ERR_INVALID: malformed, a number too large, or more
 * than RANGES_MAX ranges. Duplicates count once. */
int ranges_parse(const char *text, struct ranges *ret_set, struct err *e);
void ranges_format(const struct ranges *s, char out[RANGES_TEXT_MAX]); /* "" if empty */

int64_t ranges_count(const struct ranges *s);
bool ranges_has(const struct ranges *s, int32_t n);
int32_t ranges_first(const struct ranges *s); /* s must not be empty */
int32_t ranges_last(const struct ranges *s);  /* s must not be empty */
int32_t ranges_first_outside(const struct ranges *s, const struct ranges *of); /* -1: none */
/* The number that follows `after` in s, the first one after -1; -1 after the last. *k, 0 at first,
 * is where it is. */
int32_t ranges_next(const struct ranges *s, int *k, int32_t after);
/* Removes n, which must be in it. False, with nothing changed, if the rest would take more than
 * `most` ranges (at most RANGES_MAX). */
bool ranges_take(struct ranges *s, int32_t n, int most);
/* Removes the numbers that are in both. Returns how many; -1, with nothing changed, if the rest
 * would take more than RANGES_MAX ranges. */
int64_t ranges_remove(struct ranges *s, const struct ranges *what);
int64_t ranges_remove_bits(struct ranges *s, const struct bits *what);
/* for 0 .. its last number; the caller deinits it */
void ranges_bits(const struct ranges *s, struct bits *ret_bits);

#endif
