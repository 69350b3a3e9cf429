/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations for the head of the queue.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RESERVE_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RESERVE_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct queue_position;

/* the time limit of an attempt there changed */
void reserve_retimed(struct model *m, struct node *n);
/* A job of the shape placed there now does not delay the node's reservation, or is before it in the
 * queue. */
bool reserve_allows(const struct node *n, const struct shape *s, struct stamp now);
bool reserve_is_known(int64_t until); /* only attempts with a time limit are in the way */
void reserve_drop(struct model *m, struct shape *s); /* no-op without a reservation */
/* The claim covers one more job, unless it is a gang's. */
void reserve_claim(struct model *m, struct shape *s, struct node *n);
void reserve_claimed(struct model *m, struct shape *s); /* all nodes of one more job are claimed */
/* A job of the shape is placed there; no-op without claims. */
void reserve_used(struct model *m, struct shape *s, struct node *n);
/* Reduces claims to the number of its jobs. */
void reserve_trim(struct model *m, struct shape *s);
/* Reserved for others and does not yield. */
bool reserve_is_taken(const struct node *n, const struct shape *s);
/* It may reserve all of these nodes, and each is named once. */
bool reserve_may_take(
    const struct model *m, const struct shape *s, const int64_t *nodes, size_t n_nodes);
/* Coming or launchable machines for it, at most as many as it needs. */
int32_t reserve_to_come(
    const struct model *m, const struct shape *s, const struct pool *pool, struct stamp now);
/* The order of the queue changed: shapes that left the head lose their reservations. */
void reserve_reorder(struct model *m);
/* An attempt there ends earlier than expected. */
void reserve_relaxed(struct model *m, struct node *n);
/* Its reservation may have to yield to other jobs now. */
void reserve_may_yield(struct model *m, struct node *n);
/* No attempt there delays the node's reservation, if it has one. */
bool reserve_is_valid(const struct node *n);
/* A job from that queue position was placed: drops reservations behind it that cannot be kept any
 * more. */
void reserve_overridden(struct model *m, struct node *n, struct queue_position by, bool was_owed);

#endif
