/* SPDX-License-Identifier: Apache-2.0
 *
 * Price of a GiB of a volume per month (see catalogue.h): list prices in micro-dollars, without
 * separately billed operations and throughput. Azure's are those of a 128 GiB disk; larger Premium
 * disks are a few per cent cheaper per GiB.
 */
#include "cloud/catalogue.h"

#include "base/str.h"

#define AZURE_MIN_GIB 4
#define AZURE_MAX_GIB 32768

static const struct volume_row {
    const char *provider, *type;
    int64_t uusd_gib_month;
    const char *source;
} volumes[] = {
    {"aws", "gp3", 80000, "list price, us-east-1"},
    {"aws", "gp2", 100000, "list price, us-east-1"},
    {"aws", "io1", 125000, "list price, us-east-1"},
    {"aws", "io2", 125000, "list price, us-east-1"},
    {"aws", "st1", 45000, "list price, us-east-1"},
    {"aws", "sc1", 15000, "list price, us-east-1"},
    {"aws", "standard", 50000, "list price, us-east-1"},
    {"azure", "Premium_LRS", 154000, "list price, eastus"},
    {"azure", "StandardSSD_LRS", 75000, "list price, eastus"},
    {"azure", "Standard_LRS", 46000, "list price, eastus"},
    {"azure", "PremiumV2_LRS", 81000, "list price, eastus"},
    {"gcp", "pd-standard", 40000, "list price, us-central1"},
    {"gcp", "pd-balanced", 100000, "list price, us-central1"},
    {"gcp", "pd-ssd", 170000, "list price, us-central1"},
    {"gcp", "pd-extreme", 125000, "list price, us-central1"},
    {"gcp", "hyperdisk-balanced", 80000, "list price, us-central1"},
    {"gcp", "regional-pd-standard", 80000, "list price, us-central1"},
    {"gcp", "regional-pd-balanced", 200000, "list price, us-central1"},
    {"gcp", "regional-pd-ssd", 340000, "list price, us-central1"},
};

int64_t catalogue_volume_uusd(const char *provider, const char *type, const char **ret_source)
{
    for (size_t i = 0; i < sizeof(volumes) / sizeof(volumes[0]); i++) {
        if (!str_eq(volumes[i].provider, provider) || !str_eq(volumes[i].type, type))
            continue;
        *ret_source = volumes[i].source;
        return volumes[i].uusd_gib_month;
    }
    return -1;
}

int64_t catalogue_volume_billed_gib(const char *provider, const char *type, int64_t gib)
{
    bool in_sizes = str_eq(provider, "azure") && !str_eq(type, "PremiumV2_LRS");
    int64_t billed = AZURE_MIN_GIB;
    if (!in_sizes || gib > AZURE_MAX_GIB)
        return gib;
    while (billed < gib)
        billed *= 2;
    return billed;
}
