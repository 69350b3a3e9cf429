/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `failing_nodes`: when a node on which jobs fail at once is drained
 * (scheduler/core/lifecycle/node_failures.h).
 *
 *     failing_nodes: {jobs: 4, users: 3, within: 10m, quick: 1m}
 */
#ifndef BELAY_SCHEDULER_CONFIG_FAILING_NODES_H
#define BELAY_SCHEDULER_CONFIG_FAILING_NODES_H

#include "base/yaml.h"
#include "scheduler/core/lifecycle/node_failures.h"

/* Defaults for absent keys. */
void config_read_failing_nodes(struct yaml_reader *root, struct node_failures_options *ret_options);

#endif
