/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded spot pool: the number of instances available at each tick, and optionally the price.
 *
 *     {"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, ...], "prices": [0.918, ...]}
 *
 * The format of the "Can't Be Late" traces (Wu et al., NSDI '24). prices, if present, are dollars
 * per hour, one for each tick.
 */
#ifndef BELAY_CLOUD_TRACE_H
#define BELAY_CLOUD_TRACE_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

#define TRACE_BYTES_MAX (16u << 20)
#define TRACE_TICKS_MAX 1000000

struct trace {
    int64_t gap_ms; /* > 0 */
    size_t n;       /* > 0 */
    int32_t *counts;
    int64_t *prices_uusd_h; /* may be NULL */
};

/* ERR_INVALID with the position of the error. */
int trace_parse(const char *text, size_t n, struct trace *ret_trace, struct err *e);
int trace_load(const char *path, struct trace *ret_trace, struct err *e);
void trace_deinit(struct trace *t);

#endif
