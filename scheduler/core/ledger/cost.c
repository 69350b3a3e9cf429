/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs in micro-dollars: of time at a price, of bytes at a price, and of an instance until a
 * moment. (The folder money/ is about something else: whether to rent or to buy GPUs.)
 */
#include "scheduler/core/model/model.h"

#include <assert.h>

#define HOUR_MS 3600000

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
