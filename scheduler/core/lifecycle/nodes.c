/* SPDX-License-Identifier: Apache-2.0
 *
 * Indexes of nodes: free capacity, leases, idleness. Only node_refresh decides which indexes a node
 * is in; it is called after every change of state or load.
 */
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/supply/supply_access.h"

#include <assert.h>
#include <string.h>

/* Order of by_free: GPUs first, so that jobs without GPUs avoid nodes that have them. */
struct free_key {
    struct resources free;
    int64_t id;
};

static int compare_free(const void *key, const struct tree_link *l)
{
    const struct free_key *k = key;
    const struct free_entry *r = TREE_ENTRY(l, struct free_entry, link);
    int c = tree_order(k->free.gpus, r->free.gpus);
    if (c == 0)
        c = tree_order(k->free.cpus, r->free.cpus);
    if (c == 0)
        c = tree_order(k->free.memory_mib, r->free.memory_mib);
    return c ? c : tree_order(k->id, r->id);
}

bool node_is_in_order(const struct node *n)
{
    const struct tree_link *next = n->free_entry ? tree_next(&n->free_entry->link) : NULL;
    return !n->free_entry ||
           (resources_fit(&n->free, &n->free_entry->free) &&
               resources_fit(&n->free_entry->free, &n->free) &&
               (!next || compare_free(&(struct free_key){n->free, n->row.id}, next) < 0));
}

bool node_takes_work(const struct node *n)
{
    return n->row.state == NODE_UP && n->throttle == NODE_THROTTLE_NONE && !n->disk_full[0] &&
           !n->is_closed;
}

static bool is_alive(const struct node *n)
{
    return n->row.state == NODE_UP || n->row.state == NODE_NOTICED || n->row.state == NODE_DRAINING;
}

bool node_ends_when_empty(const struct node *n)
{
    return n->instance && n->row.drained_by_belay && n->row.market != MARKET_OWNED;
}

/* A machine of provider static (MARKET_OWNED) that belay drains stays: its claim keeps it from
 * being launched again. */
static struct list *list_of_empty(struct model *m, struct node *n)
{
    if (!n->instance || !list_is_empty(&n->attempts))
        return NULL;
    if (node_ends_when_empty(n))
        return &m->lifecycle.drained;
    return n->row.drained_by_belay ? NULL : &n->pool->idle;
}

static struct list *list_of_state(struct model *m, struct node *n)
{
    switch (n->row.state) {
    case NODE_UP:
    case NODE_DRAINING:
        return list_of_empty(m, n);
    case NODE_NOTICED:
        return &m->lifecycle.noticed;
    case NODE_LOST:
        return n->instance ? &m->lifecycle.lost : NULL;
    case NODE_GONE:
        break;
    }
    return NULL;
}

/* Inserts it before nodes that still run attempts and after nodes that have been empty for longer,
 * without a search. */
static void insert_noticed(struct model *m, struct node *n)
{
    LIST_FOREACH (&m->lifecycle.noticed, l) {
        const struct node *other = LIST_ENTRY(l, struct node, by_state);
        if (!other->instance || !list_is_empty(&other->attempts)) {
            list_insert_before(l, &n->by_state);
            return;
        }
    }
    list_push_back(&m->lifecycle.noticed, &n->by_state);
}

static void refresh_state_list(struct model *m, struct node *n)
{
    struct list *want = list_of_state(m, n);
    if (want == n->state_list && want != &m->lifecycle.noticed)
        return;
    link_remove(&n->by_state);
    n->state_list = want;
    if (want == &m->lifecycle.noticed && n->instance && list_is_empty(&n->attempts))
        insert_noticed(m, n);
    else if (want)
        list_push_back(want, &n->by_state);
}

void node_grew(struct model *m, struct node *n)
{
    link_remove(&n->by_growth);
    list_push_front(&m->lifecycle.by_growth, &n->by_growth);
    n->grown = model_note_growth(m);
    model_note_rewind(m);
}

/* Full nodes, most of them under load, are not searched for capacity. */
static bool has_capacity(const struct node *n, bool works)
{
    return works && n->free.cpus > 0; /* every job needs a cpu */
}

/* Inserts it with its current free resources, or removes it. */
static void file_free(struct model *m, struct node *n, bool is_in)
{
    struct tree *t = &n->pool->by_free[n->row.market];
    struct free_entry *r = n->free_entry;
    if (r)
        tree_remove(t, &r->link);
    if (!is_in) {
        slab_give(&m->lifecycle.free_entries, r);
        n->free_entry = NULL;
        return;
    }
    if (!r)
        n->free_entry = r = slab_take(&m->lifecycle.free_entries, sizeof *r);
    *r = (struct free_entry){.free = n->free, .id = n->row.id, .node = n};
    tree_add(t, &r->link, &(struct free_key){r->free, r->id}, compare_free);
}

static bool has_moved(const struct node *n, bool is_in)
{
    const struct free_entry *r = n->free_entry;
    return is_in != (r != NULL) ||
           (r && (r->free.cpus != n->free.cpus || r->free.gpus != n->free.gpus ||
                     r->free.memory_mib != n->free.memory_mib));
}

void node_refresh(struct model *m, struct node *n, bool grew)
{
    bool works = node_takes_work(n), is_in = has_capacity(n, works);
    const struct shape *r = n->reserved_for;
    rack_refresh(m, n);
    if (works != link_is_in(&n->by_growth))
        model_note_reserve(m);
    if (has_moved(n, is_in))
        file_free(m, n, is_in);
    if (r && (!works || !resources_fit(&r->need, &n->row.total) || !node_suits(n, r)))
        reserve_drop(m, n->reserved_for);
    if (!works) {
        link_remove(&n->by_growth);
    } else if (grew || !link_is_in(&n->by_growth)) {
        node_grew(m, n);
    }
    if (!is_alive(n))
        link_remove(&n->by_seen);
    else if (!link_is_in(&n->by_seen))
        list_push_back(&m->lifecycle.by_seen, &n->by_seen);
    refresh_state_list(m, n);
    model_note_change(m);
}

void node_index(struct model *m, struct node *n)
{
    model_put_node(m, n);
    maintenance_cover(m, n);
    m->lifecycle.n_nodes_lost += n->row.state == NODE_LOST;
    n->pool->n_up += n->row.state == NODE_UP;
    rack_join(m, n);
    node_refresh(m, n, true);
}

void node_unindex(struct model *m, struct node *n)
{
    assert(n->row.state == NODE_GONE && list_is_empty(&n->attempts));
    node_refresh(m, n, false);
    rack_leave(m, n);
    link_remove(&n->prefetch.in_all);
    model_remove_node(m, n);
    if (n->instance) {
        boots_left(n->instance);
        n->instance->node = NULL;
    }
}

void node_move(struct model *m, struct node *n, enum node_state to, struct stamp now)
{
    int state = (int)n->row.state;
    m->lifecycle.n_nodes_lost -= state == NODE_LOST;
    n->pool->n_up -= state == NODE_UP;
    sm_move(&node_sm, n->row.id, &state, (int)to);
    m->lifecycle.n_nodes_lost += state == NODE_LOST;
    n->pool->n_up += state == NODE_UP;
    n->row.state = (enum node_state)state;
    n->since = now.mono;
    touch_node(m, n);
    if (!node_takes_work(n))
        gang_node_leaves(m, n);
    node_refresh(m, n, false);
}

void node_attach(struct model *m, struct node *n, struct attempt *a)
{
    a->allocated = *shape_takes(a->job->shape, &n->row.total);
    resources_take(&n->free, &a->allocated);
    node_take_stock(n, a->job, 1);
    list_push_back(&n->attempts, &a->on_node);
    link_remove(&n->prefetch.in_all);
    a->node = n;
    if (n->row.market == MARKET_ON_DEMAND)
        supply_note_costly(m, a);
    n->idle_since = MONO_NONE;
    node_refresh(m, n, false);
}

void node_detach(struct model *m, struct attempt *a, struct stamp now)
{
    struct node *n = a->node;
    link_remove(&a->on_node);
    link_remove(&a->costly);
    resources_give(&n->free, &a->allocated);
    node_take_stock(n, a->job, -1);
    if (list_is_empty(&n->attempts))
        n->idle_since = now.mono;
    node_refresh(m, n, true);
}

/* The node with the least free resources that has capacity, after `after` (NULL: of all). Keys
 * between two candidates that cannot fit are skipped in one step, so the work grows with the number
 * of distinct (gpus, cpus), not with the number of nodes. */
static struct node *tightest(
    const struct tree *t, const struct shape *s, struct stamp now, const struct node *after)
{
    const struct resources *need = &s->need;
    struct free_key at = {.free = *need};
    struct tree_link *l =
        after ? tree_next(&after->free_entry->link) : tree_at_least(t, &at, compare_free);
    while (l) {
        const struct free_entry *r = TREE_ENTRY(l, struct free_entry, link);
        struct node *n = r->node;
        bool fits = resources_fit(need, &r->free);
        if (fits && node_has_capacity(n, s) && node_suits(n, s) && reserve_allows(n, s, now) &&
            maintenance_allows(n, s, now.wall))
            return n;
        if (fits) {
            /* but these jobs avoid it, need something that it lacks, or would delay reservations */
            l = tree_next(l);
            continue;
        }
        at = (struct free_key){.free = r->free};
        if (r->free.cpus < need->cpus)
            at.free.cpus = need->cpus;
        at.free.memory_mib = need->memory_mib;
        l = tree_at_least(t, &at, compare_free);
    }
    return NULL;
}

static struct node *tighter(struct node *a, struct node *b)
{
    return compare_free(&(struct free_key){a->free, a->row.id}, &b->free_entry->link) < 0 ? a : b;
}

struct node *nodes_best(const struct model *m, const struct shape *s, struct stamp now)
{
    for (int market = MARKET_OWNED; market <= MARKET_ON_DEMAND; market++) {
        struct node *best = NULL;
        int64_t least_uusd = INT64_MAX; /* of reading its input */
        LIST_FOREACH (model_pools(m), l) {
            const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
            int64_t uusd = pool_input_uusd(p, s->constraints);
            struct node *n = NULL;
            if (uusd <= least_uusd && shape_allows_pool(s, p) &&
                shape_may_use(s, p, (enum market)market))
                n = tightest(&p->by_free[market], s, now, NULL);
            if (!n)
                continue;
            best = best && uusd == least_uusd ? tighter(best, n) : n;
            least_uusd = uusd;
        }
        if (best)
            return best;
    }
    return NULL;
}

/* The nodes chosen for a gang in a pool. */
struct gang_nodes {
    int64_t *ids;
    int32_t n;
    bool lacked_power; /* a node was passed over for lack of power next to the chosen ones */
};

/* Adds the node to the chosen ones, if their rack has the power for all of them. Otherwise, with
 * `exchanges`, the one of them that would draw the most there gives way to it, if it draws more. */
static void gang_add(const struct model *m, const struct node *n, const struct shape *s,
    bool exchanges, struct gang_nodes *chosen)
{
    int64_t most_w = rack_node_adds(n, s);
    int32_t most = chosen->n;
    if (rack_has_power_with(m, n, s, chosen->ids, chosen->n)) {
        chosen->ids[chosen->n++] = n->row.id;
        return;
    }
    chosen->lacked_power = true;
    for (int32_t k = 0; exchanges && k < chosen->n; k++) {
        const struct node *other = model_node(m, chosen->ids[k]);
        if (other->rack != n->rack || rack_node_adds(other, s) <= most_w)
            continue;
        most = k;
        most_w = rack_node_adds(other, s);
    }
    if (most < chosen->n)
        chosen->ids[most] = n->row.id;
}

/* Nodes of the pool that each could take a rank, at most s->nodes. First those that are kept for
 * the gang: they have the data that they restored. */
static struct gang_nodes gang_choose(const struct model *m, const struct pool *p,
    const struct shape *s, struct stamp now, bool exchanges, int64_t *ids)
{
    struct gang_nodes chosen = {.ids = ids};
    const struct job *owner = model_job(m, s->owner);
    if (owner)
        LIST_FOREACH (&job_side(owner)->kept, l) {
            const struct node *n = LIST_ENTRY(l, struct node, in_kept);
            if (chosen.n < s->nodes && n->pool == p && node_suits(n, s) &&
                node_has_capacity(n, s) && maintenance_allows(n, s, now.wall))
                gang_add(m, n, s, exchanges, &chosen);
        }
    for (int market = MARKET_OWNED; market <= MARKET_ON_DEMAND; market++) {
        struct node *at = NULL;
        if (!shape_may_use(s, p, (enum market)market))
            continue;
        while (chosen.n < s->nodes && (at = tightest(&p->by_free[market], s, now, at)))
            if (!at->kept_for) /* else already included */
                gang_add(m, at, s, exchanges, &chosen);
    }
    return chosen;
}

/* How many nodes of the pool, at most s->nodes, could each take a rank; and the most expensive
 * market among them. Where power is short, the preferred nodes may leave too little for others.
 * Then as many as possible are chosen: with that, capacity that others take never makes a gang fit,
 * which the planner's memory relies on (plan.c). */
static int32_t gang_in(const struct model *m, const struct pool *p, const struct shape *s,
    struct stamp now, int64_t *ids, enum market *ret_dearest)
{
    struct gang_nodes chosen = gang_choose(m, p, s, now, false, ids);
    if (chosen.n < s->nodes && chosen.lacked_power) {
        int64_t others[JOB_NODES_MAX];
        const struct gang_nodes most = gang_choose(m, p, s, now, true, others);
        if (most.n > chosen.n) {
            memcpy(ids, others, (size_t)most.n * sizeof ids[0]);
            chosen.n = most.n;
        }
    }
    *ret_dearest = MARKET_OWNED;
    for (int32_t k = 0; k < chosen.n; k++) {
        const struct node *n = model_node(m, ids[k]);
        if (n->row.market > *ret_dearest)
            *ret_dearest = n->row.market;
    }
    return chosen.n;
}

int32_t nodes_for_gang(const struct model *m, const struct shape *s, struct stamp now, int64_t *ids)
{
    const struct pool *best = NULL;
    enum market dearest, least = MARKET_ON_DEMAND;
    int64_t least_uusd = 0; /* of reading its input */
    int32_t most = 0;
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        int32_t n = shape_allows_pool(s, p) ? gang_in(m, p, s, now, ids, &dearest) : 0;
        int64_t uusd = pool_input_uusd(p, s->constraints);
        if (n < s->least || n < most ||
            (n == most && (dearest > least || (dearest == least && uusd >= least_uusd))))
            continue;
        best = p;
        most = n;
        least = dearest;
        least_uusd = uusd;
    }
    return best ? gang_in(m, best, s, now, ids, &dearest) : 0;
}

void nodes_deinit(struct model *m)
{
    slab_deinit(&m->lifecycle.free_entries);
}
