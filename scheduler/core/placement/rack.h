/* SPDX-License-Identifier: Apache-2.0
 *
 * Racks: nodes that share a supply of power, of which only so much may be drawn at once. What a
 * node draws is reckoned from what its jobs hold, never less than they can draw: at rest `idle_w`,
 * with all of its cpus or GPUs taken `full_w`, and between the two by the greater of the shares of
 * cpus and of GPUs that are taken. A node counts as at rest whether it has joined or not; one that
 * is lost goes on counting as when it was heard of last, for what ran there may still run. What its
 * agent measured beyond that is added.
 *
 * A rack has nodes by name, and nodes of whole pools. Of an elastic pool's machines no more are
 * launched than have a place there, and none while there would be no power for what it is launched
 * for.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RACK_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RACK_H

#include "job/hosts.h"
#include "scheduler/core/model/types.h"

#define RACKS_MAX 256
#define RACK_KINDS_MAX 16      /* of nodes in one */
#define RACK_WATTS_MAX 1000000 /* of a node */
#define RACK_KW_MAX 100000

/* Nodes of one kind: those of these names, or those of a pool that are named nowhere. */
struct rack_nodes {
    char names[HOSTS_TEXT_MAX]; /* hosts_check holds; "": of the pool */
    int64_t n;                  /* as many; the pool's may come to be more, which count as well */
    int64_t idle_w, full_w;     /* 0 <= idle_w < full_w */
    char pool[CORE_NAME_MAX];   /* "": of those names */
};

/* As the configuration has it. No name and no pool is in two; all of them at rest, and one of the
 * largest at full load, do not exceed it. */
struct rack_options {
    char name[CORE_NAME_MAX];
    int64_t max_w;
    struct rack_nodes nodes[RACK_KINDS_MAX];
    size_t n_nodes;
};

/* What a user is shown of one, as of now. */
struct rack_view {
    const struct rack_options *options; /* borrowed for the model's life */
    int64_t idle_w;                     /* all of its nodes at rest */
    int64_t draw_w;                     /* with what runs */
    int64_t measured_w;                 /* and so much more, as was measured */
    int64_t nodes, joined;
};

struct model;
struct node;
size_t core_racks(const struct model *m);
void core_rack(const struct model *m, size_t i, struct rack_view *ret_view);
/* The name of the node's rack and what it counts as there; NULL: it is in none. */
const char *core_node_rack(const struct node *n, int64_t *ret_watts);

#endif
