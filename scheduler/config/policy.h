/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of belayd's configuration that set the order in which jobs run: `teams:`,
 * `priority:`, `qos:` and `each_user:`.
 */
#ifndef BELAY_SCHEDULER_CONFIG_POLICY_H
#define BELAY_SCHEDULER_CONFIG_POLICY_H

#include "base/yaml.h"
#include "scheduler/core/queue/policy.h"

#define CONFIG_TEAMS_MAX 1000
#define CONFIG_MEMBERS_MAX 10000 /* members of a team */
#define CONFIG_QOS_MAX 100

/* Reads the sections; call it while the caller's reader is at the file's root. Absent keys get
 * queue_policy_defaults. Deinit *ret_policy in all cases. */
void config_read_policy(struct yaml_reader *root, struct queue_policy *ret_policy);
void config_policy_deinit(struct queue_policy *o);

#endif
