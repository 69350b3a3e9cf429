/* SPDX-License-Identifier: Apache-2.0
 *
 * Room kept for the first of the queue.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_RESERVE_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_RESERVE_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;
struct place;

void reserve_retimed(struct model *m, struct node *n); /* something there has another time limit */
/* A job of the shape that is placed there now does not delay who the node is kept for, or stands
 * before it. */
bool reserve_allows(const struct node *n, const struct shape *s, struct stamp now);
bool reserve_is_known(int64_t until); /* only what ends by a time limit is in the way */
void reserve_drop(struct model *m, struct shape *s); /* harmless when there is none */
/* it stands for one job more, unless it is a gang's */
void reserve_claim(struct model *m, struct shape *s, struct node *n);
void reserve_claimed(struct model *m, struct shape *s); /* all nodes of one job more are claimed */
/* a job of it is placed there: harmless without claims */
void reserve_used(struct model *m, struct shape *s, struct node *n);
/* there are no more claims than jobs for them */
void reserve_trim(struct model *m, struct shape *s);
/* for others, who do not yield it */
bool reserve_is_taken(const struct node *n, const struct shape *s);
/* Machines for it that are on their way or may be launched, at most as many as it needs. */
int32_t reserve_to_come(
    const struct model *m, const struct shape *s, const struct pool *pool, struct stamp now);
/* the queue has another order: who is not among the first any more loses it */
void reserve_reorder(struct model *m);
/* something there ends earlier than was known */
void reserve_relaxed(struct model *m, struct node *n);
/* who it is kept for may have to give it up to others now */
void reserve_may_yield(struct model *m, struct node *n);
/* nothing there delays who the node is kept for, if it is */
bool reserve_holds(const struct node *n);
/* A job that stood there in the queue was placed: what it goes before is dropped unless it still
 * holds. */
void reserve_overridden(struct model *m, struct node *n, struct place by, bool was_owed);

#endif
