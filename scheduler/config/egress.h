/* SPDX-License-Identifier: Apache-2.0
 *
 * Places of data as users write them, aws/us-east-1, and what it costs to send data between them:
 * the forms are the core's, the providers and prices those of the catalogue.
 */
#ifndef BELAY_SCHEDULER_CONFIG_EGRESS_H
#define BELAY_SCHEDULER_CONFIG_EGRESS_H

#include "base/err.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/supply/egress.h"

/* Where a job's input lies: aws/us-east-1, or "store" for the location of the checkpoint store;
 * sets only that of *ret_input. ERR_INVALID: another form, or a provider whose prices are
 * unknown. */
int config_read_input_location(const char *text, struct input *ret_input, struct err *e);

/* The prices of a provider; zeros if they are unknown. The form of model_options.egress. */
struct egress config_egress(const char *provider);

/* Price of sending a GiB from the first location to the second; 0 if a provider is "" or
 * unknown. */
int64_t config_egress_uusd_gib(
    const char *provider, const char *region, const char *to_provider, const char *to_region);

#endif
