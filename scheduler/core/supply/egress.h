/* SPDX-License-Identifier: Apache-2.0
 *
 * Price of sending data from one place to another. The prices are given from outside, because the
 * core knows no provider.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_EGRESS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_EGRESS_H

#include <stdint.h>

/* What a provider bills for each GiB that leaves; zeroed: nothing. */
struct egress {
    int64_t to_region_uusd_gib; /* to another of its own regions */
    int64_t out_uusd_gib;       /* to anywhere else */
};

/* Price of a GiB from a region of the provider that has these prices; what arrives costs nothing.
 * 0 within a region, and if to_provider is "". */
int64_t egress_uusd_gib(const struct egress *prices, const char *provider, const char *region,
    const char *to_provider, const char *to_region);

#endif
