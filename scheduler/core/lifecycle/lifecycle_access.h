/* SPDX-License-Identifier: Apache-2.0
 *
 * Access of other folders to this folder's part of the model.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_ACCESS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_LIFECYCLE_ACCESS_H

#include "scheduler/core/model/state.h"

/* Lists of nodes, ordered as struct lifecycle_state says. */
static inline const struct list *nodes_by_seen(const struct model *m)
{
    return &m->lifecycle.by_seen;
}
static inline const struct list *nodes_by_growth(const struct model *m)
{
    return &m->lifecycle.by_growth;
}
static inline const struct list *nodes_noticed(const struct model *m)
{
    return &m->lifecycle.noticed;
}
static inline const struct list *nodes_drained(const struct model *m)
{
    return &m->lifecycle.drained;
}
static inline int64_t nodes_drains(const struct model *m, enum drain_cause cause)
{
    return m->lifecycle.drains[cause];
}
static inline const struct list *nodes_lost(const struct model *m)
{
    return &m->lifecycle.lost;
}
static inline int64_t nodes_n_lost(const struct model *m)
{
    return m->lifecycle.n_nodes_lost;
}
/* Jobs that wait for more nodes. */
static inline const struct list *gang_resizing(const struct model *m)
{
    return &m->lifecycle.gang_resizes;
}
/* Checkpoints of a job that ended; may be NULL. */
static inline struct ckpt_gc *ckpt_gc_of(const struct model *m, int64_t job)
{
    return map_get(&m->lifecycle.ckpt_gc, job);
}
/* Ended jobs whose cleaning waits for its time. */
static inline size_t ckpt_gc_n_due(const struct model *m)
{
    return (size_t)m->lifecycle.ckpt_gc_due.n;
}
/* Ended jobs with checkpoints to delete; messages to deliver. */
static inline int64_t ckpt_gc_n_open(const struct model *m)
{
    return (int64_t)map_size(&m->lifecycle.ckpt_gc) - m->lifecycle.n_only_measured;
}
static inline int64_t notify_n_outbox(const struct model *m)
{
    return (int64_t)m->lifecycle.outbox.n;
}

#endif
