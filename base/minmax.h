/* SPDX-License-Identifier: Apache-2.0
 *
 * The smaller and the larger of two numbers.
 */
#ifndef BELAY_BASE_MINMAX_H
#define BELAY_BASE_MINMAX_H

#include <stdint.h>

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
