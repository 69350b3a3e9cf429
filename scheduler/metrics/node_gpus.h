/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of each node, as its agent reported them last: how busy, how full, how warm.
 */
#ifndef BELAY_SCHEDULER_METRICS_NODE_GPUS_H
#define BELAY_SCHEDULER_METRICS_NODE_GPUS_H

#include "db/telemetry.h"
#include "scheduler/core/model/model.h"
#include "scheduler/metrics/exposition.h"

#define NODE_GPUS_MAX 16 /* of a node; others are left out */

struct node_gpus;

struct node_gpus *node_gpus_create(void);
void node_gpus_destroy(struct node_gpus *g);
void node_gpus_committed(
    struct node_gpus *g, const struct model *m, const struct loads_batch *loads);
void node_gpus_write(const struct node_gpus *g, const struct model *m, struct exposition *x);

#endif
