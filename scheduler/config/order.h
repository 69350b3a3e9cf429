/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of belayd's configuration that say in which order jobs run: `teams:`, `priority:`,
 * `qos:` and `each_user:`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_ORDER_H
#define BELAY_SCHEDULER_CONFIG_ORDER_H

#include "base/yaml.h"
#include "scheduler/core/queue/order.h"

#define CONFIG_TEAMS_MAX 1000
#define CONFIG_MEMBERS_MAX 10000 /* of a team */
#define CONFIG_QOS_MAX 100

/* Reads the sections of the file's root, as the caller's reader goes over it; order_defaults for
 * what is absent. *ret_order is deinited in any case. */
void config_read_order(struct yaml_reader *root, struct order_options *ret_order);
void config_order_deinit(struct order_options *o);

#endif
