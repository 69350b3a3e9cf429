/* SPDX-License-Identifier: Apache-2.0
 *
 * The interval between the periodic saves of a job, from the duration of a save and the rate of
 * reclaims: sqrt(2 * save * mean time between reclaims) (J. W. Young, "A first order approximation
 * to the optimum checkpoint interval", CACM 17(9), 1974).
 */
#include "scheduler/core/lifecycle/save_interval.h"

#include <math.h>

#define HOUR_MS 3600000
#define INTERVAL_MIN_MS SECONDS_MS(15)
#define INTERVAL_MAX_MS SECONDS_MS(30 * 60)
#define STORING_PART 4 /* a store is written at most during this fraction of the time (1/n) */

int64_t core_save_interval_ms(int64_t save_ms, double reclaims_per_hour)
{
    double save = save_ms > 0 ? (double)save_ms : 1000.0;
    double rate = reclaims_per_hour > 0 ? reclaims_per_hour : PRIOR_RECLAIMS_PER_HOUR;
    double best = sqrt(2.0 * save * (HOUR_MS / rate));
    if (best <= INTERVAL_MIN_MS)
        return INTERVAL_MIN_MS;
    if (best >= INTERVAL_MAX_MS)
        return INTERVAL_MAX_MS;
    return (int64_t)best;
}

int64_t core_interval_with(const struct job *j, int64_t save_ms, int64_t pause_ms)
{
    const struct job_spec *spec = &j->row.spec;
    if (spec->method == CKPT_NONE)
        return 0;
    if (spec->ckpt_every_ms != CKPT_EVERY_AUTO)
        return spec->ckpt_every_ms;
    double rate = core_job_reclaims_per_hour(j);
    if (save_ms <= 0)
        return core_save_interval_ms(0, rate);
    int64_t best = core_save_interval_ms(pause_ms > 0 ? pause_ms : 1, rate);
    int64_t least =
        STORING_PART * save_ms < INTERVAL_MAX_MS ? STORING_PART * save_ms : INTERVAL_MAX_MS;
    return best > least ? best : least;
}

int64_t core_interval_ms(const struct attempt *a)
{
    return core_interval_with(a->job, a->job->row.save_ms, a->job->row.pause_ms);
}
