/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/spend_anomaly.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The standard deviation of a normal distribution with a MAD of 1, and with a mean absolute
 * deviation of 1. */
#define OF_MAD 1.482602218505602
#define OF_MEAN_DEVIATION 1.2533141373155003

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts the values. */
static double median_of(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool spend_usual(const int64_t *days_uusd, size_t n, const struct spend_limits *limits,
    struct spend_usual *ret_usual)
{
    double values[SPEND_WEEKS_MAX], mean = 0;
    if (n < SPEND_WEEKS_MIN)
        return false;
    assert(n <= SPEND_WEEKS_MAX);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)days_uusd[i];
    double median = median_of(values, n);
    for (size_t i = 0; i < n; i++) {
        values[i] = fabs(values[i] - median);
        mean += values[i] / (double)n;
    }
    double mad = median_of(values, n);
    double deviation = mad > 0 ? OF_MAD * mad : OF_MEAN_DEVIATION * mean;
    double above = fmax(
        limits->deviations * fmax(deviation, SPEND_NOISE * median), (double)limits->at_least_uusd);
    *ret_usual = (struct spend_usual){
        .median_uusd = llround(median), .limit_uusd = llround(fmin(median + above, 9e18))};
    return true;
}
