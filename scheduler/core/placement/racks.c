/* SPDX-License-Identifier: Apache-2.0
 *
 * See racks.h. The draw of a node follows from its free resources, so it is updated where those
 * change (node_refresh), and nothing of it is stored.
 *
 *  1. draw_w of a rack is the idle draw of all its nodes plus the draw above idle of joined ones.
 *  2. No job is placed that would raise draw_w above max_w. A rack may exceed it for other reasons
 *     (a lower limit, a changed machine, a measurement): then no job is placed there until it is
 *     below again. No machine is launched there for jobs without power on it (choose_offer.c,
 *     launch_gang.c).
 *  3. When the draw of a rack falls, its nodes that were held back by it count as grown: the
 *     planner examines them again. While gangs wait, that is all of them, unless there was power
 *     for full load on all: their ranks take power together.
 */
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/queue_access.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <stdlib.h>

void racks_init(struct model *m, const struct rack_options *options, size_t n)
{
    assert(n <= RACKS_MAX);
    m->placement.racks = mem_array(n, sizeof *m->placement.racks);
    m->placement.n_racks = n;
    for (size_t i = 0; i < n; i++) {
        struct rack *r = &m->placement.racks[i];
        *r = (struct rack){.options = &options[i], .index = (int32_t)i};
        for (size_t k = 0; k < options[i].n_nodes; k++)
            r->idle_w += options[i].nodes[k].n * options[i].nodes[k].idle_w;
        r->draw_w = r->idle_w;
    }
}

/* ---- other racks ---- */

void racks_renew(struct model *m, const struct rack_options *options, size_t n)
{
    struct rack *former = m->placement.racks;
    int64_t *measured = NULL;
    size_t n_measured = 0;
    LIST_FOREACH (model_nodes(m), ln) {
        struct node *node = LIST_ENTRY(ln, struct node, in_all);
        *GROW(measured, n_measured) =
            node->over_w > 0 ? node->rack_kind->idle_w + node->draw_w + node->over_w : 0;
        link_remove(&node->in_rack);
        node->rack = NULL;
        node->rack_kind = NULL;
        node->is_surplus = false;
        node->draw_w = node->over_w = 0;
    }
    racks_init(m, options, n);
    LIST_FOREACH (model_pools(m), lp) {
        struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        p->rack = NULL;
        p->rack_kind = NULL;
        rack_add_pool(m, p);
    }
    size_t k = 0;
    LIST_FOREACH (model_nodes(m), ln) {
        struct node *node = LIST_ENTRY(ln, struct node, in_all);
        rack_join(m, node);
        node_refresh(m, node, true);
        rack_measured(m, node, measured[k++]);
    }
    racks_accept(m);
    free(measured);
    free(former);
}

void racks_move(struct model *m, const struct rack_options *options)
{
    for (size_t i = 0; i < m->placement.n_racks; i++) {
        struct rack *r = &m->placement.racks[i];
        const struct rack_options *former = r->options;
        r->options = &options[i];
        LIST_FOREACH (&r->nodes, l) {
            struct node *n = LIST_ENTRY(l, struct node, in_rack);
            n->rack_kind = &options[i].nodes[n->rack_kind - former->nodes];
        }
        LIST_FOREACH (model_pools(m), l) {
            struct pool *p = LIST_ENTRY(l, struct pool, in_all);
            if (p->rack == r)
                p->rack_kind = &options[i].nodes[p->rack_kind - former->nodes];
        }
    }
}

/* ---- draw of a node ---- */

static int64_t share_rounded_up(int64_t watts, int64_t used, int64_t total)
{
    if (used <= 0 || total <= 0)
        return 0;
    return used >= total ? watts : (watts * used + total - 1) / total;
}

/* Draw above idle with these free resources. */
static int64_t draw_above_idle(
    const struct rack_nodes *kind, const struct resources *t, const struct resources *free)
{
    int64_t most = kind->full_w - kind->idle_w;
    int64_t cpus = share_rounded_up(most, t->cpus - free->cpus, t->cpus),
            gpus = share_rounded_up(most, t->gpus - free->gpus, t->gpus);
    return cpus > gpus ? cpus : gpus;
}

static int64_t node_draw_above_idle(const struct node *n, const struct resources *free)
{
    return draw_above_idle(n->rack_kind, &n->row.total, free);
}

static int64_t left_of(const struct rack *r)
{
    return r->options->max_w - r->draw_w - r->over_w;
}

int64_t rack_adds(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t times)
{
    struct resources then = *free;
    if (shape_is_exclusive(s)) {
        then = (struct resources){0};
    } else {
        then.cpus -= (int32_t)(times * s->need.cpus);
        then.gpus -= (int32_t)(times * s->need.gpus);
    }
    return draw_above_idle(kind, total, &then) - draw_above_idle(kind, total, free);
}

int64_t rack_single_w(const struct rack_nodes *kind, struct resources total, const struct shape *s)
{
    return kind ? rack_adds(kind, &total, &total, s, 1) : 0;
}

int64_t rack_node_adds(const struct node *n, const struct shape *s)
{
    return n->rack ? rack_adds(n->rack_kind, &n->row.total, &n->free, s, 1) : 0;
}

bool rack_has_power_on(const struct node *n, const struct shape *s)
{
    return !n->rack || rack_node_adds(n, s) <= left_of(n->rack);
}

int64_t rack_times(const struct rack_nodes *kind, const struct resources *total,
    const struct resources *free, const struct shape *s, int64_t n, int64_t left_w)
{
    while (kind && n > 0 && rack_adds(kind, total, free, s, n) > left_w)
        n--;
    return n;
}

bool rack_has_power(const struct offer *o, const struct shape *s, int64_t machines)
{
    const struct pool *p = o->pool;
    return !p->rack ||
           machines * rack_single_w(p->rack_kind, offer_total(o), s) <= left_of(p->rack);
}

bool rack_has_any(const struct offer *o)
{
    struct resources total = offer_total(o), free = total;
    free.cpus--;
    return !o->pool->rack ||
           draw_above_idle(o->pool->rack_kind, &total, &free) <= left_of(o->pool->rack);
}

bool rack_has_power_with(const struct model *m, const struct node *n, const struct shape *s,
    const int64_t *nodes, int32_t n_nodes)
{
    int64_t left;
    if (!n->rack)
        return true;
    left = left_of(n->rack) - rack_node_adds(n, s);
    for (int32_t k = 0; k < n_nodes && left >= 0; k++) {
        const struct node *other = model_node(m, nodes[k]);
        if (other->rack == n->rack)
            left -= rack_node_adds(other, s);
    }
    return left >= 0;
}

int64_t rack_left(const struct rack *r)
{
    return left_of(r);
}

/* ---- changes ---- */

static int64_t node_may_add(const struct node *n)
{
    return n->free_entry ? n->rack_kind->full_w - n->rack_kind->idle_w - n->draw_w : 0;
}

/* Nodes of the rack that only its power, of which this much was left, may have held back. */
static void grow_unpowered(
    struct model *m, const struct rack *r, const struct node *but, int64_t left)
{
    bool waits_gang = !list_is_empty(queue_gangs(m));
    int64_t sum = 0;
    LIST_FOREACH (&r->nodes, l)
        sum += node_may_add(LIST_ENTRY(l, struct node, in_rack));
    LIST_FOREACH (&r->nodes, l) {
        struct node *n = LIST_ENTRY(l, struct node, in_rack);
        if (n != but && n->free_entry && (waits_gang ? sum : node_may_add(n)) > left)
            node_grew(m, n);
    }
}

static void set_draw(struct model *m, struct node *n, int64_t draw_w, int64_t over_w)
{
    struct rack *r = n->rack;
    int64_t before = left_of(r);
    r->draw_w += draw_w - n->draw_w;
    r->over_w += over_w - n->over_w;
    n->draw_w = draw_w;
    n->over_w = over_w;
    if (left_of(r) > before && rack_reserved_for(r))
        rack_reservations_changed(m, r); /* reservations may not exclude jobs from there any more */
    else if (left_of(r) > before)
        grow_unpowered(m, r, n, before);
}

void rack_refresh(struct model *m, struct node *n)
{
    if (!n->rack)
        return;
    int64_t draw = n->row.state == NODE_GONE ? 0 : node_draw_above_idle(n, &n->free);
    if (n->row.state == NODE_LOST && draw < n->draw_w)
        return;
    set_draw(m, n, draw, n->over_w);
}

void rack_measured(struct model *m, struct node *n, int64_t watts)
{
    int64_t over = n->rack && watts > 0 ? watts - n->rack_kind->idle_w - n->draw_w : 0;
    if (!n->rack || (over > 0 ? over : 0) == n->over_w)
        return;
    bool less = over < n->over_w;
    set_draw(m, n, n->draw_w, over > 0 ? over : 0);
    if (less && n->free_entry)
        node_grew(m, n);
    model_note_change(m);
}

void racks_accept(struct model *m)
{
    for (size_t i = 0; i < m->placement.n_racks; i++)
        rack_accept(&m->placement.racks[i]);
}

void rack_reservations_changed(struct model *m, const struct rack *r)
{
    LIST_FOREACH (&r->nodes, l) {
        struct node *n = LIST_ENTRY(l, struct node, in_rack);
        if (n->free_entry)
            node_grew(m, n);
    }
}

const struct shape *rack_reserved_for(const struct rack *r)
{
    LIST_FOREACH (&r->nodes, l)
        if (LIST_ENTRY(l, struct node, in_rack)->reserved_for)
            return LIST_ENTRY(l, struct node, in_rack)->reserved_for;
    return NULL;
}

/* ---- membership ---- */

void rack_add_pool(struct model *m, struct pool *p)
{
    for (size_t i = 0; i < m->placement.n_racks && !p->rack; i++) {
        const struct rack_options *o = m->placement.racks[i].options;
        for (size_t k = 0; k < o->n_nodes && !p->rack; k++) {
            if (!str_eq(o->nodes[k].pool, p->row.name))
                continue;
            p->rack = &m->placement.racks[i];
            p->rack_kind = &o->nodes[k];
        }
    }
}

static void find_by_name(struct model *m, struct node *n)
{
    for (size_t i = 0; i < m->placement.n_racks && !n->rack; i++) {
        const struct rack_options *o = m->placement.racks[i].options;
        for (size_t k = 0; k < o->n_nodes && !n->rack; k++) {
            if (!hosts_has(o->nodes[k].names, n->row.name))
                continue;
            n->rack = &m->placement.racks[i];
            n->rack_kind = &o->nodes[k];
        }
    }
}

/* The pool has all of its places there without this node. */
static bool is_surplus(const struct node *n)
{
    int64_t others = 0;
    LIST_FOREACH (&n->rack->nodes, l)
        others += LIST_ENTRY(l, struct node, in_rack)->rack_kind == n->rack_kind;
    return n->rack_kind->pool[0] && others >= n->rack_kind->n;
}

static void count_surplus(struct node *n, int64_t sign)
{
    n->rack->idle_w += sign * n->rack_kind->idle_w;
    n->rack->draw_w += sign * n->rack_kind->idle_w;
    n->is_surplus = sign > 0;
}

void rack_join(struct model *m, struct node *n)
{
    find_by_name(m, n);
    if (!n->rack && n->pool->rack) {
        n->rack = n->pool->rack;
        n->rack_kind = n->pool->rack_kind;
    }
    if (n->rack && is_surplus(n)) {
        count_surplus(n, 1);
        rack_accept(n->rack);
    }
    if (n->rack)
        list_push_back(&n->rack->nodes, &n->in_rack);
    if (n->rack && n->row.state == NODE_LOST) /* its jobs may still run there */
        set_draw(m, n, n->rack_kind->full_w - n->rack_kind->idle_w, 0);
}

void rack_leave(struct model *m, struct node *n)
{
    if (!n->rack)
        return;
    set_draw(m, n, 0, 0);
    link_remove(&n->in_rack);
    if (n->is_surplus) {
        count_surplus(n, -1);
        rack_reservations_changed(m, n->rack);
    }
    n->rack = NULL;
}

void rack_accept(struct rack *r)
{
    if (r && r->draw_w > r->granted_w)
        r->granted_w = r->draw_w;
}

/* ---- future power ---- */

/* Free resources once all attempts selected by `gone` have ended. */
static struct resources free_after(const struct node *n, rack_gone_fn gone, const void *ctx)
{
    struct resources free = n->free;
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if (gone(ctx, a))
            resources_give(&free, &a->allocated);
    }
    return free;
}

static void take_resources(struct resources *free, const struct shape *s, int32_t times)
{
    if (shape_is_exclusive(s)) {
        *free = (struct resources){0};
        return;
    }
    free->cpus -= times * s->need.cpus;
    free->gpus -= times * s->need.gpus;
}

bool rack_fits_after(const struct rack *r, rack_gone_fn gone, rack_kept_fn kept, const void *ctx,
    const struct node *with, const struct shape *s)
{
    int64_t draw = r->idle_w + r->over_w;
    LIST_FOREACH (&r->nodes, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_rack);
        struct resources free = free_after(n, gone, ctx);
        if (n->row.state == NODE_LOST) {
            draw += n->draw_w;
            continue;
        }
        const struct shape *other = kept(ctx, n);
        if (other && (n != with || other == n->reserved_for))
            take_resources(&free, other, n->claims > 1 ? n->claims : 1);
        if (n == with)
            take_resources(&free, s, 1);
        draw += node_draw_above_idle(n, &free);
    }
    return draw <= r->options->max_w;
}

/* ---- views for users ---- */

size_t core_racks(const struct model *m)
{
    return m->placement.n_racks;
}

void core_rack(const struct model *m, size_t i, struct rack_view *ret_view)
{
    const struct rack *r = &m->placement.racks[i];
    *ret_view = (struct rack_view){
        .options = r->options, .idle_w = r->idle_w, .draw_w = r->draw_w, .measured_w = r->over_w};
    for (size_t k = 0; k < r->options->n_nodes; k++)
        ret_view->nodes += r->options->nodes[k].n;
    LIST_FOREACH (&r->nodes, l)
        ret_view->joined++;
}

const char *core_node_rack(const struct node *n, int64_t *ret_watts)
{
    if (!n->rack)
        return NULL;
    *ret_watts = n->rack_kind->idle_w + n->draw_w + n->over_w;
    return n->rack->options->name;
}

void racks_deinit(struct model *m)
{
    free(m->placement.racks);
}
