/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

const double histogram_requests[HISTOGRAM_BOUNDS] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
const double histogram_waits[HISTOGRAM_BOUNDS] = {
    1, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 14400, 86400};
const double histogram_notices[HISTOGRAM_BOUNDS] = {1, 2, 5, 10, 15, 20, 25, 30, 45, 60, 90, 120};

void histogram_add(struct histogram *h, double value)
{
    int i = 0;
    while (i < HISTOGRAM_BOUNDS && value > h->bounds[i])
        i++;
    h->counts[i]++;
    h->sum += value;
}

int64_t histogram_count(const struct histogram *h)
{
    int64_t n = 0;
    for (int i = 0; i <= HISTOGRAM_BOUNDS; i++)
        n += h->counts[i];
    return n;
}
