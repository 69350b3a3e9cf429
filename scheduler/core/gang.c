/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines for jobs that need several at once. A gang is covered as a whole or not at all, and in one pool, whose machines
 * reach each other: launching three of four that the pool may have would only cost. Bins that a gang is counted on are
 * taken whole, so that what is younger does not fill them up.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include <string.h>

#define LOOK_MAX 16 /* gangs of one shape that are looked at; the others wait behind them */

/* One that is to be covered. */
struct gang {
    const struct shape *shape;
    const struct job *job;
    bool is_moving; /* it runs, and at least one of its nodes is about to go */
};

/* A pool for it: what is missing there, and the offer to launch. */
struct cover {
    const struct pool *pool;
    int32_t missing;
    const struct offer *offer; /* NULL: nothing is missing */
    int64_t uusd_h;
};

/* Where a rank of it is already, no other goes. */
static bool bin_serves(const struct bin *b, const struct gang *g, const struct pool *p)
{
    if (b->node && job_attempt_on(g->job, g->job->row.attempts, b->node->row.id))
        return false;
    return b->pool == p && bin_admits(b, g->shape) && resources_fit(&g->shape->need, &b->free);
}

/* Its nodes that stay are its own again when it has stopped. */
static int32_t staying(const struct gang *g, const struct pool *p)
{
    int32_t n = 0;
    if (!g->is_moving)
        return 0;
    LIST_FOREACH (&g->job->ranks, l) {
        const struct node *node = LIST_ENTRY(l, struct attempt, in_job)->node;
        n += node->pool == p && node_takes_work(node);
    }
    return n;
}

static int32_t missing_in(const struct work *w, const struct gang *g, const struct pool *p)
{
    int32_t missing = g->shape->nodes - staying(g, p);
    for (size_t k = 0; k < w->p->n_bins && missing > 0; k++)
        missing -= bin_serves(&w->p->bins[k], g, p);
    return missing > 0 ? missing : 0;
}

/* May the pool have n more machines of the offer? */
static bool has_room(const struct work *w, const struct offer *o, int32_t n)
{
    struct room pool = w->p->room[o->pool->index], all = w->p->all;
    for (; n > 0; n--) {
        if (room_lacks(&pool, o) || room_lacks(&all, o))
            return false;
        room_take(&pool, o);
        room_take(&all, o);
    }
    return true;
}

static bool consider(struct work *w, const struct gang *g, const struct pool *p, struct cover *ret_cover)
{
    struct cover c = {.pool = p, .missing = missing_in(w, g, p)};
    if (c.missing > 0) {
        const struct demand d = {.shape = g->shape, .job = g->job, .n = c.missing, .pool = p};
        c.offer = choose_alone(w, &d, INT64_MAX);
        if (!c.offer || !has_room(w, c.offer, c.missing))
            return false;
        c.uusd_h = c.missing * offer_effective_uusd_h(c.offer, &g->job->row);
    }
    *ret_cover = c;
    return true;
}

/* Nothing to launch is best, then the lower rank in the pool files, then what costs less. */
static bool is_better(const struct cover *a, const struct cover *b)
{
    if (!b->pool || !a->offer || !b->offer)
        return !b->pool || (!a->offer && b->offer);
    if (a->offer->row.rank != b->offer->row.rank)
        return a->offer->row.rank < b->offer->row.rank;
    return a->uusd_h < b->uusd_h;
}

static void take(struct work *w, const struct gang *g, const struct cover *c)
{
    int32_t left = g->shape->nodes - staying(g, c->pool);
    for (size_t k = 0; k < w->p->n_bins && left > 0; k++) {
        struct bin *b = &w->p->bins[k];
        if (!bin_serves(b, g, c->pool))
            continue;
        b->free = (struct resources){0};
        if (b->node)
            *GROW(w->p->held, w->p->n_held) = b->node->row.id;
        left--;
    }
    for (int32_t k = 0; k < c->missing; k++)
        plan_launch(w, c->offer)->free = (struct resources){0};
}

static void cover_gang(struct work *w, const struct gang *g)
{
    struct cover best = {0}, c;
    LIST_FOREACH (&w->m->all_pools, l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (pool_serves(p, g->shape) && consider(w, g, p, &c) && is_better(&c, &best))
            best = c;
    }
    if (best.pool)
        take(w, g, &best);
}

bool gang_holds(const struct planner *p, int64_t node)
{
    for (size_t k = 0; k < p->n_held; k++)
        if (p->held[k] == node)
            return true;
    return false;
}

/* The first of its ranks of which the node is about to go. */
static bool is_first_to_go(const struct attempt *a)
{
    LIST_FOREACH (&a->job->ranks, l) {
        const struct attempt *other = LIST_ENTRY(l, struct attempt, in_job);
        if (other->node->row.state == NODE_NOTICED)
            return other == a;
    }
    return false;
}

static void cover_moving(struct work *w)
{
    LIST_FOREACH (&w->m->noticed, ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, by_state);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            const struct gang g = {.shape = a->job->shape, .job = a->job, .is_moving = true};
            if (g.shape->nodes > 1 && a->job->row.state == JOB_RUNNING && is_first_to_go(a))
                cover_gang(w, &g);
        }
    }
}

static void cover_waiting(struct work *w, const struct shape *s)
{
    int looked = 0;
    for (struct tree_link *l = tree_first(&s->pending); l && looked < LOOK_MAX; l = tree_next(l), looked++) {
        const struct gang g = {.shape = s, .job = TREE_ENTRY(l, struct job, in_shape)};
        cover_gang(w, &g);
    }
}

void cover_gangs(struct work *w)
{
    if (w->m->n_gangs == 0)
        return;
    cover_moving(w);
    for (const struct shape *s = queue_first(w->m); s; s = queue_next(s))
        if (s->nodes > 1)
            cover_waiting(w, s);
}
