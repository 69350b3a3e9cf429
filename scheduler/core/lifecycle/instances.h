/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools, offers and instances in the model.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_INSTANCES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_INSTANCES_H

#include "scheduler/core/model/model.h"

struct model;

struct pool *pool_add(struct model *m, const struct pool_row *r);
bool instance_is_coming(const struct instance *i); /* INTENDED, QUEUED or LAUNCHED */
void instance_index(struct model *m, struct instance *i);
void instance_unindex(struct model *m, struct instance *i);
void instance_move(struct model *m, struct instance *i, enum instance_state to, struct stamp now);
void instance_set_provider_id(struct model *m, struct instance *i, const char *provider_id);
/* may return NULL */
struct offer *offer_find(
    const struct pool *p, const char *zone, const char *type, enum market market);
/* inserts it at its position in the pool's order */
void offer_sort_in(struct pool *p, struct offer *o);
void offer_note_size(struct offer *o, const struct resources *total);

#endif
