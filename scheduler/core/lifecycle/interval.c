/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of time and money.
 */
#include "scheduler/core/model/model.h"

#include <assert.h>
#include <math.h>

#define HOUR_MS 3600000
#define INTERVAL_MIN_MS SECONDS_MS(15)
#define INTERVAL_MAX_MS SECONDS_MS(30 * 60)
#define USUAL_RECLAIMS_PER_HOUR 0.05
#define STORING_PART 4 /* a store is written at most during this fraction of the time (1/n) */

int64_t core_save_interval_ms(int64_t save_ms, double reclaims_per_hour)
{
    double save = save_ms > 0 ? (double)save_ms : 1000.0;
    double rate = reclaims_per_hour > 0 ? reclaims_per_hour : USUAL_RECLAIMS_PER_HOUR;
    double best = sqrt(2.0 * save * (HOUR_MS / rate));
    if (best <= INTERVAL_MIN_MS)
        return INTERVAL_MIN_MS;
    if (best >= INTERVAL_MAX_MS)
        return INTERVAL_MAX_MS;
    return (int64_t)best;
}

int64_t core_interval_ms(const struct attempt *a)
{
    const struct job_row *j = &a->job->row;
    if (j->spec.method == CKPT_NONE)
        return 0;
    if (j->spec.ckpt_every_ms != CKPT_EVERY_AUTO)
        return j->spec.ckpt_every_ms;
    double rate = core_job_reclaims_per_hour(a->job);
    if (j->save_ms <= 0)
        return core_save_interval_ms(0, rate);
    int64_t best = core_save_interval_ms(j->pause_ms > 0 ? j->pause_ms : 1, rate);
    int64_t least =
        STORING_PART * j->save_ms < INTERVAL_MAX_MS ? STORING_PART * j->save_ms : INTERVAL_MAX_MS;
    return best > least ? best : least;
}

int64_t core_cost_uusd(int64_t ms, int64_t uusd_h)
{
    assert(ms >= 0 && uusd_h >= 0);
    int64_t hours = ms / HOUR_MS, rest = ms % HOUR_MS; /* separated to avoid overflow of products */
    return hours * uusd_h + (rest * uusd_h + HOUR_MS / 2) / HOUR_MS;
}

int64_t core_bytes_uusd(int64_t bytes, int64_t uusd_gib)
{
    const int64_t gib = INT64_C(1) << 30;
    assert(uusd_gib >= 0);
    return bytes > 0 ? (int64_t)(((__extension__(__int128) bytes) * uusd_gib + gib / 2) / gib) : 0;
}

int64_t core_instance_uusd(const struct instance_row *r, struct wall at)
{
    if (wall_is_set(r->priced_at) && wall_is_set(r->before_at) && at.ms < r->priced_at.ms)
        return r->before_uusd + (at.ms > r->before_at.ms
                                        ? core_cost_uusd(at.ms - r->before_at.ms, r->before_uusd_h)
                                        : 0);
    if (!wall_is_set(r->priced_at) || at.ms < r->priced_at.ms)
        return r->accrued_uusd;
    return r->accrued_uusd + core_cost_uusd(at.ms - r->priced_at.ms, r->price_uusd_h);
}
