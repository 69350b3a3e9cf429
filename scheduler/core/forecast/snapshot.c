/* SPDX-License-Identifier: Apache-2.0
 *
 * The snapshot of the model that simulation runs start from: pending jobs and limits, existing,
 * running and coming capacity, and which jobs may go where.
 */
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/boots.h"
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 1024 /* simulated individually */
#define BEHIND_MAX 64  /* shapes behind it that may go where it does not fit */
#define NAMED_MAX 1024 /* runs with a history by name; others use that of their account */

/* ---- classes of machines ---- */

/* True if each job that names nodes (--nodelist, --exclude) may use both or neither. */
static bool match_same_node_lists(
    const struct forecast_snapshot *p, const struct node *a, const struct node *b)
{
    for (int32_t k = 0; k < p->n_naming; k++)
        if (constraints_allow(p->naming[k], a->row.name) !=
            constraints_allow(p->naming[k], b->row.name))
            return false;
    return true;
}

static bool is_same_class(const struct node *a, const struct node *b)
{
    return a->pool == b->pool && a->row.market == b->row.market &&
           memcmp(&a->row.total, &b->row.total, sizeof a->row.total) == 0 &&
           a->row.criu == b->row.criu && a->row.price_uusd_h == b->row.price_uusd_h &&
           a->gpu.memory_mib == b->gpu.memory_mib && str_eq(a->gpu.model, b->gpu.model) &&
           str_eq(a->features, b->features) && a->resources.n == b->resources.n &&
           memcmp(a->resources.v, b->resources.v, a->resources.n * sizeof a->resources.v[0]) == 0;
}

static int32_t class_of_node(struct forecast_snapshot *p, const struct node *n)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].node && is_same_class(p->node_class[k].node, n) &&
            match_same_node_lists(p, p->node_class[k].node, n))
            return (int32_t)k;
    *GROW(p->node_class, p->n_node_classes) = (struct node_class){.node = n, .total = n->row.total};
    return (int32_t)p->n_node_classes - 1;
}

static int32_t class_of_offer(struct forecast_snapshot *p, const struct offer *o)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].offer == o)
            return (int32_t)k;
    *GROW(p->node_class, p->n_node_classes) =
        (struct node_class){.offer = o, .total = offer_total(o)};
    return (int32_t)p->n_node_classes - 1;
}

/* Whether the price is within its maximum hourly cost (--max-usd-per-hour) and what is left of its
 * cap (--max-usd) and budgets. Changes of prices, of its user's allowance and of budgets are not
 * predicted. */
static bool price_is_affordable(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h)
{
    int64_t costs = s->least * resources_share(shape_takes(s, total), total, uusd_h);
    return budgets_afford(s, p, costs);
}

static bool node_allows(const struct node *n, const struct shape *s)
{
    return price_is_affordable(s, n->pool, &n->row.total, n->row.price_uusd_h) &&
           shape_allows_pool(s, n->pool) && resources_fit(&s->need, &n->row.total) &&
           node_can_criu(n, s->criu) && node_has_constraints(n, s) &&
           shape_may_use(s, n->pool, n->row.market);
}

static bool offer_allows(const struct offer *o, const struct shape *s)
{
    struct resources total = offer_total(o);
    return shape_allows_pool(s, o->pool) && resources_fit(&s->need, &total) &&
           pool_may_criu(o->pool, s->criu) && offer_suits(o, s) &&
           shape_may_use(s, o->pool, o->row.market) &&
           price_is_affordable(s, o->pool, &total, o->row.price_uusd_h);
}

static void fill_allowed_demands(struct forecast_snapshot *p)
{
    for (size_t k = 0; k < p->n_node_classes; k++) {
        struct node_class *of = &p->node_class[k];
        for (int32_t i = 0; i < p->n_demands; i++)
            if (of->node ? node_allows(of->node, p->demands[i].shape)
                         : offer_allows(of->offer, p->demands[i].shape))
                of->allowed_demands[i / 64] |= 1ULL << (i % 64);
    }
}

/* ---- limits ---- */

static void add_group(struct forecast_snapshot *p, const struct allowance *w)
{
    if (!w->is_limited || p->n_groups == GROUPS_MAX)
        return;
    p->group_of[w->index] = (uint8_t)p->n_groups;
    struct group *g = &p->groups[p->n_groups++];
    g->of = w;
    memcpy(g->used, w->used, sizeof g->used);
}

static void gather_groups(struct forecast_snapshot *p, const struct account *mine)
{
    p->n_groups = 1;
    /* two more: the job's own may be new */
    p->group_of = mem_array((size_t)limits_n_allowances(p->m) + 2, sizeof *p->group_of);
    add_group(p, &mine->allowance);
    add_group(p, &mine->team->allowance);
    LIST_FOREACH (share_teams(p->m), lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        if (t != mine->team)
            add_group(p, &t->allowance);
        LIST_FOREACH (&t->accounts, la)
            if (LIST_ENTRY(la, struct account, in_team) != mine)
                add_group(p, &LIST_ENTRY(la, struct account, in_team)->allowance);
    }
}

/* ---- pending jobs ---- */

struct before queue_before(
    const struct model *m, const struct shape *s, struct queue_position at, int64_t *left)
{
    struct before b = {.last_16 = s->position_16, .exact = true};
    if (s->pending.n == 0 || queue_position_order(queue_position_of(s), at) >= 0)
        return b;
    int64_t end_16 = s->pending.n == 1 ? s->position_16 : shape_position_16(m, s, s->last.since_ms);
    if (end_16 < at.at_16 || s->pending.n == 1) {
        b.last_16 = end_16;
        b.n = s->n_wanted;
        return b;
    }
    for (const struct tree_link *l = *left > 0 ? tree_first(&s->pending) : NULL; *left > 0;
         l = tree_next(l), --*left) {
        const struct job *j = l ? TREE_ENTRY(l, struct job, in_shape) : NULL;
        struct queue_position own = j ? job_position(m, j) : at;
        if (queue_position_order(own, at) >= 0)
            return b;
        b.last_16 = own.at_16;
        b.n += j->width;
    }
    double part = end_16 > s->position_16
                      ? (double)(at.at_16 - s->position_16) / (double)(end_16 - s->position_16)
                      : 1;
    b.n = (int64_t)((double)s->n_wanted * part + 0.5);
    b.n = b.n > 0 ? b.n : 1;
    b.last_16 = at.at_16;
    b.exact = false;
    return b;
}

/* The demand most similar to these jobs, by a weighted distance of size, limit and pool. */
static int32_t most_similar_demand(const struct forecast_snapshot *p, const struct shape *s)
{
    int32_t best = 0;
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < p->n_demands; k++) {
        const struct shape *o = p->demands[k].shape;
        if (k == p->mine)
            continue;
        int64_t d =
            llabs(o->mcpu - s->mcpu) + (o->need.gpus > 0) * (s->need.gpus == 0) * (1LL << 40) +
            llabs((int64_t)o->least - s->least) * 1000 +
            llabs(o->limit_ms - s->limit_ms) / 3600000 + (str_eq(o->pool, s->pool) ? 0 : 1LL << 40);
        if (d < least) {
            least = d;
            best = k;
        }
    }
    return best;
}

static int32_t new_demand(
    struct forecast_snapshot *p, const struct shape *s, struct queue_position at)
{
    const struct account *a = s->account;
    p->demands[p->n_demands] = (struct forecast_demand){.position = at,
        .last_at = at.at_16,
        .shape = s,
        .need = s->need,
        .nodes = s->least,
        .group = {p->group_of[a->allowance.index], p->group_of[a->team->allowance.index]}};
    return p->n_demands++;
}

/* Reservoir sampling (Vitter's algorithm R), with Knuth's multiplicative hash for random numbers.
 */
static void add_history(struct forecast_demand *l, const struct runtimes *r)
{
    if (!r)
        return;
    int at = l->n_histories;
    if (at < HISTORIES)
        l->n_histories++;
    else
        at = (int)(((uint64_t)l->n_seen * 2654435761u) % (uint64_t)(l->n_seen + 1));
    l->n_seen++;
    if (at < HISTORIES)
        l->histories[at] = r;
}

static void add_shape(struct forecast_snapshot *p, struct map *demands, const struct shape *s,
    bool behind, const struct before *b)
{
    bool limited = s->account->allowance.is_limited || s->account->team->allowance.is_limited ||
                   s->owner != CORE_ID_NONE;
    int64_t key = 4 * (limited ? s->id : s->demand_class->id) + 2 * limited + behind;
    int32_t at = (int32_t)(intptr_t)map_get(demands, key) - 1;
    if (at < 0) {
        at = p->n_demands < FORECAST_DEMANDS - 1 - (behind ? 0 : 8)
                 ? new_demand(p, s, queue_position_of(s))
                 : most_similar_demand(p, s);
        map_put(demands, key, (void *)(intptr_t)(at + 1));
    }
    struct forecast_demand *l = &p->demands[at];
    l->left += b->n;
    l->last_at = b->last_16 > l->last_at ? b->last_16 : l->last_at;
    add_history(l, p->n_named++ < NAMED_MAX ? runtimes_of(p->m, model_job(p->m, s->head))
                                            : runtimes_of_account(p->m, s->account));
}

static void add_read(struct forecast_snapshot *p, struct map *demands, const struct allowance *w,
    const struct forecast_request *a, int64_t *left)
{
    for (const struct shape *s = queue_first_throttled(w); s; s = queue_next_throttled(s)) {
        struct before b = queue_before(p->m, s, a->at, left);
        if (b.n > 0)
            add_shape(p, demands, s, false, &b);
    }
}

static void gather_demands(struct forecast_snapshot *p, const struct forecast_request *a)
{
    struct map demands = {0};
    int64_t left = QUEUE_WALK_MAX;
    int behind = 0;
    struct queue_walk walk = {0};
    const struct shape *s;
    p->mine = NO_INDEX;
    queue_walk_begin(&walk, p->m);
    while ((s = queue_walk_next(&walk)) != NULL &&
           queue_position_order(queue_position_of(s), a->at) < 0) {
        struct before b = queue_before(p->m, s, a->at, &left);
        add_shape(p, &demands, s, false, &b);
    }
    for (size_t k = 1; k < (size_t)p->n_groups; k++)
        add_read(p, &demands, p->groups[k].of, a, &left);
    p->mine = new_demand(p, a->shape, a->at);
    p->demands[p->mine].left = 1;
    p->demands[p->mine].from_ms = 0;
    add_history(&p->demands[p->mine], a->history);
    for (; s && behind < BEHIND_MAX && p->n_demands < FORECAST_DEMANDS - 1;
         s = queue_walk_next(&walk), behind++) {
        struct before all = {.n = s->n_wanted, .last_16 = s->position_16};
        add_shape(p, &demands, s, true, &all);
    }
    queue_walk_end(&walk);
    for (int32_t k = 0; k < p->n_demands; k++) {
        struct forecast_demand *l = &p->demands[k];
        l->step = l->left > 1 ? (l->last_at - l->position.at_16) / (l->left - 1) : 0;
    }
    map_deinit(&demands);
}

/* The job in question comes first. */
static void gather_naming(struct forecast_snapshot *p)
{
    const struct constraints *mine = p->demands[p->mine].shape->constraints;
    if (constraints_name_nodes(mine))
        p->naming[p->n_naming++] = mine;
    for (int32_t k = 0; k < p->n_demands && p->n_naming < NAMING_MAX; k++) {
        const struct constraints *x = p->demands[k].shape->constraints;
        if (k != p->mine && constraints_name_nodes(x))
            p->naming[p->n_naming++] = x;
    }
}

/* ---- capacity ---- */

static void add_run(struct forecast_snapshot *p, const struct attempt *a, int32_t slot)
{
    const struct job *j = a->job;
    bool named = p->n_runs < NAMED_MAX;
    int32_t at = (int32_t)p->n_runs;
    struct running *g = GROW(p->running, p->n_running);
    struct run *r = GROW(p->runs, p->n_runs);
    *g = (struct running){.began_ms = a->row.assigned_at.ms,
        .job = j->row.id,
        .is_stopping = a->row.state == ATTEMPT_STOPPING,
        .history = named ? runtimes_of(p->m, j) : runtimes_of_account(p->m, j->account)};
    *r = (struct run){.limit_ms = j->row.spec.time_limit_ms > 0
                                      ? g->began_ms + j->row.spec.time_limit_ms
                                      : NEVER_MS,
        .shape = j->shape,
        .uusd_h = a->uusd_h,
        .slot = slot,
        .prev = NO_INDEX,
        .next = NO_INDEX,
        .counts = &a->in_job == list_first(&j->ranks)};
    if (g->is_stopping)
        r->limit_ms = p->now.wall.ms;
    if (slot == NO_INDEX)
        return;
    r->next = p->slots[slot].first;
    if (r->next != NO_INDEX)
        p->runs[r->next].prev = at;
    p->slots[slot].first = at;
}

static int32_t demand_of(const struct forecast_snapshot *p, const struct shape *s)
{
    for (int32_t k = 0; s && k < p->n_demands; k++)
        if (p->demands[k].shape == s && p->demands[k].left > 0)
            return k;
    return NO_INDEX;
}

static void copy_reservation(struct forecast_snapshot *p, int32_t slot, const struct node *n)
{
    struct slot *c = &p->slots[slot];
    c->kept_for = demand_of(p, n->kept_for ? n->kept_for->shape : n->reserved_for);
    if (c->kept_for == NO_INDEX)
        return;
    struct forecast_demand *l = &p->demands[c->kept_for];
    if (l->nodes == 1 && l->has_reserved) {
        c->kept_for = NO_INDEX; /* claimed for several of them */
        return;
    }
    c->until_ms = n->kept_for ? p->now.wall.ms : n->reserved_for->reserved_until;
    p->n_reserved += !l->has_reserved;
    c->next_kept = l->has_reserved ? l->kept : NO_INDEX;
    l->has_reserved = true;
    l->kept = slot;
}

static void add_attempts(struct forecast_snapshot *p, const struct node *n, int32_t slot)
{
    LIST_FOREACH (&n->attempts, l)
        add_run(p, LIST_ENTRY(l, struct attempt, on_node), slot);
}

static void add_node(struct forecast_snapshot *p, const struct node *n, int32_t node_class)
{
    int32_t slot = (int32_t)p->n_slots;
    int64_t idle_ms = mono_is_set(n->idle_since)
                          ? p->now.wall.ms - (p->now.mono.ms - n->idle_since.ms)
                          : p->now.wall.ms;
    if (p->n_recent_ends < RECENT_ENDS_MAX)
        p->recent_ends[p->n_recent_ends++] = slot;
    *GROW(p->slots, p->n_slots) = (struct slot){.free = n->free,
        .node = n,
        .idle_ms = idle_ms,
        .node_class = node_class,
        .first = NO_INDEX,
        .kept_for = NO_INDEX};
    copy_reservation(p, slot, n);
    add_attempts(p, n, slot);
}

/* Its capacity is not simulated, but its jobs' share of a limit or of licences that the job needs
 * is. */
static void add_if_limited(struct forecast_snapshot *p, const struct node *n)
{
    const struct forecast_demand *mine = &p->demands[p->mine];
    bool licences = mine->shape->constraints && mine->shape->constraints->licences.n > 0;
    bool limits = mine->group[0] || mine->group[1];
    if (!licences && !limits)
        return;
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if ((limits && a->job->account->team == mine->shape->account->team) ||
            (licences && a->job->shape->constraints))
            add_run(p, a, NO_INDEX);
    }
}

static bool own_job_allowed(const struct forecast_snapshot *p, int32_t node_class)
{
    return p->node_class[node_class].allowed_demands[p->mine / 64] >> (p->mine % 64) & 1;
}

/* Of a large cluster a sample represents the whole: of the nodes that the job may use, and of the
 * jobs that wait for them. */
static void choose_sample(struct forecast_snapshot *p, int64_t n_nodes)
{
    int64_t mine = 0, ahead = 0;
    p->each = 1;
    p->faster = 1;
    if (n_nodes <= NODES_MAX)
        return;
    for (size_t k = 0; k < p->n_node_classes; k++)
        mine += own_job_allowed(p, (int32_t)k) ? p->node_class[k].n_nodes : 0;
    p->each = (mine + NODES_MAX - 1) / NODES_MAX;
    p->each = p->each > 1 ? p->each : 1;
    for (int32_t i = 0; i < p->n_demands; i++) {
        struct forecast_demand *l = &p->demands[i];
        double here = 0, all = 0;
        for (size_t k = 0; k < p->n_node_classes; k++) {
            const struct node_class *of = &p->node_class[k];
            bool may = of->node && of->allowed_demands[i / 64] >> (i % 64) & 1;
            double mcpu = may ? (double)of->n_nodes *
                                    (double)priority_mcpu(model_policy(p->m), &of->node->row.total)
                              : 0;
            all += mcpu;
            here += own_job_allowed(p, (int32_t)k) ? mcpu : 0;
        }
        if (i == p->mine) {
            l->nodes = (int32_t)((l->nodes + p->each - 1) / p->each);
            continue;
        }
        int64_t left = (int64_t)((double)l->left * (all > 0 ? here / all : 1) + 0.5);
        ahead += queue_position_order(l->position, p->demands[p->mine].position) < 0 ? left : 0;
        l->left = (left + (i * p->each / p->n_demands)) / p->each; /* balances rounding */
        l->step *= p->each;
    }
    if (ahead + 1 < p->each)
        p->faster = (double)p->each / (double)(ahead + 1);
}

static void find_maintenance(struct forecast_snapshot *p)
{
    for (size_t k = 0; k < MAINTENANCES_MAX; k++)
        p->is_maintained |= maintenance_all(p->m)[k] != NULL;
}

/* Accepts work when its reservation for maintenance is over. */
static bool is_closed_for_now(const struct node *n)
{
    return n->is_closed && n->row.state == NODE_UP && n->throttle == NODE_THROTTLE_NONE &&
           !n->disk_full[0];
}

/* Nodes that accept work, the most recent growth first, then those that will. */
static const struct node *next_node(const struct forecast_snapshot *p, const struct node *after)
{
    const struct link *l = NULL;
    if (!after || node_takes_work(after)) {
        l = after ? list_next(nodes_by_growth(p->m), &after->by_growth)
                  : list_first(nodes_by_growth(p->m));
        if (l)
            return LIST_ENTRY(l, struct node, by_growth);
        if (!p->is_maintained)
            return NULL;
        l = list_first(model_nodes(p->m));
    } else {
        l = list_next(model_nodes(p->m), &after->in_all);
    }
    while (l && !is_closed_for_now(LIST_ENTRY(l, struct node, in_all)))
        l = list_next(model_nodes(p->m), l);
    return l ? LIST_ENTRY(l, struct node, in_all) : NULL;
}

static void gather_nodes(struct forecast_snapshot *p)
{
    int64_t n = 0;
    for (const struct node *node = NULL; (node = next_node(p, node)) != NULL; n++) {
        int32_t node_class = class_of_node(p, node);
        p->node_class[node_class].n_nodes++;
    }
    fill_allowed_demands(p);
    choose_sample(p, n);
    int64_t skipped = 0;
    for (const struct node *node = NULL; (node = next_node(p, node)) != NULL;) {
        int32_t node_class = class_of_node(p, node);
        bool is_kept = node->reserved_for && node->reserved_for == p->demands[p->mine].shape;
        if (n <= NODES_MAX ||
            (own_job_allowed(p, node_class) && (skipped++ % p->each == 0 || is_kept)))
            add_node(p, node, node_class);
        else
            add_if_limited(p, node);
    }
}

/* Runs elsewhere matter if they count for a limit or use licences. */
static void gather_unavailable_nodes(struct forecast_snapshot *p)
{
    if (p->n_groups <= 1 && licences_count(p->m) == 0)
        return;
    LIST_FOREACH (model_nodes(p->m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!node_takes_work(n) && !is_closed_for_now(n))
            add_attempts(p, n, NO_INDEX);
    }
}

static void gather_machines(struct forecast_snapshot *p)
{
    LIST_FOREACH (model_pools(p->m), lp) {
        const struct pool *pool = LIST_ENTRY(lp, struct pool, in_all);
        if (!pool->row.elastic || pool->row.max_nodes == 0)
            continue;
        LIST_FOREACH (&pool->offers, lo)
            if (LIST_ENTRY(lo, struct offer, in_pool)->row.rank != OFFER_WITHDRAWN)
                class_of_offer(p, LIST_ENTRY(lo, struct offer, in_pool));
    }
    LIST_FOREACH (model_instances(p->m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (instance_is_coming(i) && i->offer)
            class_of_offer(p, i->offer);
    }
}

static void gather_coming(struct forecast_snapshot *p)
{
    LIST_FOREACH (model_instances(p->m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (!instance_is_coming(i) || !i->offer || pool_boots_fail(i->pool) ||
            (i->row.state != INSTANCE_LAUNCHED && offer_is_unreliable(i->offer)))
            continue;
        int32_t node_class = class_of_offer(p, i->offer);
        *GROW(p->slots, p->n_slots) = (struct slot){.free = offer_total(i->offer),
            .open_ms = i->row.intended_at.ms,
            .node_class = node_class,
            .first = NO_INDEX,
            .kept_for = NO_INDEX};
    }
}

void forecast_snapshot_take(struct forecast_snapshot *p, const struct forecast_request *a)
{
    gather_groups(p, a->shape->account);
    gather_demands(p, a);
    for (size_t k = 0; k < licences_count(p->m); k++)
        p->licences[k] = licence_at(p->m, k)->what.n - licence_at(p->m, k)->used;
    gather_naming(p);
    gather_machines(p);
    find_maintenance(p);
    gather_nodes(p);
    gather_coming(p);
    gather_unavailable_nodes(p);
}

void forecast_snapshot_destroy(struct forecast_snapshot *p)
{
    free(p->node_class);
    free(p->slots);
    free(p->runs);
    free(p->running);
    free(p->group_of);
    free(p);
}
