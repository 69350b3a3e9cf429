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
/* may return NULL */
struct offer *offer_find(
    const struct pool *p, const char *zone, const char *type, enum market market);
/* inserts it at its position in the pool's order */
void offer_place(struct pool *p, struct offer *o);
/* It provided no machine, for this reason: it is avoided for a time that doubles, or at once for
 * the maximum. Returns that time in ms. */
int64_t offer_avoid(
    struct model *m, struct offer *o, struct stamp now, bool longest, const char *why);
/* Evaluates the life of an instance for its offer. An instance that was reclaimed before it had run
 * for as long as its boot took was paid for the boot alone: its offer is avoided like after a
 * refusal. One that ran longer ends that series. */
void offer_note_life(struct model *m, const struct instance *i, struct stamp now);
void offer_saw(struct offer *o, const struct resources *total);

#endif
