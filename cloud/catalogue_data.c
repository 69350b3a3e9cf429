/* SPDX-License-Identifier: Apache-2.0
 *
 * Prices of sending and of keeping data (see catalogue.h): list prices in micro-dollars for a GiB,
 * 2026-11. A GB on these bills is a GiB.
 */
#include "cloud/catalogue.h"

#include "base/str.h"

/* Of the first terabytes of a month, North America. */
static const struct egress_row {
    const char *provider;
    int64_t to_region_uusd, out_uusd;
} egress[] = {{"aws", 20000, 90000}, {"azure", 20000, 87000}, {"gcp", 20000, 120000}};

bool catalogue_egress(
    const char *provider, int64_t *ret_to_region_uusd_gib, int64_t *ret_out_uusd_gib)
{
    for (size_t i = 0; i < sizeof(egress) / sizeof(egress[0]); i++) {
        if (!str_eq(egress[i].provider, provider))
            continue;
        *ret_to_region_uusd_gib = egress[i].to_region_uusd;
        *ret_out_uusd_gib = egress[i].out_uusd;
        return true;
    }
    return false;
}

int64_t catalogue_store_uusd_gib_month(const char *url)
{
    /* S3 Standard in us-east-1, Google Standard in us-central1, Azure Hot LRS in East US */
    return str_starts(url, "s3:")   ? 23000
           : str_starts(url, "gs:") ? 20000
           : str_starts(url, "az:") ? 18000
                                    : 0;
}
