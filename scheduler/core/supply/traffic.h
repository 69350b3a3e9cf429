/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs that bytes go from one place to another, by list prices of the providers: whose
 * place they leave takes it, what comes in costs nothing anywhere.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_TRAFFIC_H
#define BELAY_SCHEDULER_CORE_SUPPLY_TRAFFIC_H

#include "scheduler/core/model/types.h"
#include <stdbool.h>
#include <stdint.h>

#define TRAFFIC_PROVIDER_MAX 16

/* "aws/us-east-1"; false, and nothing is set: it is not of this form. Whether there is such a
 * provider is not asked. */
bool core_traffic_place(
    const char *text, char ret_provider[TRAFFIC_PROVIDER_MAX], char ret_region[CORE_NAME_MAX]);
/* Whether anything is known of what this provider takes. */
bool core_traffic_knows(const char *provider);
/* A GiB, in micro-dollars; 0 within a region, and where a provider is "" or not known. */
int64_t core_traffic_uusd_gib(
    const char *provider, const char *region, const char *to_provider, const char *to_region);

#endif
