/* SPDX-License-Identifier: Apache-2.0
 *
 * Racks (rack_options.h) in the model: the power that is left decides where jobs may start.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RACKS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RACKS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

void racks_init(struct model *m, const struct rack_options *options, size_t n);
/* Other racks, with the same nodes and pools. What they draw is accepted, as at a start. */
void racks_renew(struct model *m, const struct rack_options *options, size_t n);
/* The same options at another place. */
void racks_move(struct model *m, const struct rack_options *options);
void rack_add_pool(struct model *m, struct pool *p); /* a new pool, by its name */
void rack_join(struct model *m, struct node *n);     /* a new node, by its name or its pool's */
void rack_leave(struct model *m, struct node *n);    /* a node that is gone */
/* Its free resources or its state may have changed. */
void rack_refresh(struct model *m, struct node *n);
/* Measured total draw; 0 = unknown. */
void rack_measured(struct model *m, struct node *n, int64_t watts);
/* Accepts the current draw even if it exceeds the limit; r may be NULL. */
void rack_accept(struct rack *r);
void racks_accept(struct model *m); /* accepts it for all racks */
/* Its nodes may have capacity for other jobs although no draw fell: reservations there changed. */
void rack_reservations_changed(struct model *m, const struct rack *r);
/* The shape that has the first reservation of its nodes; NULL if there is none. */
const struct shape *rack_reserved_for(const struct rack *r);
/* Power left; negative: limit exceeded. */
int64_t rack_left(const struct rack *r);
/* Additional draw of this many further jobs of the shape on a node of this kind and size, with
 * these free resources. */
int64_t rack_adds(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t times);
/* Draw of one of them on an otherwise empty machine of this kind and size; kind may be NULL: no
 * rack, 0. */
int64_t rack_single_w(const struct rack_nodes *kind, struct resources total, const struct shape *s);
/* How many, at most n, this much power suffices for. kind may be NULL: no rack, n. */
int64_t rack_times(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t n, int64_t left_w);
/* Power for one of them on each of this many future machines. */
bool rack_has_power(const struct offer *o, const struct shape *s, int64_t machines);
/* Power for the smallest job; true without a rack. */
bool rack_has_any(const struct offer *o);
/* Additional draw of one more on the node; 0 without a rack. */
int64_t rack_node_adds(const struct node *n, const struct shape *s);
/* Power for one more; true without a rack. */
bool rack_has_power_on(const struct node *n, const struct shape *s);
/* The same if one more goes to each of these other, distinct nodes. */
bool rack_has_power_with(const struct model *m, const struct node *n, const struct shape *s,
    const int64_t *nodes, int32_t n_nodes);
/* Whether the power suffices for one more job on `with`, a node of the rack, and for those that
 * `kept` says have reservations on its nodes (NULL: none; one per node, or the number of its
 * claims), once the attempts selected by `gone` have ended. */
typedef bool (*rack_gone_fn)(const void *ctx, const struct attempt *a);
typedef const struct shape *(*rack_kept_fn)(const void *ctx, const struct node *n);
bool rack_fits_after(const struct rack *r, rack_gone_fn gone, rack_kept_fn kept, const void *ctx,
    const struct node *with, const struct shape *s);
void racks_deinit(struct model *m);

#endif
