/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/supply/egress.h"

#include "base/str.h"

int64_t egress_uusd_gib(const struct egress *prices, const char *provider, const char *region,
    const char *to_provider, const char *to_region)
{
    if (!to_provider[0])
        return 0;
    if (!str_eq(provider, to_provider))
        return prices->out_uusd_gib;
    return str_eq(region, to_region) ? 0 : prices->to_region_uusd_gib;
}
