/* SPDX-License-Identifier: Apache-2.0
 *
 * A histogram with fixed bounds, as Prometheus and OpenMetrics define it: a value is counted in the
 * first bucket whose bound is not below it.
 */
#ifndef BELAY_BASE_HISTOGRAM_H
#define BELAY_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS 12

/* Upper bounds, increasing. Seconds. */
extern const double histogram_requests[HISTOGRAM_BOUNDS]; /* 1 ms .. 10 s */
extern const double histogram_waits[HISTOGRAM_BOUNDS];    /* 1 s .. 1 day */
extern const double histogram_notices[HISTOGRAM_BOUNDS];  /* 1 s .. 120 s, the longest notice */

struct histogram {
    const double *bounds;                 /* of static life */
    int64_t counts[HISTOGRAM_BOUNDS + 1]; /* not cumulative; the last: beyond all bounds */
    double sum;
};

void histogram_add(struct histogram *h, double value);
int64_t histogram_count(const struct histogram *h);

#endif
