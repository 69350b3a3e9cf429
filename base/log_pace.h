/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on log lines that others can cause: the first few of each minute are written, the rest
 * are counted, and the first line of a later minute says how many were left out.
 *
 *     if (log_pace_admits(&a->joins_refused, now_ms, &left_out))
 *         log_warn("a join was refused", ..., log_i("left_out", left_out));
 */
#ifndef BELAY_BASE_LOG_PACE_H
#define BELAY_BASE_LOG_PACE_H

#include "base/time.h"
#include <stdbool.h>

#define LOG_PACE_LINES 10 /* a minute */
#define LOG_PACE_MS SECONDS_MS(60)

/* Zeroed: nothing was logged. */
struct log_pace {
    struct mono since; /* of this minute's first line */
    int n_lines;       /* in this minute; 0 = no line yet */
    int64_t n_left_out;
};

/* Whether to write a line now. *ret_left_out: how many were left out since the last one that was
 * written. */
bool log_pace_admits(struct log_pace *p, struct mono now, int64_t *ret_left_out);

#endif
