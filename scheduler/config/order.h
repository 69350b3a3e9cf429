/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of belayd's configuration that set the order in which jobs run: `teams:`,
 * `priority:`, `qos:` and `each_user:`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_ORDER_H
#define BELAY_SCHEDULER_CONFIG_ORDER_H

#include "base/yaml.h"
#include "scheduler/core/queue/order.h"

#define CONFIG_TEAMS_MAX 1000
#define CONFIG_MEMBERS_MAX 10000 /* members of a team */
#define CONFIG_QOS_MAX 100

/* Reads the sections; call it while the caller's reader is at the file's root. Absent keys get
 * order_defaults. Deinit *ret_order in all cases. */
void config_read_order(struct yaml_reader *root, struct order_options *ret_order);
void config_order_deinit(struct order_options *o);

#endif
