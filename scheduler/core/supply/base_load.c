/* SPDX-License-Identifier: Apache-2.0
 *
 * The base load in force is a decision (EV_BASE_LOAD), so that the planner compares numbers and
 * looks at no calendar. It is the highest that holds between now and one boot later: machines for a
 * window are launched before it opens, and a window that is about to close, or to open with less,
 * ends nothing early. A boot is assumed to take as long as the worst one expected of the pool's
 * offers (offers.c); if any of them has observed boots, only those count.
 *
 * Of several open windows the highest value applies; while one is open, the pool's plain values do
 * not. Neither the values nor the time of the next decision are stored: machines are, so a restart
 * counts those that were launched for a window and launches none twice.
 *
 * Machines are launched within all limits of the pool and of all pools, and not while a budget for
 * everything that runs in the pool is used up (launch.c). What is launched counts as up or coming
 * until it is lost, drained or under notice; then another is launched.
 */
#include "scheduler/core/supply/base_load.h"

#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/planner.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <string.h>

/* Changes of windows examined within one boot: more cannot matter. */
#define CHANGES_MAX (2 * POOL_WINDOWS_MAX)

static struct base_values higher(struct base_values a, struct base_values b)
{
    bool is_more =
        b.min_nodes > a.min_nodes || (b.min_nodes == a.min_nodes && b.warm_nodes > a.warm_nodes);
    return (struct base_values){.min_nodes = (int32_t)max_i64(a.min_nodes, b.min_nodes),
        .warm_nodes = (int32_t)max_i64(a.warm_nodes, b.warm_nodes),
        .window = is_more ? b.window : a.window};
}

static struct base_values within_limit(const struct pool *p, struct base_values v)
{
    v.min_nodes = (int32_t)min_i64(v.min_nodes, pool_nodes_max(p));
    v.warm_nodes = (int32_t)min_i64(v.warm_nodes, pool_nodes_max(p));
    return v;
}

/* By the calendar at that time; *ret_change is when a window opens or closes next, or WALL_NONE. */
static struct base_values values_at(const struct pool *p, struct wall at, struct wall *ret_change)
{
    struct base_values v = {0};
    *ret_change = WALL_NONE;
    for (size_t k = 0; k < p->n_windows; k++) {
        const struct pool_window *w = &p->windows[k];
        struct wall change;
        const struct base_values of = {w->min_nodes, w->warm_nodes, w};
        if (window_is_open(&w->window, at, &change))
            v = v.window ? higher(v, of) : of;
        if (wall_is_set(change) && (!wall_is_set(*ret_change) || change.ms < ret_change->ms))
            *ret_change = change;
    }
    if (!v.window)
        v = (struct base_values){p->row.min_nodes, p->row.warm_nodes, NULL};
    return within_limit(p, v);
}

/* How long before a window opens its machines are launched. */
static int64_t lead_ms(const struct pool *p)
{
    int64_t observed_ms = 0, prior_ms = 0;
    LIST_FOREACH (&p->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        if (o->row.rank == OFFER_WITHDRAWN)
            continue;
        int64_t *of = o->row.boots > 0 ? &observed_ms : &prior_ms;
        *of = max_i64(*of, offer_boot_worst_ms(o));
    }
    int64_t ms = observed_ms > 0 ? observed_ms : prior_ms;
    return p->row.boot_timeout_ms > 0 ? min_i64(ms, p->row.boot_timeout_ms) : ms;
}

/* The highest values from now to one boot later, and when they must be examined again. */
static struct base_values values_ahead(
    const struct pool *p, struct wall now, struct wall *ret_until)
{
    struct wall change;
    struct base_values v = values_at(p, now, &change);
    int64_t lead = lead_ms(p);
    *ret_until = change;
    for (int k = 0; k < CHANGES_MAX && wall_is_set(change) && change.ms - lead <= now.ms; k++)
        v = higher(v, values_at(p, change, &change));
    if (wall_is_set(change) && change.ms - lead > now.ms)
        ret_until->ms = min_i64(ret_until->ms, change.ms - lead);
    return v;
}

/* ---- configuration ---- */

static int resolve(const struct model *m, struct pool_window *v, size_t n, struct err *e)
{
    struct zones none = {0};
    for (size_t k = 0; k < n; k++) {
        int rc =
            zones_load(m->options.zones ? m->options.zones : &none, v[k].tz, &v[k].window.zone, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int base_load_check(const struct model *m, const struct pool_row *r, struct err *e)
{
    struct pool_window v[POOL_WINDOWS_MAX];
    size_t n;
    if (r->min_nodes < 0 || r->min_nodes > POOL_BASE_MAX || r->warm_nodes < 0 ||
        r->warm_nodes > POOL_BASE_MAX)
        return err_set(e, ERR_INVALID, "pool '%s': min_nodes and warm_nodes must be 0 to %d",
            r->name, POOL_BASE_MAX);
    int rc = pool_windows_parse(r->windows, v, &n, e);
    if (rc == 0)
        rc = resolve(m, v, n, e);
    return rc == 0 ? 0 : err_wrap(e, "pool '%s': windows", r->name);
}

/* A stored row may name a zone that the machine no longer has: then the plain values hold. */
void base_load_configure(const struct model *m, struct pool *p)
{
    struct err unused;
    p->n_windows = 0;
    if (p->row.elastic &&
        pool_windows_parse(p->row.windows, p->windows, &p->n_windows, &unused) == 0 &&
        resolve(m, p->windows, p->n_windows, &unused) != 0)
        p->n_windows = 0;
    p->base.examine_at = p->row.elastic ? (struct wall){0} : WALL_NONE;
    if (p->n_windows == 0 && p->row.min_nodes == 0 && p->row.warm_nodes == 0)
        p->base = (struct base_load){.examine_at = WALL_NONE};
}

void base_load_boot_changed(struct pool *p)
{
    if (p->n_windows > 0)
        p->base.examine_at = (struct wall){0};
}

/* ---- the decision ---- */

struct mono base_load_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct pool *first = NULL;
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (wall_is_set(p->base.examine_at) &&
            (!first || p->base.examine_at.ms < first->base.examine_at.ms))
            first = p;
    }
    if (!first)
        return MONO_NONE;
    *ret_event = (struct event){.type = EV_BASE_LOAD, .base_load.pool = first->index};
    return stamp_until(now, first->base.examine_at);
}

static struct pool *pool_at(const struct model *m, int32_t index)
{
    LIST_FOREACH (model_pools(m), l)
        if (LIST_ENTRY(l, struct pool, in_all)->index == index)
            return LIST_ENTRY(l, struct pool, in_all);
    return NULL;
}

int apply_base_load(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct pool *p = pool_at(m, ev->base_load.pool);
    if (!p || !wall_is_set(p->base.examine_at) || p->base.examine_at.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT, "the base load of pool %" PRId32 " is not due (any more)",
            ev->base_load.pool);
    const struct base_load before = p->base;
    struct base_values v = values_ahead(p, ev->now.wall, &p->base.examine_at);
    p->base.min_nodes = v.min_nodes;
    p->base.warm_nodes = v.warm_nodes;
    p->base.is_known = true;
    ret_outcome->id = CORE_ID_NONE;
    if (before.min_nodes == v.min_nodes && before.warm_nodes == v.warm_nodes)
        return 0;
    if (before.is_known)
        history(m, ev->now, "base-load", (struct history_of){.a = v.min_nodes, .b = v.warm_nodes},
            "pool %s keeps %" PRId32 " nodes and %" PRId32 " of them idle (%s%s)", p->row.name,
            v.min_nodes, v.warm_nodes, v.window ? "window " : "outside of its windows",
            v.window ? v.window->window.name : "");
    model_note_change(m);
    return 0;
}

/* ---- counting ---- */

static int64_t count_ready(const struct pool *p)
{
    int64_t n = 0;
    LIST_FOREACH (&p->idle, l)
        n += node_takes_work(LIST_ENTRY(l, struct node, by_state));
    return n;
}

static bool has_base(const struct pool *p)
{
    return !p->is_closed && (p->base.min_nodes > 0 || p->base.warm_nodes > 0);
}

int64_t base_load_spare(const struct pool *p)
{
    return has_base(p) ? min_i64(p->n_up - p->base.min_nodes, count_ready(p) - p->base.warm_nodes)
                       : INT64_MAX;
}

bool base_load_lacks(const struct model *m)
{
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (has_base(p) && (p->n_up + p->n_coming < p->base.min_nodes ||
                               count_ready(p) + p->n_coming < p->base.warm_nodes))
            return true;
    }
    return false;
}

/* ---- launches ---- */

static bool is_empty(const struct bin *b)
{
    return !b->node && b->free.cpus == b->total.cpus && b->free.gpus == b->total.gpus &&
           b->free.memory_mib == b->total.memory_mib;
}

/* Machines missing, with what is planned for jobs: those take from the base load first. */
static int64_t missing(const struct work *w, const struct pool *p)
{
    int64_t n_coming = p->n_coming + w->p->planned_in[p->index], n_empty = count_ready(p);
    for (size_t k = w->n_up; k < w->p->n_bins; k++)
        n_empty += w->p->bins[k].pool == p && is_empty(&w->p->bins[k]);
    return max_i64(p->base.min_nodes - p->n_up - n_coming, p->base.warm_nodes - n_empty);
}

/* A budget for all that runs in the pool has nothing left: no job could start there. */
static bool is_unpaid(const struct work *w, const struct pool *p)
{
    for (size_t k = 0; k < budgets_count(w->m); k++) {
        const struct budget_options *o = budgets_at(w->m, k)->options;
        bool is_for_all = !o->team[0] && !o->user[0] && !o->job[0] && o->n_labels == 0 &&
                          (!o->pool[0] || str_eq(o->pool, p->row.name));
        if (is_for_all && w->p->budget_left[k] == 0)
            return true;
    }
    return false;
}

void cover_base_load(struct work *w)
{
    LIST_FOREACH (model_pools(w->m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        const struct offer *o;
        if (!has_base(p) || is_unpaid(w, p) ||
            !maintenance_allows_base(w->m, p, (struct wall){w->now.wall.ms + lead_ms(p)}))
            continue;
        for (int64_t n = missing(w, p); n > 0 && (o = choose_for_base(w, p)) != NULL; n--)
            plan_launch(w, o);
    }
}

/* ---- for users ---- */

void core_base_load(const struct pool *p, struct wall now, struct base_view *ret_view)
{
    struct wall change;
    *ret_view = (struct base_view){
        .now = values_at(p, now, &change), .next_at = WALL_NONE, .launches_from = WALL_NONE};
    for (int k = 0; k < CHANGES_MAX && wall_is_set(change); k++) {
        struct wall at = change;
        ret_view->next = values_at(p, at, &change);
        if (ret_view->next.min_nodes == ret_view->now.min_nodes &&
            ret_view->next.warm_nodes == ret_view->now.warm_nodes &&
            ret_view->next.window == ret_view->now.window)
            continue;
        ret_view->next_at = at;
        if (ret_view->next.min_nodes > ret_view->now.min_nodes ||
            ret_view->next.warm_nodes > ret_view->now.warm_nodes)
            ret_view->launches_from.ms = at.ms - lead_ms(p);
        break;
    }
}
