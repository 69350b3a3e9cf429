/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a step's tasks on the nodes of its job, as in Slurm: an equal number on each node,
 * and one more on the first nodes for the remainder. Pure.
 */
#ifndef BELAY_CLI_SLURM_LAYOUT_H
#define BELAY_CLI_SLURM_LAYOUT_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define LAYOUT_NODES_MAX 256
#define LAYOUT_TASKS_MAX 65536

struct layout_ask {
    int64_t job_nodes;            /* available nodes, 1 .. LAYOUT_NODES_MAX */
    int64_t nodes_min, nodes_max; /* requested; 0 = all nodes that get a task */
    int64_t tasks;                /* 0 = tasks_per_node on each node, or one */
    int64_t tasks_per_node;       /* maximum, with tasks; 0 = not given */
};

struct layout {
    int64_t nodes, tasks;
    bool cyclic; /* task 1 is on the second node; else the first node is filled first */
};

/* ERR_INVALID */
int layout_make(const struct layout_ask *ask, struct layout *ret_layout, struct err *e);

/* Tasks on the node (0 .. nodes - 1). */
int64_t layout_count(const struct layout *l, int64_t node);

/* Number of the node's i-th task. */
int64_t layout_task(const struct layout *l, int64_t node, int64_t i);

/* "2(x3),1", the form of SLURM_STEP_TASKS_PER_NODE. */
void layout_format(const struct layout *l, struct buf *out);

#endif
