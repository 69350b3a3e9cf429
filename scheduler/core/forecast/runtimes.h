/* SPDX-License-Identifier: Apache-2.0
 *
 * How long jobs ran that ended lately, against what they asked for: what forecasts (forecast.h)
 * draw from. In memory only: a forecast that is worse for a while after a restart does no harm, and
 * belayd tells the model what it has stored of the last ones.
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_RUNTIMES_H
#define BELAY_SCHEDULER_CORE_FORECAST_RUNTIMES_H

#include <stdint.h>

#define RUNTIMES_KEPT 32 /* the last so many ends */
/* jobs' names that are told apart, those that ended last; of others all jobs of a user count */
#define RUNTIMES_NAMES_MAX 2048
/* nothing is expected to run for longer, unless it has */
#define RUNTIMES_MAX_MS (30LL * 86400 * 1000)

struct runtimes {
    struct {
        int64_t used_ms, asked_ms; /* from its placement to its end; its time limit, 0: none */
    } of[RUNTIMES_KEPT];
    int32_t n, next;
};

/* How long in all a job runs that has run for elapsed_ms and may for limit_ms (0: for ever), if
 * things are as random (any number) says: as long in its limit as one of those that are known did
 * in theirs, among those that ran for longer than it has by now. Where none is known: anything
 * between now and its limit is as likely; without one as long again as until now, at the median. r
 * may be NULL. More than elapsed_ms. */
int64_t runtimes_draw(
    const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms, uint64_t random);
/* The mean of that. */
int64_t runtimes_mean(const struct runtimes *r, int64_t limit_ms, int64_t elapsed_ms);

/* From the shortest of them to the limit, or to the longest without one; 0 and 0: nobody knows
 * anything. */
void runtimes_range(
    const struct runtimes *r, int64_t limit_ms, int64_t *ret_least_ms, int64_t *ret_most_ms);

#endif
