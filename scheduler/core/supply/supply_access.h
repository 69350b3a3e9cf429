/* SPDX-License-Identifier: Apache-2.0
 *
 * Access of other folders to this folder's part of the model.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_SUPPLY_ACCESS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_SUPPLY_ACCESS_H

#include "scheduler/core/model/state.h"

/* The attempt starts on an on-demand machine. */
static inline void supply_note_costly(struct model *m, struct attempt *a)
{
    list_push_back(&m->supply.costly, &a->costly);
}
/* Attempts on on-demand machines, longest first. */
static inline const struct list *supply_costly(const struct model *m)
{
    return &m->supply.costly;
}

#endif
