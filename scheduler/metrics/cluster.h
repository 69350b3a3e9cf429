/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster as it is now: nodes, their resources, machines, offers, budgets, racks. A call
 * reads each node, instance and offer once.
 */
#ifndef BELAY_SCHEDULER_METRICS_CLUSTER_H
#define BELAY_SCHEDULER_METRICS_CLUSTER_H

#include "scheduler/core/model/model.h"
#include "scheduler/metrics/exposition.h"

#define CLUSTER_OFFERS_MAX 1000 /* in a scrape; others are left out */

void cluster_write(const struct model *m, struct wall now, struct exposition *x);

#endif
