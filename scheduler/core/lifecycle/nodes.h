/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes in the model, and node selection for a job. The events of nodes, as the heartbeat that
 * renews a lease, are in apply_node.c. That a lease has expired is decided in plan.c
 * (consider_leases).
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NODES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NODES_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

void node_index(struct model *m, struct node *n);   /* adds a new node to the indexes */
void node_unindex(struct model *m, struct node *n); /* removes it from all indexes */
void node_move(struct model *m, struct node *n, enum node_state to, struct stamp now);
/* Updates the lists that it belongs to by state and load; grew: its free capacity may have
 * grown. */
void node_refresh(struct model *m, struct node *n, bool grew);
/* Further jobs may fit on it; it accepts work. */
void node_grew(struct model *m, struct node *n);
bool node_takes_work(const struct node *n);
/* belay drains it, and its machine is ended as soon as its jobs have left: another one replaces it.
 * Not a machine of provider static: the next launch would get the same one. */
bool node_ends_when_empty(const struct node *n);
bool node_is_in_order(const struct node *n); /* relative to the next in by_free; for model_check */
void node_attach(struct model *m, struct node *n, struct attempt *a); /* takes the resources */
void node_detach(struct model *m, struct attempt *a, struct stamp now);
/* The node for a job of this shape that needs one (plan.h, 2.), or NULL. */
struct node *nodes_best(const struct model *m, const struct shape *s, struct stamp now);
/* The nodes for a gang's ranks, into ids[s->nodes]. Returns the count, at least s->least, or 0 if
 * there are too few. All are in one pool: the one with most of them; on a tie the one with the
 * lowest most expensive market; then the one with the lowest cost of reading its input. */
int32_t nodes_for_gang(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ids);
void nodes_deinit(struct model *m);

#endif
