/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections that set how often jobs are queued again after which end: `retries:` and
 * `retries_max:` of belayd's configuration, `retries:` of a pool.
 */
#ifndef BELAY_SCHEDULER_CONFIG_RETRIES_H
#define BELAY_SCHEDULER_CONFIG_RETRIES_H

#include "base/yaml.h"
#include "scheduler/core/lifecycle/retry_counts.h"

/* Reads a mapping of ends to numbers or to the word unlimited; zeroed if the key is absent. */
void config_read_retries(struct yaml_reader *r, const char *key, struct retries *ret_retries);

#endif
