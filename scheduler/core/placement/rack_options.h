/* SPDX-License-Identifier: Apache-2.0
 *
 * Racks, as configured and as shown to users: nodes with a common power supply and a limit on their
 * total draw. The draw of a node is computed from the resources of its jobs and is an upper bound:
 * `idle_w` at rest, `full_w` with all cpus or GPUs in use, and linear in the greater of both shares
 * in between. A node counts as at rest whether it has joined or not; a lost node keeps its last
 * draw, since its jobs may still run. Power that its agent measured beyond that is added. How the
 * model keeps them is in racks.h.
 *
 * A rack has nodes by name, and all nodes of pools. Of an elastic pool at most as many machines are
 * launched as have a place in its rack, and none for which there would be no power.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RACK_OPTIONS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RACK_OPTIONS_H

#include "job/hosts.h"
#include "scheduler/core/model/types.h"

#define RACKS_MAX 256
#define RACK_KINDS_MAX 16      /* kinds of nodes per rack */
#define RACK_WATTS_MAX 1000000 /* per node */
#define RACK_KW_MAX 100000
#define RACK_PUE_MAX 5

/* Nodes of one kind: with these names, or of a pool without the nodes named elsewhere. */
struct rack_nodes {
    char names[HOSTS_TEXT_MAX]; /* satisfies hosts_check; "" for nodes of the pool */
    int64_t n;                  /* number of nodes; further nodes of the pool count as well */
    int64_t idle_w, full_w;     /* 0 <= idle_w < full_w */
    char pool[CORE_NAME_MAX];   /* "" for nodes by name */
};

/* As configured. Names and pools are in at most one rack. All nodes at rest, and one of the largest
 * at full load, do not exceed the limit. */
struct rack_options {
    char name[CORE_NAME_MAX];
    int64_t max_w;
    /* Power usage effectiveness (ISO/IEC 30134-2) in millionths: what the site draws for each watt
     * of the rack. Only shown; 0 = unknown, else 1000000 .. RACK_PUE_MAX * 1000000 */
    int64_t pue_micro;
    struct rack_nodes nodes[RACK_KINDS_MAX];
    size_t n_nodes;
};

/* Current state of a rack, for users. */
struct rack_view {
    const struct rack_options *options; /* borrowed for the model's life */
    int64_t idle_w;                     /* all its nodes at rest */
    int64_t draw_w;                     /* with running jobs */
    int64_t measured_w;                 /* further measured draw */
    int64_t nodes, joined;
};

struct model;
struct node;
size_t core_racks(const struct model *m);
void core_rack(const struct model *m, size_t i, struct rack_view *ret_view);
/* Name of the node's rack and its draw there; NULL if it is in none. */
const char *core_node_rack(const struct node *n, int64_t *ret_watts);

#endif
