/* SPDX-License-Identifier: Apache-2.0
 *
 * Run times of recently ended jobs relative to their time limits: the basis of forecasts
 * (forecast.h). In memory only: worse forecasts after a restart do no harm, and belayd loads the
 * last stored ends into the model.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_RUNTIMES_H
#define BELAY_SCHEDULER_CORE_FORECAST_RUNTIMES_H

#include <stdint.h>

#define RUNTIMES_KEPT 32 /* number of remembered ends */
/* Remembered job names, by the most recent end; for other names all jobs of the user count. */
#define RUNTIMES_NAMES_MAX 2048
/* Expected maximum, unless a job has run longer. */
#define RUNTIMES_MAX_MS (30LL * 86400 * 1000)

struct runtimes {
    struct {
        int64_t used_ms, asked_ms; /* used: from placement to end; asked: time limit, 0 = none */
    } of[RUNTIMES_KEPT];
    int32_t n, next;
};

/* Draws the total run time of a job that has run for elapsed_ms and may run for limit_ms (0:
 * unlimited), with `random` any number: a known job's fraction of its limit, among those that ran
 * longer than this one has. Without such data: uniform between now and the limit; without a limit,
 * a further time with the median elapsed_ms. r may be NULL. The result exceeds elapsed_ms. */
int64_t runtimes_draw(
    const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms, uint64_t random);
/* The mean of runtimes_draw. */
int64_t runtimes_mean(const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms);

/* From the shortest known time to the limit, or to the longest without one; 0 and 0 if unknown. */
void runtimes_range(
    const struct runtimes *r, int64_t limit_ms, int64_t *ret_least_ms, int64_t *ret_most_ms);
/* The median of the known run times; 0 if unknown. r may be NULL. */
int64_t runtimes_median(const struct runtimes *r);

#endif
