/* SPDX-License-Identifier: Apache-2.0
 *
 * What metrics keep for each node: maps from a node to a value of malloc.
 */
#ifndef BELAY_SCHEDULER_METRICS_BY_NODE_H
#define BELAY_SCHEDULER_METRICS_BY_NODE_H

#include "base/map.h"
#include "scheduler/core/model/model.h"

#define BY_NODE_WRITTEN_MAX 2000 /* nodes in a scrape; those that joined first */

/* Frees the values of nodes that are gone, once they are about as many as live nodes. */
void by_node_trim(struct map *values, const struct model *m);
/* Frees all values. */
void by_node_deinit(struct map *values);

#endif
