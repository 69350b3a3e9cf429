/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools, offers and instances in the model.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_INSTANCES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_INSTANCES_H

#include "scheduler/core/model/model.h"

struct model;

struct pool *pool_add(struct model *m, const struct pool_row *r);
bool instance_is_coming(const struct instance *i); /* INTENDED or LAUNCHED */
void instance_index(struct model *m, struct instance *i);
void instance_unindex(struct model *m, struct instance *i);
void instance_move(struct model *m, struct instance *i, enum instance_state to, struct stamp now);
void instance_set_provider_id(struct model *m, struct instance *i, const char *provider_id);
/* or NULL */
struct offer *offer_find(
    const struct pool *p, const char *zone, const char *type, enum market market);
void offer_place(struct pool *p, struct offer *o); /* into the pool's order */
/* It gave no machine, and why: avoided for a while that doubles, or at once the longest. Returns
 * for how long, in ms.
 */
int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why);
/* The instance's life, as far as it says something of its offer: one that was reclaimed before it
 * had run for as long as it took to boot was paid for its boot alone, and its offer is avoided as
 * if it had refused. One that ran for longer ends that series. */
void offer_note_life(struct model *m, const struct instance *i, struct stamp now);
void offer_saw(struct offer *o, const struct resources *total);

#endif
