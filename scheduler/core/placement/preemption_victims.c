/* SPDX-License-Identifier: Apache-2.0
 *
 * Selection of preemption victims for a quota. First jobs of the team furthest beyond its quota;
 * among these, jobs that can save; among these, the one with the least to lose: its cpus times the
 * time since its last save, or since its start. Among equals the youngest.
 *
 * For a QOS, victims are jobs of those that it preempts; of other teams only usage beyond their
 * quota, since quota is not preempted. The ranking by excess usage does not apply.
 *
 * A place uses the minimal number of nodes and victims, or no job is disturbed: the selected
 * victims suffice for the job to start, and all of them are necessary. A team gives places only
 * while it is beyond its quota. No job is preempted twice within PAUSE_MS.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "scheduler/core/ledger/ledger.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/queue_access.h"
#include <stdlib.h>

#define PAUSE_MS (15 * 60000LL)

int64_t preemption_victims_unsaved(const struct job *j, struct wall now)
{
    const struct attempt *a = job_attempt(j);
    bool saved = attempt_has_saved(a);
    struct wall since = saved                            ? j->row.last_good_at
                        : wall_is_set(a->row.started_at) ? a->row.started_at
                                                         : now;
    return since.ms < now.ms ? (now.ms - since.ms) * job_mcpu(j) / 1000 : 0;
}

static int compare_victims(const void *x, const void *y)
{
    const struct victim *a = x, *b = y;
    if (a->over != b->over)
        return a->over > b->over ? -1 : 1;
    if (a->saves != b->saves)
        return a->saves ? -1 : 1;
    if (a->unsaved != b->unsaved)
        return a->unsaved < b->unsaved ? -1 : 1;
    return (a->job->row.id < b->job->row.id) - (a->job->row.id > b->job->row.id);
}

void preemption_victims_sort(struct victim *list, size_t n)
{
    if (n > 1)
        qsort(list, n, sizeof *list, compare_victims);
}

/* ---- one search ---- */

/* The order of examination of the jobs on a node. A team gives only its excess, so the order may
 * decide whether they suffice. Feasibility is tested by size, which is constant over time; the
 * victims are then selected by loss. */
enum victim_order { BY_LOSS, LARGE_FIRST, SMALL_FIRST };

struct search {
    struct planner *p;
    const struct model *m;
    const struct shape *s;
    bool by_qos;
    struct stamp now;
    enum victim_order victim_order;
};

/* Cost of preempting jobs on a node. */
struct preempt_cost {
    size_t n;
    int64_t over; /* of the affected team that is the least beyond its quota */
    bool all_save;
    int64_t unsaved;
};

struct clearable_node {
    struct preempt_cost cost;
    const struct node *node;
};

static int64_t *over_of(const struct search *x, const struct job *j)
{
    return &x->p->over[j->account->team->allowance.index];
}

static int64_t mcpu_of(const struct job *j)
{
    return job_mcpu(j);
}

static bool is_stopping(const struct job *j)
{
    LIST_FOREACH (&j->ranks, l)
        if (LIST_ENTRY(l, struct attempt, in_job)->row.state == ATTEMPT_STOPPING)
            return true;
    return false;
}

/* Excess usage of each team, without jobs that are stopping. */
static void compute_team_excess(const struct search *x)
{
    struct planner *p = x->p;
    p->over = mem_resize(p->over, (size_t)limits_n_allowances(x->m), sizeof *p->over);
    LIST_FOREACH (share_teams(x->m), l) {
        const struct team *t = LIST_ENTRY(l, struct team, in_all);
        p->over[t->allowance.index] = t->allowance.used[LIMIT_MCPU] - t->quota_mcpu;
    }
    LIST_FOREACH (model_nodes(x->m), ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            if (a->row.state == ATTEMPT_STOPPING)
                *over_of(x, a->job) -= attempt_mcpu(a);
        }
    }
}

static bool is_chosen(const struct search *x, const struct job *j)
{
    for (size_t k = 0; k < x->p->n_victims; k++)
        if (x->p->victims[k].job == j)
            return true;
    return false;
}

/* Its team is beyond its quota, or it is the requesting team. */
static bool may_give(const struct search *x, const struct job *j)
{
    bool is_own = j->account->team == x->s->account->team;
    if (x->by_qos ? !shape_preempts(x->s, j->shape) : is_own)
        return false;
    return is_own || *over_of(x, j) > 0;
}

static bool may_evict(const struct search *x, const struct job *j)
{
    int64_t left_ms =
        wall_is_set(j->row.evicted_at) ? j->row.evicted_at.ms + PAUSE_MS - x->now.wall.ms : 0;
    if (j->row.state != JOB_RUNNING || is_stopping(j) || !may_give(x, j))
        return false;
    if (retries_left(&j->row, RETRY_EVICTED) == 0)
        return false; /* it would not be requeued: preemption takes places, never work */
    if (left_ms <= 0)
        return true;
    if (!mono_is_set(x->p->preempt_until) || x->now.mono.ms + left_ms < x->p->preempt_until.ms)
        x->p->preempt_until.ms = x->now.mono.ms + left_ms;
    return false;
}

static bool will_have_stopped(const void *ctx, const struct attempt *a)
{
    return a->row.state == ATTEMPT_STOPPING || is_chosen(ctx, a->job);
}

/* The shape that has a claim there. */
static const struct shape *claimed_for(const void *ctx, const struct node *n)
{
    const struct search *x = ctx;
    for (size_t k = 0; k < x->p->n_cleared; k++)
        if (x->p->claim[k] == n->row.id)
            return x->s;
    return n->claims > 0 ? n->reserved_for : NULL;
}

/* Capacity for one job of the shape beyond its claims, once all selected victims are gone. */
static bool has_capacity(const struct search *x, const struct node *n)
{
    struct resources free = n->free, need = x->s->need;
    struct stock stock = n->stock;
    int32_t times = n->reserved_for == x->s ? n->claims + 1 : 1;
    for (int32_t k = 1; k < times; k++)
        resources_give(&need, &x->s->need);
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if (!will_have_stopped(x, a))
            continue;
        resources_give(&free, &a->allocated);
        if (a->job->shape->constraints)
            stock_add(&stock, &a->job->shape->constraints->resources, 1);
    }
    return resources_fit(&need, &free) &&
           (!x->s->constraints || stock_times(&stock, &x->s->constraints->resources) >= times) &&
           (!n->rack || rack_fits_after(n->rack, will_have_stopped, claimed_for, x, n, x->s));
}

static void add_victim(const struct search *x, const struct victim *v)
{
    *GROW(x->p->victims, x->p->n_victims) = *v;
    *over_of(x, v->job) -= mcpu_of(v->job);
}

static void drop_victim(const struct search *x, size_t k)
{
    struct planner *p = x->p;
    *over_of(x, p->victims[k].job) += mcpu_of(p->victims[k].job);
    for (; k + 1 < p->n_victims; k++)
        p->victims[k] = p->victims[k + 1];
    p->n_victims--;
}

/* Spares victims, from the last to index `from`, that are not needed for these nodes. */
static void drop_needless_victims(
    const struct search *x, size_t from, const int64_t *nodes, size_t n_nodes)
{
    preemption_victims_sort(&x->p->victims[from], x->p->n_victims - from);
    for (size_t k = x->p->n_victims; k-- > from;) {
        struct victim v = x->p->victims[k];
        bool enough = true;
        drop_victim(x, k);
        for (size_t i = 0; enough && i < n_nodes; i++)
            enough = has_capacity(x, model_node(x->m, nodes[i]));
        if (enough)
            continue;
        add_victim(x, &v);
        preemption_victims_sort(&x->p->victims[from], x->p->n_victims - from);
    }
}

static int compare_large(const void *x, const void *y)
{
    const struct victim *a = x, *b = y;
    int64_t p = mcpu_of(a->job), q = mcpu_of(b->job);
    return p != q ? (p > q ? -1 : 1)
                  : (a->job->row.id > b->job->row.id) - (a->job->row.id < b->job->row.id);
}

static int compare_small(const void *x, const void *y)
{
    return compare_large(y, x);
}

static void sort_offered(const struct search *x)
{
    struct planner *p = x->p;
    if (x->victim_order == BY_LOSS)
        preemption_victims_sort(p->offered, p->n_offered);
    else if (p->n_offered > 1)
        qsort(p->offered, p->n_offered, sizeof *p->offered,
            x->victim_order == LARGE_FIRST ? compare_large : compare_small);
}

/* Adds the victims on this node in order of preference. False: insufficient, none is added. */
static bool add_victims_on_node(const struct search *x, const struct node *n)
{
    struct planner *p = x->p;
    size_t from = p->n_victims;
    p->n_offered = 0;
    LIST_FOREACH (&n->attempts, l) {
        const struct job *j = LIST_ENTRY(l, struct attempt, on_node)->job;
        if (!is_chosen(x, j) && may_evict(x, j))
            *GROW(p->offered, p->n_offered) = (struct victim){.job = j,
                .over = x->by_qos ? 0 : *over_of(x, j),
                .saves = j->row.spec.method != CKPT_NONE,
                .unsaved = preemption_victims_unsaved(j, x->now.wall)};
    }
    sort_offered(x);
    for (size_t k = 0; k < p->n_offered && !has_capacity(x, n); k++)
        if (may_give(x, p->offered[k].job))
            add_victim(x, &p->offered[k]);
    if (has_capacity(x, n)) {
        drop_needless_victims(x, from, &n->row.id, 1);
        return true;
    }
    while (p->n_victims > from)
        drop_victim(x, p->n_victims - 1);
    return false;
}

static struct preempt_cost cost_of_victims(const struct search *x)
{
    struct preempt_cost t = {.n = x->p->n_victims, .over = INT64_MAX, .all_save = true};
    for (size_t k = 0; k < x->p->n_victims; k++) {
        const struct victim *v = &x->p->victims[k];
        t.over = v->over < t.over ? v->over : t.over;
        t.all_save &= v->saves;
        t.unsaved += v->unsaved;
    }
    return t;
}

static int compare_costs(const struct preempt_cost *a, const struct preempt_cost *b)
{
    if (a->over != b->over)
        return a->over > b->over ? -1 : 1; /* no affected team is best */
    if (a->all_save != b->all_save)
        return a->all_save ? -1 : 1;
    if (a->unsaved != b->unsaved)
        return a->unsaved < b->unsaved ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

static int compare_clearable(const void *x, const void *y)
{
    const struct clearable_node *a = x, *b = y;
    int by_cost = compare_costs(&a->cost, &b->cost);
    return by_cost ? by_cost
                   : (a->node->row.id > b->node->row.id) - (a->node->row.id < b->node->row.id);
}

static int compare_nodes(const void *x, const void *y)
{
    const struct clearable_node *a = x, *b = y;
    if ((a->cost.n == 0) != (b->cost.n == 0))
        return a->cost.n == 0 ? -1 : 1;
    return (a->node->row.id > b->node->row.id) - (a->node->row.id < b->node->row.id);
}

static void forget(const struct search *x)
{
    while (x->p->n_victims > 0)
        drop_victim(x, x->p->n_victims - 1);
}

/* Nodes of the pool that could be cleared, each by itself, into p->clearable, cheapest first. */
static void find_clearable_nodes(const struct search *x, const struct pool *pool)
{
    struct planner *p = x->p;
    p->n_clearable = 0;
    LIST_FOREACH (nodes_by_growth(x->m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_growth);
        bool twice = x->s->nodes > 1 && n->reserved_for == x->s && n->claims > 0;
        if (n->pool != pool || !resources_fit(&x->s->need, &n->row.total) || !node_suits(n, x->s) ||
            reserve_is_taken(n, x->s) || twice || !maintenance_allows(n, x->s, x->now.wall) ||
            !add_victims_on_node(x, n))
            continue;
        *GROW(p->clearable, p->n_clearable) = (struct clearable_node){cost_of_victims(x), n};
        forget(x);
    }
    if (p->n_clearable > 1)
        qsort(p->clearable, p->n_clearable, sizeof *p->clearable,
            x->victim_order == BY_LOSS ? compare_clearable : compare_nodes);
}

/* Clears as many nodes of the pool as a job of the shape needs. */
static bool clear_pool(const struct search *x, const struct pool *pool)
{
    struct planner *p = x->p;
    size_t n = 0, least = (size_t)x->s->least;
    p->n_cleared = 0;
    find_clearable_nodes(x, pool);
    if (p->n_clearable < least)
        return false;
    for (size_t k = 0; k < p->n_clearable && n < least; k++) {
        if (add_victims_on_node(x, p->clearable[k].node))
            p->claim[n++] = p->clearable[k].node->row.id;
        p->n_cleared = n;
    }
    if (n == least)
        drop_needless_victims(x, 0, p->claim, n);
    return n == least;
}

/* In the pool with the lowest cost. */
static bool choose_pool(const struct search *x)
{
    const struct pool *best = NULL;
    struct preempt_cost least = {0};
    LIST_FOREACH (model_pools(x->m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        forget(x);
        if (!shape_allows_pool(x->s, pool) || !clear_pool(x, pool))
            continue;
        const struct preempt_cost t = cost_of_victims(x);
        if (best && compare_costs(&t, &least) >= 0)
            continue;
        best = pool;
        least = t;
    }
    forget(x);
    return best && clear_pool(x, best);
}

bool preemption_victims_choose(
    struct planner *p, const struct model *m, const struct shape *s, bool by_qos, struct stamp now)
{
    struct search x = {
        .p = p, .m = m, .s = s, .by_qos = by_qos, .now = now, .victim_order = LARGE_FIRST};
    p->n_victims = 0;
    compute_team_excess(&x);
    if (!choose_pool(&x)) {
        x.victim_order = SMALL_FIRST;
        if (!choose_pool(&x))
            return false;
    }
    enum victim_order enough = x.victim_order;
    x.victim_order = BY_LOSS;
    if (choose_pool(&x))
        return true;
    x.victim_order = enough;
    return choose_pool(&x);
}
