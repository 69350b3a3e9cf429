/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations as events (maintenance.h): requests to make and remove one, and the decisions at its
 * start and end.
 *
 * Start and end are compared with the wall clock. A start that comes late, because belayd was down,
 * is made as long as the time is not over; a weekly reservation skips times that are over. Each
 * decision is stored, so a restart repeats none.
 */
#include "scheduler/core/placement/maintenance.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/attempts.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/policy.h"
#include "scheduler/core/queue/queue.h"
#include <inttypes.h>
#include <stdlib.h>

#define PAST_MS INT64_C(60000) /* a start at most this long ago is one now */

/* ---- nodes ---- */

static void drop_reserve(struct model *m, struct node *n, struct stamp now)
{
    struct shape *s = n->reserved_for;
    if (s && !maintenance_allows(n, s, now.wall))
        reserve_drop(m, s);
}

/* Nodes and pools follow a change of the reservation; grew: it may allow more than before. */
static void renew(struct model *m, const struct maintenance_row *r, bool grew, struct stamp now)
{
    struct pool *p = r->pool[0] ? model_pool(m, r->pool) : NULL;
    if (p)
        maintenance_cover_pool(m, p);
    queue_reclassify(m);
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!core_maintenance_covers(r, &n->row))
            continue;
        maintenance_cover(m, n);
        drop_reserve(m, n, now);
        if (n->is_closed)
            gang_node_leaves(m, n);
        node_refresh(m, n, grew);
    }
    model_note_change(m);
}

static void note_begin(struct model *m, const struct maintenance *r, struct stamp now)
{
    char period[MAINTENANCE_PERIOD_MAX];
    core_maintenance_period(r, period);
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (core_maintenance_covers(&r->row, &n->row))
            history(m, now, "reservation", (struct history_of){.node = n},
                "%s is reserved for maintenance (%s) from %s%s%.80s", n->row.name, r->row.name,
                period, r->row.reason[0] ? ": " : "", r->row.reason);
    }
}

static void note_end(struct model *m, const struct maintenance_row *r, struct stamp now)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (core_maintenance_covers(r, &n->row))
            history(m, now, "reservation-over", (struct history_of){.node = n},
                "reservation %s of %s is over%s", r->name, n->row.name,
                n->is_closed ? "; another one continues" : "");
    }
}

/* ---- start ---- */

/* Saves and stops what may not run meanwhile; what cannot be saved runs on. */
static void empty_node(struct model *m, const struct node *n, const struct maintenance_row *r,
    uint64_t bit, struct stamp now)
{
    LIST_FOREACH (&n->attempts, l) {
        struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if ((a->job->shape->open_to & bit) || a->row.state == ATTEMPT_STOPPING)
            continue;
        bool stops = job_can_drain(&a->job->row);
        history(m, now, "reservation", (struct history_of){.attempt = a},
            stops ? "%s is reserved for maintenance, %s: it is saved, stopped and queued again"
                  : "%s is reserved for maintenance, %s, but it cannot be saved: it runs on",
            n->row.name, r->name);
        if (stops)
            job_stop(m, a->job, END_DRAINED, true);
    }
}

static void open_it(struct model *m, struct maintenance *r, uint64_t bit, struct stamp now)
{
    r->row.state = MAINTENANCE_OPEN;
    *ADD_ROW(m, reservations) = r->row;
    renew(m, &r->row, false, now);
    note_begin(m, r, now);
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (core_maintenance_covers(&r->row, &n->row))
            empty_node(m, n, &r->row, bit, now);
    }
}

/* ---- end ---- */

/* The next weekly time that is not over. */
static void advance(struct maintenance *r, struct wall now)
{
    do {
        int64_t at_s = r->row.from_at.ms / 1000;
        int64_t local_s = at_s + zone_offset_s(r->zone, at_s) + MAINTENANCE_WEEK_MS / 1000;
        r->row.from_at.ms =
            SECONDS_MS(zone_from_local_s(r->zone, local_s)) + r->row.from_at.ms % 1000;
    } while (maintenance_until(&r->row).ms <= now.ms);
}

static void end_it(struct model *m, size_t index, bool for_good, struct stamp now)
{
    struct maintenance *r = m->placement.maintenance[index];
    bool was_open = r->row.state == MAINTENANCE_OPEN;
    struct maintenance_row row = r->row;
    if (r->row.is_weekly && !for_good) {
        r->row.state = MAINTENANCE_PLANNED;
        advance(r, now.wall);
        row = r->row;
    } else {
        row.is_over = true;
        m->placement.maintenance[index] = NULL;
        free(r);
    }
    *ADD_ROW(m, reservations) = row;
    renew(m, &row, true, now);
    model_note_rewind(m);
    model_note_retry_all(m);
    if (was_open)
        note_end(m, &row, now);
}

/* ---- decisions ---- */

static struct wall due_of(const struct maintenance_row *r)
{
    return r->state == MAINTENANCE_OPEN ? maintenance_until(r) : r->from_at;
}

struct mono maintenance_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct maintenance_row *first = NULL;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = m->placement.maintenance[i];
        if (r && (!first || due_of(&r->row).ms < due_of(first).ms))
            first = &r->row;
    }
    if (!first)
        return MONO_NONE;
    *ret_event = (struct event){.type = EV_RESERVATION_DUE, .reservation_due.id = first->id};
    return stamp_until(now, due_of(first));
}

/* MAINTENANCES_MAX: none */
static size_t free_index(const struct model *m)
{
    size_t i = 0;
    while (i < MAINTENANCES_MAX && m->placement.maintenance[i])
        i++;
    return i;
}

/* MAINTENANCES_MAX: none */
static size_t index_of(const struct model *m, int64_t id)
{
    size_t i = 0;
    while (i < MAINTENANCES_MAX &&
           !(m->placement.maintenance[i] && m->placement.maintenance[i]->row.id == id))
        i++;
    return i;
}

int apply_reservation_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    size_t i = index_of(m, ev->reservation_due.id);
    struct maintenance *r = i < MAINTENANCES_MAX ? m->placement.maintenance[i] : NULL;
    if (!r || due_of(&r->row).ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT, "no decision on reservation %" PRId64 " is due (any more)",
            ev->reservation_due.id);
    ret_outcome->id = r->row.id;
    if (maintenance_until(&r->row).ms <= ev->now.wall.ms)
        end_it(m, i, false, ev->now);
    else
        open_it(m, r, UINT64_C(1) << i, ev->now);
    return 0;
}

/* ---- requests ---- */

static int check_times(const struct maintenance_row *r, struct wall now, struct err *e)
{
    if (r->from_at.ms < now.ms - PAST_MS)
        return err_set(e, ERR_INVALID, "from: the start of the reservation is in the past");
    if (r->for_ms < MAINTENANCE_MIN_MS)
        return err_set(e, ERR_INVALID, "for: a reservation is at least 1 minute long");
    if (r->is_weekly && r->for_ms >= MAINTENANCE_WEEK_MS)
        return err_set(e, ERR_INVALID, "for: a weekly reservation is shorter than 7 days");
    if (r->from_at.ms - now.ms > MAINTENANCE_AHEAD_MAX_MS ||
        r->for_ms > MAINTENANCE_AHEAD_MAX_MS - (r->from_at.ms - now.ms))
        return err_set(e, ERR_INVALID, "from: a reservation ends at most a year (366 days) ahead");
    return 0;
}

static int check_nodes(const struct model *m, const struct maintenance_row *r, struct err *e)
{
    struct hosts_at at = {0};
    char name[HOSTS_NAME_MAX];
    int64_t n = 0;
    if (!r->nodes[0] == !r->pool[0])
        return err_set(e, ERR_INVALID, "expected one of nodes and pool");
    if (r->pool[0])
        return model_pool(m, r->pool)
                   ? 0
                   : err_set(e, ERR_NOT_FOUND, "pool: there is no pool '%s'", r->pool);
    if (hosts_check(r->nodes, &n, e) != 0)
        return err_wrap(e, "nodes");
    while (hosts_next(r->nodes, &at, name))
        if (!model_node_named(m, name))
            return err_set(
                e, ERR_NOT_FOUND, "nodes: there is no node '%s' (belay nodes lists them)", name);
    return 0;
}

static int check_who(const struct model *m, const struct maintenance_row *r, struct err *e)
{
    const struct queue_policy *p = model_policy(m);
    char team[CORE_NAME_MAX];
    int rc = r->users[0] ? names_check(r->users, sizeof r->users, "a user's name", e) : 0;
    if (rc == 0 && r->teams[0])
        rc = names_check(r->teams, sizeof r->teams, "a team's name", e);
    for (const char *at = r->teams;
         rc == 0 && p->n_teams > 0 && names_next(&at, team, sizeof team);) {
        bool is_known = false;
        for (size_t k = 0; k < p->n_teams; k++)
            is_known |= str_eq(p->teams[k].name, team);
        if (!is_known)
            rc = err_set(e, ERR_NOT_FOUND, "teams: there is no team '%s'", team);
    }
    return rc;
}

static int check(
    const struct model *m, const struct maintenance_row *r, struct wall now, struct err *e)
{
    int rc = name_check(r->name, CORE_NAME_MAX - 1, "a reservation's name", e);
    for (size_t i = 0; rc == 0 && i < MAINTENANCES_MAX; i++)
        if (m->placement.maintenance[i] && str_eq(m->placement.maintenance[i]->row.name, r->name))
            rc = err_set(e, ERR_CONFLICT,
                "there is a reservation %s already: belay reservation remove %s removes it",
                r->name, r->name);
    if (rc == 0)
        rc = check_times(r, now, e);
    if (rc == 0)
        rc = check_nodes(m, r, e);
    return rc ? rc : check_who(m, r, e);
}

static int find_zone(
    const struct model *m, const char *name, const struct time_zone **ret_zone, struct err *e)
{
    struct zones none = {0};
    return zones_load(m->options.zones ? m->options.zones : &none, name, ret_zone, e);
}

int apply_reservation_add(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct maintenance_row *want = ev->reservation;
    const struct time_zone *zone;
    size_t i = free_index(m);
    int rc = check(m, want, ev->now.wall, e);
    if (rc == 0)
        rc = find_zone(m, want->zone, &zone, e);
    if (rc == 0 && i == MAINTENANCES_MAX)
        rc = err_set(e, ERR_CONFLICT,
            "there are %d reservations, which is the maximum: remove one (belay reservation "
            "remove)",
            MAINTENANCES_MAX);
    if (rc)
        return rc;
    struct maintenance *r = mem_alloc(sizeof *r);
    *r = (struct maintenance){.row = *want, .zone = zone};
    r->row.id = NEXT_ID(m, reservation);
    r->row.state = MAINTENANCE_PLANNED;
    r->row.created_at = ev->now.wall;
    m->placement.maintenance[i] = r;
    *ADD_ROW(m, reservations) = r->row;
    renew(m, &r->row, false, ev->now);
    char period[MAINTENANCE_PERIOD_MAX];
    core_maintenance_period(r, period);
    history(m, ev->now, "reservation", (struct history_of){0}, "%s reserves %s%.60s from %s%s",
        r->row.by, r->row.pool[0] ? "pool " : "", r->row.pool[0] ? r->row.pool : r->row.nodes,
        period, r->row.is_weekly ? ", every week" : "");
    ret_outcome->id = r->row.id;
    return 0;
}

int apply_reservation_remove(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    size_t i = index_of(m, ev->reservation_remove.id);
    if (i == MAINTENANCES_MAX)
        return err_set(e, ERR_NOT_FOUND, "there is no reservation %" PRId64 " (any more)",
            ev->reservation_remove.id);
    ret_outcome->id = ev->reservation_remove.id;
    history(m, ev->now, "reservation-over", (struct history_of){0}, "%s removes reservation %s",
        ev->reservation_remove.by, m->placement.maintenance[i]->row.name);
    end_it(m, i, true, ev->now);
    return 0;
}

int maintenance_load(struct model *m, const struct maintenance_row *r, struct err *e)
{
    struct err unused;
    size_t i = free_index(m);
    if (i == MAINTENANCES_MAX || r->state < MAINTENANCE_PLANNED || r->state > MAINTENANCE_OPEN)
        return err_set(e, ERR_CORRUPT,
            "stored reservation %" PRId64 " has no known state, or there are more than %d", r->id,
            MAINTENANCES_MAX);
    struct maintenance *loaded = mem_alloc(sizeof *loaded);
    *loaded = (struct maintenance){.row = *r, .zone = &zone_utc};
    (void)find_zone(m, r->zone, &loaded->zone, &unused); /* this machine may not have it */
    m->placement.maintenance[i] = loaded;
    SAW_ID(m, reservation, r->id);
    struct pool *p = r->pool[0] ? model_pool(m, r->pool) : NULL;
    if (p)
        maintenance_cover_pool(m, p);
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!core_maintenance_covers(r, &n->row))
            continue;
        maintenance_cover(m, n);
        node_refresh(m, n, false);
    }
    return 0;
}
