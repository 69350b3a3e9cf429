/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a day's spending is far above that of the same weekday in the weeks before. Pure.
 *
 * The measure is the modified z-score of B. Iglewicz and D. Hoaglin, "How to Detect and Handle
 * Outliers" (ASQC, 1993): the distance from the median, in units of the standard deviation that the
 * median absolute deviation (MAD) stands for. Mean and standard deviation are no measure here: one
 * expensive day in the weeks before would hide the next. Where more than half of the days are
 * equal, the MAD is 0 and the mean absolute deviation takes its place, as in IBM SPSS.
 *
 * Only more than usual is an anomaly. The deviation is at least SPEND_NOISE times the median, so
 * that a small increase over weeks of nearly equal spending is none.
 */
#ifndef BELAY_TELEMETRY_SPEND_ANOMALY_H
#define BELAY_TELEMETRY_SPEND_ANOMALY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEND_WEEKS_MIN 4 /* fewer days before are not enough to judge */
#define SPEND_WEEKS_MAX 52
#define SPEND_WEEKS_DEFAULT 8
#define SPEND_DEVIATIONS_DEFAULT 4 /* Iglewicz and Hoaglin: 3.5 */
#define SPEND_DEVIATIONS_MAX 100
#define SPEND_AT_LEAST_UUSD_DEFAULT INT64_C(50000000) /* $50 */
#define SPEND_NOISE 0.1

struct spend_limits {
    int32_t weeks;         /* SPEND_WEEKS_MIN .. SPEND_WEEKS_MAX days before are compared */
    int32_t deviations;    /* 1 .. SPEND_DEVIATIONS_MAX: how far above the median is too far */
    int64_t at_least_uusd; /* above the median; less is never an anomaly */
};

struct spend_usual {
    int64_t median_uusd;
    int64_t limit_uusd; /* more than this is an anomaly */
};

/* What is usual after these n days, in any order; at most SPEND_WEEKS_MAX. False if they are fewer
 * than SPEND_WEEKS_MIN. */
bool spend_usual(const int64_t *days_uusd, size_t n, const struct spend_limits *limits,
    struct spend_usual *ret_usual);

#endif
