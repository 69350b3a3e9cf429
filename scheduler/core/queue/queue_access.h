/* SPDX-License-Identifier: Apache-2.0
 *
 * Access of other folders to this folder's part of the model (struct queue_state).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_QUEUE_ACCESS_H
#define BELAY_SCHEDULER_CORE_QUEUE_QUEUE_ACCESS_H

#include "scheduler/core/model/state.h"

static inline const struct list *queue_by_arrival(const struct model *m)
{
    return &m->queue.by_arrival;
}
static inline const struct list *queue_gangs(const struct model *m)
{
    return &m->queue.gangs;
}
static inline int64_t queue_n_gangs(const struct model *m)
{
    return m->queue.n_gangs;
}
static inline int64_t queue_n_pending(const struct model *m)
{
    return m->queue.n_pending;
}
static inline int64_t queue_n_waiting(const struct model *m)
{
    return m->queue.n_waiting;
}
static inline int64_t queue_n_constrained(const struct model *m)
{
    return m->queue.n_constrained;
}
static inline size_t queue_n_demand_classes(const struct model *m)
{
    return smap_size(&m->queue.demand_classes);
}
static inline size_t queue_n_shapes(const struct model *m)
{
    return smap_size(&m->queue.shapes);
}
static inline int64_t queue_next_class_id(const struct model *m)
{
    return m->queue.next_demand_class;
}
static inline const struct list *share_teams(const struct model *m)
{
    return &m->queue.all_teams;
}
static inline int64_t shares_n_queued_accounts(const struct model *m)
{
    return m->queue.n_queued_accounts;
}
static inline const struct list *quota_teams(const struct model *m)
{
    return &m->queue.quotas;
}
static inline int64_t limits_n_allowances(const struct model *m)
{
    return m->queue.n_allowances;
}
static inline int64_t limits_n_limited(const struct model *m)
{
    return m->queue.n_limited;
}
/* index: in the options */
static inline const struct qos *qos_at(const struct model *m, size_t index)
{
    return &m->queue.qos[index];
}
static inline size_t budgets_count(const struct model *m)
{
    return m->queue.n_budgets;
}
static inline const struct budget *budgets_at(const struct model *m, size_t index)
{
    return &m->queue.budgets[index];
}
/* When the lease of a node ends that was last seen then (settings.c). */
struct mono lease_ends(const struct model *m, struct mono last_seen);
/* Budgets and caps of jobs, and cron entries, that have a time at which they are due. */
static inline size_t budgets_n_due(const struct model *m)
{
    return (size_t)m->queue.budgets_due.n;
}
static inline size_t crons_n_due(const struct model *m)
{
    return (size_t)m->queue.crons_due.n;
}

#endif
