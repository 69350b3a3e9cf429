/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections `node_types:` and `racks:` of belayd's configuration.
 */
#ifndef BELAY_SCHEDULER_CONFIG_RACKS_H
#define BELAY_SCHEDULER_CONFIG_RACKS_H

#include "base/yaml.h"
#include "scheduler/core/placement/rack_options.h"

/* Reads the sections; call it while the caller's reader is at the file's root. Free *ret_racks with
 * free() in all cases. */
void config_read_racks(struct yaml_reader *root, struct rack_options **ret_racks, size_t *ret_n);

#endif
