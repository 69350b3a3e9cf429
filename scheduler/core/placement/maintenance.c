/* SPDX-License-Identifier: Apache-2.0
 *
 * See maintenance.h. What reservations allow is judged by the shape, which has a pointer to all of
 * them. The decisions and requests about them are in maintenance_events.c.
 */
#include "scheduler/core/placement/maintenance.h"

#include "base/minmax.h"
#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/windows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A machine for jobs that can be saved is worth its launch if they may run this long on it. */
#define MACHINE_RUNS_MS INT64_C(600000)

const char *const maintenance_state_names[] = {"planned", "open", NULL};

uint64_t maintenance_open_to(const struct model *m, const struct account *a)
{
    uint64_t mask = 0;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = m->placement.maintenance[i];
        if (r && ((r->row.users[0] && names_has(r->row.users, a->row.user)) ||
                     (r->row.teams[0] && names_has(r->row.teams, a->team->name))))
            mask |= UINT64_C(1) << i;
    }
    return mask;
}

/* ---- what is allowed ---- */

/* needs_ms: time that a job that can be saved must have before the start. */
static bool allows(
    const struct maintenance_row *r, const struct shape *s, struct wall at, int64_t needs_ms)
{
    if (r->state == MAINTENANCE_OPEN || at.ms >= r->from_at.ms)
        return false;
    if (s->can_drain)
        return at.ms + needs_ms <= r->from_at.ms;
    return s->limit_ms > 0 && at.ms + s->limit_ms <= r->from_at.ms;
}

static const struct maintenance *first_against(
    uint64_t mask, const struct shape *s, struct wall at, int64_t needs_ms)
{
    const struct maintenance *first = NULL;
    for (mask &= ~s->open_to; mask; mask &= mask - 1) {
        const struct maintenance *r = s->maintenance[__builtin_ctzll(mask)];
        if (!allows(&r->row, s, at, needs_ms) &&
            (!first || r->row.from_at.ms < first->row.from_at.ms))
            first = r;
    }
    return first;
}

const struct maintenance *maintenance_of_node(
    const struct node *n, const struct shape *s, struct wall at)
{
    return n->maintenance ? first_against(n->maintenance, s, at, 0) : NULL;
}

const struct maintenance *maintenance_of_pool(
    const struct pool *p, const struct shape *s, struct wall ready_at)
{
    return p->maintenance ? first_against(p->maintenance, s, ready_at, MACHINE_RUNS_MS) : NULL;
}

bool maintenance_allows(const struct node *n, const struct shape *s, struct wall at)
{
    return !maintenance_of_node(n, s, at);
}

bool maintenance_allows_machine(const struct pool *p, const struct shape *s, struct wall ready_at)
{
    return !maintenance_of_pool(p, s, ready_at);
}

bool maintenance_allows_base(const struct model *m, const struct pool *p, struct wall ready_at)
{
    for (uint64_t mask = p->maintenance; mask; mask &= mask - 1) {
        const struct maintenance_row *r = &m->placement.maintenance[__builtin_ctzll(mask)]->row;
        if (r->state == MAINTENANCE_OPEN || ready_at.ms + MACHINE_RUNS_MS > r->from_at.ms)
            return false;
    }
    return true;
}

/* The begin of its time that is not over at that moment, or of its last one. */
static int64_t begin_ms(const struct maintenance_row *r, struct wall at)
{
    int64_t from_ms = r->from_at.ms;
    if (r->is_weekly && at.ms >= from_ms + r->for_ms)
        from_ms += ((at.ms - from_ms - r->for_ms) / MAINTENANCE_WEEK_MS + 1) * MAINTENANCE_WEEK_MS;
    return from_ms;
}

/* When the reservations that exclude a begin at that moment are over; the moment if none does;
 * WALL_NEVER if one excludes all later begins too. */
static struct wall excluded_until(
    uint64_t mask, const struct shape *s, struct wall at, int64_t runs_ms)
{
    struct wall until = at;
    for (mask &= ~s->open_to; mask; mask &= mask - 1) {
        const struct maintenance_row *r = &s->maintenance[__builtin_ctzll(mask)]->row;
        int64_t from_ms = begin_ms(r, at), end_ms = from_ms + r->for_ms;
        if (at.ms >= end_ms || at.ms + runs_ms <= from_ms)
            continue;
        if (r->is_weekly && runs_ms > MAINTENANCE_WEEK_MS - r->for_ms)
            return WALL_NEVER; /* it does not fit between two weeks */
        until.ms = max_i64(until.ms, end_ms);
    }
    return until;
}

struct wall maintenance_earliest(
    uint64_t mask, const struct shape *s, struct wall at, bool needs_machine)
{
    /* a job without a limit never ends by itself */
    int64_t runs_ms = s->can_drain      ? (needs_machine ? MACHINE_RUNS_MS : 1)
                      : s->limit_ms > 0 ? s->limit_ms
                                        : MAINTENANCE_AHEAD_MAX_MS;
    for (int tries = 0; mask && tries <= MAINTENANCES_MAX; tries++) {
        struct wall until = excluded_until(mask, s, at, runs_ms);
        if (until.ms == at.ms || until.ms == WALL_NEVER.ms)
            return until;
        at = until;
    }
    return mask ? WALL_NEVER : at;
}

/* ---- which nodes ---- */

bool core_maintenance_covers(const struct maintenance_row *r, const struct node_row *n)
{
    return r->pool[0] ? str_eq(r->pool, n->pool) : hosts_has(r->nodes, n->name);
}

void maintenance_cover(const struct model *m, struct node *n)
{
    n->maintenance = 0;
    n->is_closed = false;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = m->placement.maintenance[i];
        if (!r || !core_maintenance_covers(&r->row, &n->row))
            continue;
        n->maintenance |= UINT64_C(1) << i;
        n->is_closed |= r->row.state == MAINTENANCE_OPEN && !r->row.users[0] && !r->row.teams[0];
    }
}

void maintenance_cover_pool(const struct model *m, struct pool *p)
{
    p->maintenance = 0;
    p->is_closed = false;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = m->placement.maintenance[i];
        if (!r || !str_eq(r->row.pool, p->row.name))
            continue;
        p->maintenance |= UINT64_C(1) << i;
        p->is_closed |= r->row.state == MAINTENANCE_OPEN;
    }
}

void maintenance_deinit(struct model *m)
{
    for (size_t i = 0; i < MAINTENANCES_MAX; i++)
        free(m->placement.maintenance[i]);
}

int maintenance_check(const struct model *m, struct err *e)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        struct node want = {.row = n->row};
        maintenance_cover(m, &want);
        if (want.maintenance != n->maintenance || want.is_closed != n->is_closed)
            return err_set(e, ERR_INTERNAL,
                "node %" PRId64 " is not covered by the reservations that name it", n->row.id);
    }
    return 0;
}

/* ---- for users ---- */

const struct maintenance *core_maintenance(const struct model *m, size_t index)
{
    return index < MAINTENANCES_MAX ? m->placement.maintenance[index] : NULL;
}

void core_maintenance_moment(const struct maintenance *r, struct wall at, char out[ZONE_TIME_MAX])
{
    zone_format(r->zone, at, out);
    if (strlen(out) < sizeof "2026-11-29T02:00:00" - 1)
        return;
    out[10] = ' ';
    out[strncmp(out + 16, ":00", 3) == 0 ? 16 : 19] = '\0';
}

void core_maintenance_period(const struct maintenance *r, char out[MAINTENANCE_PERIOD_MAX])
{
    char from[ZONE_TIME_MAX], until[ZONE_TIME_MAX];
    core_maintenance_moment(r, r->row.from_at, from);
    core_maintenance_moment(r, maintenance_until(&r->row), until);
    text_format(out, MAINTENANCE_PERIOD_MAX, "%s to %s (%s)", from,
        strncmp(from, until, 11) == 0 ? until + 11 : until, r->zone->name);
}

static bool is_in_the_way(const struct attempt *a, const struct maintenance_row *r)
{
    const struct job_row *j = &a->job->row;
    struct wall since = wall_is_set(a->row.started_at) ? a->row.started_at : a->row.assigned_at;
    return !job_can_drain(j) &&
           (j->spec.time_limit_ms == 0 || since.ms + j->spec.time_limit_ms > r->from_at.ms);
}

size_t core_maintenance_in_the_way(
    const struct model *m, const struct maintenance *r, int64_t *ret_jobs, size_t max)
{
    size_t n = 0;
    LIST_FOREACH (model_nodes(m), ln) {
        const struct node *node = LIST_ENTRY(ln, struct node, in_all);
        if (!core_maintenance_covers(&r->row, &node->row))
            continue;
        LIST_FOREACH (&node->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            bool is_known = false;
            for (size_t k = 0; k < n; k++)
                is_known |= ret_jobs[k] == a->row.job;
            if (n < max && !is_known && is_in_the_way(a, &r->row))
                ret_jobs[n++] = a->row.job;
        }
    }
    return n;
}
