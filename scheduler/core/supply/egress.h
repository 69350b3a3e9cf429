/* SPDX-License-Identifier: Apache-2.0
 *
 * Price of data transfer between regions. The caller passes the prices, because the core knows no
 * provider.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_EGRESS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_EGRESS_H

#include <stdint.h>

/* A provider's price per outgoing GiB; zeroed: free. */
struct egress {
    int64_t to_region_uusd_gib; /* to another of its own regions */
    int64_t out_uusd_gib;       /* to anywhere else */
};

/* Price per GiB from a region of the provider with these prices; incoming traffic is free. 0 within
 * a region, and if to_provider is "". */
int64_t egress_uusd_gib(const struct egress *prices, const char *provider, const char *region,
    const char *to_provider, const char *to_region);

#endif
