/* SPDX-License-Identifier: Apache-2.0
 *
 * Maintenance reservations: nodes, or a pool, that are to be empty for a time. Before it, a job
 * that cannot be saved is placed there only if its time limit ends before the start. At the start,
 * jobs that can be saved are saved, stopped and queued again, as by a drain; other jobs that still
 * run, because they were placed before the reservation was made or have a new time limit, run on.
 * Meanwhile only jobs of the named users and teams are placed, and machines of a reserved pool are
 * launched only for them. Start and end are decisions (EV_RESERVATION_DUE).
 *
 * Not to be confused with reserve.h, which keeps nodes for jobs at the head of the queue.
 *
 * Invariants:
 *  1. A bit of `maintenance` of a node or a pool is set exactly while the reservation with that
 *     index covers it.
 *  2. Time alone only makes a reservation stricter until its end, which counts as growth of its
 *     nodes. The planner's memory relies on this (plan.c).
 */
#ifndef BELAY_SCHEDULER_CORE_PLACEMENT_MAINTENANCE_H
#define BELAY_SCHEDULER_CORE_PLACEMENT_MAINTENANCE_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

struct maintenance {
    struct maintenance_row row;
    const struct time_zone *zone; /* of the row; UTC if this machine does not have it */
};

/* 1 << i: jobs of the account may run during the reservation with that index. */
uint64_t maintenance_open_to(const struct model *m, const struct account *a);

/* Whether reservations allow a job of the shape to be placed on the node at that time. */
bool maintenance_allows(const struct node *n, const struct shape *s, struct wall at);
/* Whether they allow a machine of the pool that is ready for such jobs at that time. */
bool maintenance_allows_machine(const struct pool *p, const struct shape *s, struct wall ready_at);
/* Whether they allow a machine of the pool that no job has asked for. */
bool maintenance_allows_base(const struct model *m, const struct pool *p, struct wall ready_at);
/* The first reservation that does not allow it; NULL: all do. */
const struct maintenance *maintenance_of_node(
    const struct node *n, const struct shape *s, struct wall at);
const struct maintenance *maintenance_of_pool(
    const struct pool *p, const struct shape *s, struct wall ready_at);

/* For forecasts: the first moment from `at` on at which the reservations of the mask, repeated as
 * they will be, allow a job of the shape to begin. WALL_NEVER: none of the next ones. */
struct wall maintenance_earliest(
    uint64_t mask, const struct shape *s, struct wall at, bool needs_machine);

/* Sets which reservations cover a node, or a pool. */
void maintenance_cover(const struct model *m, struct node *n);
void maintenance_cover_pool(const struct model *m, struct pool *p);
void maintenance_deinit(struct model *m);
/* As model_load_*: after pools and nodes, before jobs. */
int maintenance_load(struct model *m, const struct maintenance_row *r, struct err *e);
int maintenance_check(const struct model *m, struct err *e); /* for model_check */
/* When the next start or end is due, with the event; MONO_NONE: never. */
struct mono maintenance_due(const struct model *m, struct stamp now, struct event *ret_event);

/* ---- for users ---- */

/* By index, below MAINTENANCES_MAX; NULL where there is none. */
const struct maintenance *core_maintenance(const struct model *m, size_t index);
bool core_maintenance_covers(const struct maintenance_row *r, const struct node_row *n);
/* "2026-11-29 02:00 to 04:00 (Europe/Berlin)" */
#define MAINTENANCE_PERIOD_MAX 128
void core_maintenance_period(const struct maintenance *r, char out[MAINTENANCE_PERIOD_MAX]);
/* "2026-11-29 02:00" in its zone, with seconds where there are some */
void core_maintenance_moment(const struct maintenance *r, struct wall at, char out[ZONE_TIME_MAX]);
/* Running jobs on its nodes that will not be stopped at its start and may still run then. */
size_t core_maintenance_in_the_way(
    const struct model *m, const struct maintenance *r, int64_t *ret_jobs, size_t max);

#endif
