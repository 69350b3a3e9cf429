/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `deadlines:` of belayd's configuration: how jobs with --finish-by are decided.
 */
#ifndef BELAY_SCHEDULER_CONFIG_PROCUREMENT_H
#define BELAY_SCHEDULER_CONFIG_PROCUREMENT_H

#include "base/yaml.h"
#include "scheduler/core/model/model.h"

void config_read_procurement(struct yaml_reader *root, struct procurement_options *ret_options);

#endif
