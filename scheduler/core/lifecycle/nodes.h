/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes in the model, and the best one for a job.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_NODES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_NODES_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

void node_index(struct model *m, struct node *n);   /* a new node into the look-ups */
void node_unindex(struct model *m, struct node *n); /* out of all of them */
void node_move(struct model *m, struct node *n, enum node_state to, struct stamp now);
/* Puts the node into the lists that its state and load call for; grew: it may have more room than
 * before. */
void node_refresh(struct model *m, struct node *n, bool grew);
/* others may fit there than before; it takes work */
void node_grew(struct model *m, struct node *n);
bool node_takes_work(const struct node *n);
bool node_is_in_order(const struct node *n); /* before the next in by_free: for model_check */
void node_attach(struct model *m, struct node *n, struct attempt *a); /* takes the resources */
void node_detach(struct model *m, struct attempt *a, struct stamp now);
/* The node for a job of this shape that needs one (plan.h, 2.), or NULL. */
struct node *nodes_best(const struct model *m, const struct shape *s, struct stamp now);
/* Those for a gang's ranks, into ids[s->nodes]; returns how many, s->least or more, or 0: there are
 * not enough. All in one pool: the one that has most of them, of these the one of which the dearest
 * market that has to be used is the lowest, of these the one where reading its input costs the
 * least. */
int32_t nodes_for_gang(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ids);
void nodes_deinit(struct model *m);

#endif
