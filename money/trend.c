/* SPDX-License-Identifier: Apache-2.0 */
#include "money/trend.h"

#include <math.h>
#include <stdlib.h>

#define Z_90 1.645
#define PAIRS_MAX (TREND_WEEKS_MAX * (TREND_WEEKS_MAX - 1) / 2)

size_t trend_weeks(
    const double *hours, size_t n_hours, size_t lacking_h, double means[TREND_WEEKS_MAX])
{
    size_t n = (n_hours + lacking_h) / TREND_HOURS_A_WEEK;
    if (n > TREND_WEEKS_MAX)
        n = TREND_WEEKS_MAX;
    for (size_t k = 0; k < n; k++) {
        size_t back = (n - k) * TREND_HOURS_A_WEEK;
        size_t from = back > n_hours ? 0 : n_hours - back, to = n_hours - back + TREND_HOURS_A_WEEK;
        double sum = 0;
        for (size_t i = from; i < to; i++)
            sum += hours[i];
        means[k] = sum / (double)(to - from);
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the values. */
static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* At the middle of the next month, along this slope through the median of the weeks. */
static double ahead(const double *weeks, size_t n, double slope)
{
    double left[TREND_WEEKS_MAX];
    for (size_t k = 0; k < n; k++)
        left[k] = weeks[k] - slope * (double)k;
    return fmax(median(left, n) + slope * ((double)(n - 1) + TREND_AHEAD_WEEKS), 0);
}

bool trend_of(const double *weeks, size_t n, struct trend *ret_trend)
{
    double slopes[PAIRS_MAX];
    size_t pairs = 0;
    if (n < TREND_WEEKS_MIN || n > TREND_WEEKS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            slopes[pairs++] = (weeks[k] - weeks[i]) / (double)(k - i);
    double slope = median(slopes, pairs); /* sorts them */
    double m = (double)n, c = Z_90 * sqrt(m * (m - 1) * (2 * m + 5) / 18);
    double rank = floor(((double)pairs - c) / 2); /* of the low slope, from 1 */
    size_t low = rank < 1 ? 0 : (size_t)rank - 1;
    *ret_trend = (struct trend){.slope = slope,
        .next = ahead(weeks, n, slope),
        .low = ahead(weeks, n, slopes[low]),
        .high = ahead(weeks, n, slopes[pairs - 1 - low])};
    return true;
}
