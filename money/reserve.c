/* SPDX-License-Identifier: Apache-2.0 */
#include "money/reserve.h"

#include <math.h>

double reserve_mean(const struct reserve_load *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += l->held[i];
    return l->n > 0 ? sum / (double)l->n : 0;
}

int64_t reserve_peak(const struct reserve_load *l)
{
    double most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = fmax(most, l->held[i]);
    return (int64_t)ceil(most);
}

struct reserve_point reserve_at(const struct reserve_load *l, int64_t size)
{
    double within = 0, beyond = 0, all = (double)size * (double)l->n;
    for (size_t i = 0; i < l->n; i++) {
        within += fmin(l->held[i], (double)size);
        beyond += fmax(l->held[i] - (double)size, 0);
    }
    return (struct reserve_point){.size = size,
        .use = all > 0 ? within / all : 0,
        .reserved_uusd = all * l->step_h * l->reserved_uusd_h,
        .beyond_uusd = beyond * l->step_h * l->on_demand_uusd_h};
}

/* Use does not rise with the size, so binary search finds the largest size with enough use. */
int64_t reserve_size(const struct reserve_load *l)
{
    int64_t enough = 0, too_large = reserve_peak(l) + 1;
    while (too_large - enough > 1) {
        int64_t size = enough + (too_large - enough) / 2;
        if (reserve_at(l, size).use >= RESERVE_USE_MIN)
            enough = size;
        else
            too_large = size;
    }
    return enough;
}

static double cost_at(const struct reserve_load *l, int64_t size)
{
    struct reserve_point p = reserve_at(l, size);
    return p.reserved_uusd + p.beyond_uusd;
}

/* Cost is convex in the size: each further unit costs the same and replaces on-demand capacity in
 * no more steps than the previous one. So binary search finds the minimum. */
int64_t reserve_cheapest(const struct reserve_load *l)
{
    int64_t low = 0, high = reserve_peak(l);
    if (l->reserved_uusd_h <= 0 || l->on_demand_uusd_h <= 0)
        return -1;
    while (low < high) {
        int64_t size = low + (high - low) / 2;
        if (cost_at(l, size) <= cost_at(l, size + 1))
            high = size;
        else
            low = size + 1;
    }
    return low;
}
