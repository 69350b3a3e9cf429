/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of checkpoints in belayd's configuration: `store` and `store_*`, `encryption` and
 * `key_file`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_STORE_H
#define BELAY_SCHEDULER_CONFIG_STORE_H

#include "base/yaml.h"

struct config;

/* Reads these keys; c has its state directory. */
void config_read_store(struct yaml_reader *r, struct config *c);

#endif
