/* SPDX-License-Identifier: Apache-2.0
 *
 * What racks (rack.h) may draw.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RACKS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RACKS_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

void racks_init(struct model *m, const struct rack_options *options, size_t n);
void rack_add_pool(struct model *m, struct pool *p); /* a new one, by its name */
void rack_join(struct model *m, struct node *n);     /* a new node, by its name or its pool's */
void rack_leave(struct model *m, struct node *n);    /* it is gone */
/* what is free there, or its state, may be another */
void rack_refresh(struct model *m, struct node *n);
/* that all of it draws; 0: not known */
void rack_measured(struct model *m, struct node *n, int64_t watts);
/* it may draw what it does now, though it be too much; r may be NULL */
void rack_accept(struct rack *r);
void racks_accept(struct model *m); /* likewise all */
/* Its nodes may have room for others, though none of them draws less: what is kept there is kept in
 * another way. */
void rack_relaxed(struct model *m, const struct rack *r);
/* for whom the first of its nodes that are kept is; NULL: none is */
const struct shape *rack_reserved_for(const struct rack *r);
/* of what it may draw; less than 0: it draws too much */
int64_t rack_left(const struct rack *r);
/* What so many jobs of the shape more would draw on a node of this kind and size, where so much is
 * free. */
int64_t rack_adds(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t times);
/* One of them on a machine of this kind and size that nothing else runs on; kind may be NULL: in no
 * rack, 0. */
int64_t rack_alone_w(const struct rack_nodes *kind, struct resources total, const struct shape *s);
/* How many, at most n, there is power for where so much is left. kind may be NULL: in no rack,
 * n. */
int64_t rack_times(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t n, int64_t left_w);
/* for one of them on each of so many machines to come */
bool rack_has_power(const struct offer *o, const struct shape *s, int64_t machines);
/* for the least that can run on one; always where it is in none */
bool rack_has_any(const struct offer *o);
/* for one more; always where it is in none */
bool rack_has_room(const struct node *n, const struct shape *s);
/* Likewise when one goes to each of these others, all different, as well. */
bool rack_has_room_beside(const struct model *m, const struct node *n, const struct shape *s,
    const int64_t *nodes, int32_t n_nodes);
/* There is enough for one more on `with`, which is of the rack, and for those that `kept` says have
 * places on its nodes (NULL: nobody; as many as claims say, one without), when those have ended
 * that `gone` says. */
typedef bool (*rack_gone_fn)(const void *ctx, const struct attempt *a);
typedef const struct shape *(*rack_kept_fn)(const void *ctx, const struct node *n);
bool rack_fits_then(const struct rack *r, rack_gone_fn gone, rack_kept_fn kept, const void *ctx,
    const struct node *with, const struct shape *s);
void racks_deinit(struct model *m);

#endif
