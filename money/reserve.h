/* SPDX-License-Identifier: Apache-2.0
 *
 * How many GPUs (or cpus) to reserve, from how many were held over time: reserved ones are paid
 * whether used or not, the excess is rented by the hour. Pure.
 *
 * For a base of s units, over n steps in which h[i] were held on average:
 *     use        sum of min(h[i], s) / (s x n)                       falls as s grows
 *     cost       s x n x price of a reserved hour + sum of max(h[i] - s, 0) x price on-demand, for
 *                each hour of a step
 * The recommended base is the largest whose use would have been at least RESERVE_USE_MIN, but at
 * most the peak. If the number held hardly changes, more than RESERVE_USE_MAX of the base is used.
 */
#ifndef BELAY_MONEY_RESERVE_H
#define BELAY_MONEY_RESERVE_H

#include <stddef.h>
#include <stdint.h>

#define RESERVE_USE_MIN 0.75
#define RESERVE_USE_MAX 0.80

struct reserve_load {
    const double *held; /* per step, at least 0 */
    size_t n;
    double step_h;
    double reserved_uusd_h, on_demand_uusd_h; /* per unit; <= 0 = not known */
};

struct reserve_point {
    int64_t size;
    double use;                        /* 0 .. 1; 0 without a base */
    double reserved_uusd, beyond_uusd; /* over the whole time; their sum is the cost */
};

struct reserve_point reserve_at(const struct reserve_load *l, int64_t size);

double reserve_mean(const struct reserve_load *l);
int64_t reserve_peak(const struct reserve_load *l); /* rounded up */

/* At most the peak; 0 if even one would have been used less than RESERVE_USE_MIN. */
int64_t reserve_size(const struct reserve_load *l);

/* The smallest size with the lowest cost; -1 without both prices. */
int64_t reserve_cheapest(const struct reserve_load *l);

#endif
