/* SPDX-License-Identifier: Apache-2.0
 *
 * How the tasks of a step are laid out on the nodes of its job, as Slurm does it: each node has as
 * many as the others, the first ones one more where it does not come out even. Pure.
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
    int64_t job_nodes;            /* that it may be on, 1 .. LAYOUT_NODES_MAX */
    int64_t nodes_min, nodes_max; /* that are asked for; 0: all of them, but none for nothing */
    int64_t tasks;                /* 0: tasks_per_node on each of them, else one */
    int64_t tasks_per_node;       /* at most, with tasks; 0: not told */
};

struct layout {
    int64_t nodes, tasks;
    bool cyclic; /* task 1 is on the second node; else on the first as long as that has room */
};

/* ERR_INVALID */
int layout_make(const struct layout_ask *ask, struct layout *ret_layout, struct err *e);

/* Tasks on the node, 0 .. nodes - 1. */
int64_t layout_count(const struct layout *l, int64_t node);

/* The number of the node's i-th task. */
int64_t layout_task(const struct layout *l, int64_t node, int64_t i);

/* "2(x3),1", as SLURM_STEP_TASKS_PER_NODE. */
void layout_format(const struct layout *l, struct buf *out);

#endif
