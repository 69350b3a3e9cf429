/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs that bytes go from one place to another, by list prices of the providers: whose place they leave takes it, what comes
 * in costs nothing anywhere.
 */
#ifndef BELAY_CORE_TRAFFIC_H
#define BELAY_CORE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

/* Whether anything is known of what this provider takes. */
bool core_traffic_knows(const char *provider);
/* A GiB, in micro-dollars; 0 within a region, and where a provider is "" or not known. */
int64_t core_traffic_uusd_gib(const char *provider, const char *region, const char *to_provider, const char *to_region);

#endif
