/* SPDX-License-Identifier: Apache-2.0
 *
 * The trend of a demand over weeks, and its forecast. Pure.
 *
 * The slope is the median of the slopes between all pairs of weeks (Theil 1950; Sen, "Estimates of
 * the regression coefficient based on Kendall's tau", JASA 63, 1968), which a few odd weeks hardly
 * change; the level is the median of what is left. The range of the slope is Sen's: the slopes at
 * the ranks (N -+ z * sqrt(n (n - 1) (2n + 5) / 18)) / 2 of the N pairs, with z of 90 percent. With
 * few weeks that are all slopes, so the range is wide.
 */
#ifndef BELAY_MONEY_TREND_H
#define BELAY_MONEY_TREND_H

#include <stdbool.h>
#include <stddef.h>

#define TREND_WEEKS_MIN 4
#define TREND_WEEKS_MAX 53
#define TREND_HOURS_A_WEEK 168
/* The middle of the next month: weeks after the last one. */
#define TREND_AHEAD_WEEKS 2.5

struct trend {
    double slope;           /* a week */
    double next, low, high; /* the mean of the next month, at least 0, and its range */
};

/* Means of whole weeks, the last one ending with the last hour. A week may lack lacking_h hours at
 * its begin. Fills means, oldest first, and returns their number, at most TREND_WEEKS_MAX. */
size_t trend_weeks(
    const double *hours, size_t n_hours, size_t lacking_h, double means[TREND_WEEKS_MAX]);

/* False with fewer than TREND_WEEKS_MIN weeks: that is too little history. */
bool trend_of(const double *weeks, size_t n, struct trend *ret_trend);

#endif
