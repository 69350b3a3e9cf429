/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines for multi-node jobs. A gang is covered as a whole or not at all, and within one pool,
 * since its machines must reach each other: launching three of four would only cost. Bins that
 * cover a gang are used exclusively, so that younger demand does not fill them.
 *
 * A gang with a range of sizes gets as many nodes as the pool allows, and settles for what exists
 * when no more are coming (gang_resize.c).
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include <stdlib.h>
#include <string.h>

#define EXAMINED_MAX 16 /* gangs per shape that are examined; the others wait behind them */

/* A gang to be covered. */
struct gang {
    const struct shape *shape;
    const struct job *job;
    bool is_moving; /* running, and at least one of its nodes is about to go */
    int32_t target; /* desired number of nodes; at least `floor` */
    int32_t floor;
};

/* A candidate pool: missing nodes, and the offer to launch. */
struct cover {
    const struct pool *pool;
    int32_t ready, coming;     /* nodes that it has, or can have there */
    size_t last;               /* number of bins up to the last of the coming ones; else 0 */
    int32_t n;                 /* machines to launch */
    const struct offer *offer; /* NULL: no launch */
    int64_t uusd_h;
    /* Power left in the pool's rack, with ranks on existing and coming nodes. */
    int64_t left_w;
    int64_t coming_w; /* part of it for the coming ones */
};

/* Excludes nodes with another rank of the gang, and nodes too expensive for its user or team. */
static bool bin_serves(const struct bin *b, const struct gang *g, const struct pool *p)
{
    if (b->node && job_attempt_on(g->job, g->job->row.attempts, b->node->row.id))
        return false;
    if (!g->is_moving && !limits_allow(g->shape, b->pool, &b->total, b->uusd_h))
        return false;
    return b->pool == p && bin_admits(b, g->shape) && bin_times(b, g->shape) > 0;
}

/* Running gang: remaining nodes, which it will use again after its stop. */
static int32_t nodes_staying(const struct gang *g, const struct pool *p)
{
    int32_t n = 0;
    if (!g->is_moving)
        return 0;
    LIST_FOREACH (&g->job->ranks, l) {
        const struct node *node = LIST_ENTRY(l, struct attempt, in_job)->node;
        n += node->pool == p && node_takes_work(node);
    }
    LIST_FOREACH (&job_side(g->job)->kept, l)
        n += LIST_ENTRY(l, struct node, in_kept)->pool == p;
    return n;
}

static void count_cover(const struct work *w, const struct gang *g, struct cover *c)
{
    int64_t left_w[RACKS_MAX];
    size_t size = racks_count(w->m) * sizeof left_w[0];
    memcpy(left_w, w->p->left_w, size);
    c->ready = nodes_staying(g, c->pool);
    for (size_t k = 0; k < w->p->n_bins && c->ready + c->coming < g->target; k++) {
        const struct bin *b = &w->p->bins[k];
        bool serves = bin_serves(b, g, c->pool);
        int64_t had_w = b->left_w ? *b->left_w : 0;
        c->ready += serves && b->node;
        c->coming += serves && !b->node;
        c->last = serves && !b->node ? k + 1 : c->last;
        if (serves)
            bin_take_power(b, g->shape, 1);
        c->coming_w += b->left_w && !b->node ? had_w - *b->left_w : 0;
    }
    c->left_w = c->pool->rack ? w->p->left_w[c->pool->rack->index] : 0;
    memcpy(w->p->left_w, left_w, size);
}

/* How many further machines of the offer the pool may have, with power for a rank each, at most
 * n. */
static int32_t capacity_for(const struct work *w, const struct gang *g, const struct cover *c,
    const struct offer *o, int32_t n)
{
    struct capacity pool = w->p->capacity[o->pool->index], all = w->p->all;
    int64_t watts = rack_single_w(o->pool->rack_kind, offer_total(o), g->shape);
    int32_t k = 0;
    for (; k < n && !capacity_lacks(&pool, o) && !capacity_lacks(&all, o) &&
           (k + 1) * watts <= c->left_w;
         k++) {
        capacity_take(&pool, o);
        capacity_take(&all, o);
    }
    return k;
}

static int32_t total_of(const struct cover *c)
{
    return c->ready + c->coming + c->n;
}

/* The cheapest offer for which a rack has power for all missing ranks, else for the minimum. Coming
 * machines count as if not chosen yet, so that the choice does not change after each launch. */
static const struct offer *choose_offer(struct work *w, const struct gang *g, const struct cover *c)
{
    int32_t all = g->target - c->ready, least = g->floor - c->ready;
    struct demand d = {.shape = g->shape,
        .job = g->job,
        .n = g->target - total_of(c),
        .pool = c->pool,
        .moves = g->is_moving,
        .together = all,
        .left_w = c->left_w + c->coming_w};
    const struct offer *o = choose_for_single(w, &d, INT64_MAX);
    d.together = least > 1 ? least : 1;
    return o || d.together == all || !c->pool->rack ? o : choose_for_single(w, &d, INT64_MAX);
}

static bool evaluate_pool(
    struct work *w, const struct gang *g, const struct pool *p, struct cover *ret_cover)
{
    struct cover c = {.pool = p};
    count_cover(w, g, &c);
    if (total_of(&c) < g->target) {
        int32_t missing = g->target - total_of(&c);
        const struct offer *o = choose_offer(w, g, &c);
        int32_t n = o ? capacity_for(w, g, &c, o, missing) : 0;
        if (total_of(&c) + n < g->floor)
            return false;
        c.n = n;
        c.offer = n > 0 ? o : NULL;
        c.uusd_h = n > 0 ? n * (offer_effective_uusd_h(o, &g->job->row) +
                                   pool_input_uusd_h(o->pool, o, g->job))
                         : 0;
    }
    *ret_cover = c;
    return true;
}

/* Prefers more nodes, then no launch, then the lower rank in the pool's configuration, then the
 * lower cost. Of two without launches, prefers the one that was complete first: machines launched
 * for other demand come last, and must not draw a gang away from its own. */
static bool is_better(const struct cover *a, const struct cover *b)
{
    if (b->pool && total_of(a) != total_of(b))
        return total_of(a) > total_of(b);
    if (b->pool && !a->offer && !b->offer)
        return a->last < b->last;
    if (!b->pool || !a->offer || !b->offer)
        return !b->pool || !a->offer;
    if (a->offer->row.rank != b->offer->row.rank)
        return a->offer->row.rank < b->offer->row.rank;
    return a->uusd_h < b->uusd_h;
}

static void take_cover(struct work *w, const struct gang *g, const struct cover *c)
{
    int32_t left = g->target - nodes_staying(g, c->pool);
    for (size_t k = 0; k < w->p->n_bins && left > 0; k++) {
        struct bin *b = &w->p->bins[k];
        if (!bin_serves(b, g, c->pool))
            continue;
        bin_take_power(b, g->shape, 1);
        b->free = (struct resources){0};
        if (b->node)
            *GROW(w->p->earmarked, w->p->n_earmarked) = b->node->row.id;
        left--;
    }
    for (int32_t k = 0; k < c->n; k++) {
        struct bin *b = plan_launch(w, c->offer);
        bin_take_power(b, g->shape, 1);
        b->free = (struct resources){0};
    }
    if (!g->is_moving)
        headroom_take(w, g->shape, 1, total_of(c));
}

/* A pool with failed boots may have one machine, which covers no gang. It is launched by itself if
 * the pool's limits have capacity for the whole gang after it joined: otherwise gangs alone would
 * never test the pool. */
static bool plan_probe(struct work *w, const struct gang *g, const struct pool *p)
{
    struct cover c = {.pool = p};
    if (!pool_boots_fail(p) || w->p->capacity[p->index].nodes < 1)
        return false;
    count_cover(w, g, &c);
    const struct capacity whole = pool_limits(p);
    const struct offer *o = total_of(&c) + whole.nodes >= g->floor ? choose_offer(w, g, &c) : NULL;
    if (!o || capacity_for(w, g, &c, o, 1) < 1)
        return false;
    struct bin *b = plan_launch(w, o);
    bin_take_power(b, g->shape, 1);
    b->free = (struct resources){0};
    return true;
}

static void cover_gang(struct work *w, struct gang *g)
{
    struct cover best = {0}, c;
    if (!g->is_moving)
        g->target = headroom_nodes(w, g->shape, g->target);
    if (g->target < g->floor)
        return;
    LIST_FOREACH (model_pools(w->m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (pool_serves(p, g->shape) && evaluate_pool(w, g, p, &c) && is_better(&c, &best))
            best = c;
    }
    LIST_FOREACH (model_pools(w->m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!best.pool && pool_serves(p, g->shape) && plan_probe(w, g, p))
            return;
    }
    if (!best.pool)
        return;
    take_cover(w, g, &best);
    if (!g->is_moving && total_of(&best) < g->target && best.ready == total_of(&best))
        *GROW(w->p->settles, w->p->n_settles) = g->job->row.id;
}

bool settles_next(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    (void)m, (void)now;
    if (p->n_settles == 0)
        return false;
    *ret_event =
        (struct event){.type = EV_SETTLE, .settle = {.job = p->settles[0], .nothing_more = true}};
    return true;
}

bool node_is_earmarked(const struct planner *p, int64_t node)
{
    for (size_t k = 0; k < p->n_earmarked; k++)
        if (p->earmarked[k] == node)
            return true;
    return false;
}

/* The first of its ranks with a node that is about to go. */
static bool is_first_noticed(const struct attempt *a)
{
    LIST_FOREACH (&a->job->ranks, l) {
        const struct attempt *other = LIST_ENTRY(l, struct attempt, in_job);
        if (other->node->row.state == NODE_NOTICED)
            return other == a;
    }
    return false;
}

/* A gang that can continue with its remaining nodes needs another one only below its minimum. */
static void cover_mover(struct work *w, const struct job *j)
{
    bool shrinks = j->row.spec.nodes_min < j->row.spec.nodes && j->row.spec.on_loss == LOSS_SHRINK;
    int32_t n = shrinks ? j->row.spec.nodes_min : j->row.ranks;
    cover_gang(
        w, &(struct gang){.shape = j->shape, .job = j, .is_moving = true, .target = n, .floor = n});
}

static void cover_moving(struct work *w)
{
    LIST_FOREACH (nodes_noticed(w->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            if (a->job->row.spec.nodes > 1 && a->job->row.state == JOB_RUNNING &&
                is_first_noticed(a))
                cover_mover(w, a->job);
        }
    }
}

static void cover_waiting(struct work *w, const struct shape *s)
{
    int examined = 0;
    for (struct tree_link *l = tree_first(&s->pending); l && examined < EXAMINED_MAX;
         l = tree_next(l), examined++) {
        const struct job *j = TREE_ENTRY(l, struct job, in_shape);
        if (cover_licences(w, s, 1) == 0)
            return;
        cover_gang(w, &(struct gang){.shape = s,
                          .job = j,
                          .target = s->least,
                          .floor = j->gathers ? j->row.spec.nodes_min : s->least});
    }
}

static int compare_positions(const void *a, const void *b)
{
    return queue_position_order(queue_position_of(*(const struct shape *const *)a),
        queue_position_of(*(const struct shape *const *)b));
}

static void gather_gangs(struct work *w)
{
    struct planner *p = w->p;
    p->n_gangs = 0;
    LIST_FOREACH (queue_gangs(w->m), l)
        *GROW(p->gangs, p->n_gangs) = LIST_ENTRY(l, struct shape, in_gangs);
    if (p->n_gangs > 1)
        qsort(p->gangs, p->n_gangs, sizeof *p->gangs, compare_positions);
}

void cover_gangs(struct work *w)
{
    if (queue_n_gangs(w->m) == 0)
        return;
    cover_moving(w);
    gather_gangs(w);
    for (size_t k = 0; k < w->p->n_gangs; k++)
        cover_waiting(w, w->p->gangs[k]);
}
