/* SPDX-License-Identifier: Apache-2.0
 *
 * How many GPUs (or cpus) to reserve, from how many were held over time: a base of them is paid
 * whether it is used or not, what goes beyond it is rented by the hour. Pure.
 *
 * Of a base of s, over n steps in which h[i] were held on average:
 *     use        sum of min(h[i], s) / (s x n)                       falls as s grows
 *     cost       s x n x price of a reserved hour + sum of max(h[i] - s, 0) x price on-demand, for
 *                each hour of a step
 * The base to have is the largest whose use would have been at least RESERVE_USE_LEAST, but never
 * more than were ever held. Where what is held hardly changes, more than RESERVE_USE_MOST of that
 * is used.
 */
#ifndef BELAY_MONEY_RESERVE_H
#define BELAY_MONEY_RESERVE_H

#include <stddef.h>
#include <stdint.h>

#define RESERVE_USE_LEAST 0.75
#define RESERVE_USE_MOST 0.80

struct reserve_load {
    const double *held; /* of each step, at least 0 */
    size_t n;
    double step_h;
    double reserved_uusd_h, on_demand_uusd_h; /* of one; not above 0: nobody knows */
};

struct reserve_point {
    int64_t size;
    double use;                        /* 0 .. 1; of none 0 */
    double reserved_uusd, beyond_uusd; /* of the whole time: their sum is the cost */
};

struct reserve_point reserve_at(const struct reserve_load *l, int64_t size);

double reserve_mean(const struct reserve_load *l);
int64_t reserve_peak(const struct reserve_load *l); /* rounded up */

/* At most the peak; 0: even of one less than RESERVE_USE_LEAST would have been used. */
int64_t reserve_size(const struct reserve_load *l);

/* The size that would have cost least, the smallest of such; -1 without both prices. */
int64_t reserve_cheapest(const struct reserve_load *l);

#endif
