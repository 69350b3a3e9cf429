/* SPDX-License-Identifier: Apache-2.0
 *
 * Access of other folders to this folder's part of the model.
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_ACCESS_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_PLACEMENT_ACCESS_H

#include "scheduler/core/placement/rack_options.h"
#include "scheduler/core/model/state.h"

static inline size_t constraints_count(const struct model *m)
{
    return map_size(&m->placement.constraints);
}
static inline size_t licences_count(const struct model *m)
{
    return m->placement.n_licences;
}
static inline const struct licence *licence_at(const struct model *m, size_t index)
{
    return &m->placement.licences[index];
}
static inline size_t licence_index(const struct licence *l, const struct model *m)
{
    return (size_t)(l - m->placement.licences);
}
static inline size_t racks_count(const struct model *m)
{
    return m->placement.n_racks;
}
static inline const struct rack *rack_at(const struct model *m, size_t index)
{
    return &m->placement.racks[index];
}
/* By index; NULL where there is none. */
static inline struct maintenance *const *maintenance_all(const struct model *m)
{
    return m->placement.maintenance;
}
/* Shapes with a search for nodes to reserve; some may have reservations. */
static inline const struct list *reserve_shapes(const struct model *m)
{
    return &m->placement.reserving;
}

#endif
