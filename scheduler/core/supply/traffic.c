/* SPDX-License-Identifier: Apache-2.0
 *
 * See traffic.h. List prices of 2026-11, of the first terabytes of a month, North America. A GB on
 * these bills is a GiB.
 */
#include "scheduler/core/supply/traffic.h"

#include "base/str.h"
#include <stddef.h>
#include <string.h>

static const struct {
    const char *provider;
    int64_t to_region_uusd, out_uusd; /* to another region of its own; to anywhere else */
} prices[] = {{"aws", 20000, 90000}, {"azure", 20000, 87000}, {"gcp", 20000, 120000}};
#define N_PRICES (sizeof(prices) / sizeof(prices[0]))

static size_t find(const char *provider)
{
    size_t i = 0;
    while (i < N_PRICES && strcmp(prices[i].provider, provider) != 0)
        i++;
    return i;
}

bool core_traffic_place(
    const char *text, char ret_provider[TRAFFIC_PROVIDER_MAX], char ret_region[CORE_NAME_MAX])
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : 0;
    if (n == 0 || n >= TRAFFIC_PROVIDER_MAX || !str_is_name(slash + 1, CORE_NAME_MAX - 1))
        return false;
    memcpy(ret_provider, text, n);
    ret_provider[n] = '\0';
    str_copy(ret_region, CORE_NAME_MAX, slash + 1);
    return true;
}

bool core_traffic_knows(const char *provider)
{
    return find(provider) < N_PRICES;
}

int64_t core_traffic_uusd_gib(
    const char *provider, const char *region, const char *to_provider, const char *to_region)
{
    size_t i = find(provider);
    if (i == N_PRICES || !to_provider[0])
        return 0;
    if (strcmp(provider, to_provider) != 0)
        return prices[i].out_uusd;
    return strcmp(region, to_region) != 0 ? prices[i].to_region_uusd : 0;
}
