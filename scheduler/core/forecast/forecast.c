/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture that plays start from, and what they come to.
 */
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_held.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/market.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 1024 /* that are looked at one by one */
#define BEHIND_MAX 64  /* shapes that stand behind it and may go where it does not fit */
#define NAMED_MAX 1024 /* so many runs are drawn by their names, the others by whose they are */
#define SEED 0x62656c6179ULL

/* ---- kinds of machines ---- */

/* Some jobs are told which by their names. */
static bool are_named_alike(const struct picture *p, const struct node *a, const struct node *b)
{
    for (int32_t k = 0; k < p->n_naming; k++)
        if (constraints_allow(p->naming[k], a->row.name) !=
            constraints_allow(p->naming[k], b->row.name))
            return false;
    return true;
}

static bool is_like(const struct node *a, const struct node *b)
{
    return a->pool == b->pool && a->row.market == b->row.market &&
           memcmp(&a->row.total, &b->row.total, sizeof a->row.total) == 0 &&
           a->row.criu == b->row.criu && a->row.price_uusd_h == b->row.price_uusd_h &&
           a->gpu.memory_mib == b->gpu.memory_mib && str_eq(a->gpu.model, b->gpu.model) &&
           str_eq(a->features, b->features) && a->resources.n == b->resources.n &&
           memcmp(a->resources.v, b->resources.v, a->resources.n * sizeof a->resources.v[0]) == 0;
}

static int32_t class_of_node(struct picture *p, const struct node *n)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].node && is_like(p->node_class[k].node, n) &&
            are_named_alike(p, p->node_class[k].node, n))
            return (int32_t)k;
    *GROW(p->node_class, p->n_node_classes) = (struct node_class){.node = n, .total = n->row.total};
    return (int32_t)p->n_node_classes - 1;
}

static int32_t class_of_offer(struct picture *p, const struct offer *o)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].offer == o)
            return (int32_t)k;
    *GROW(p->node_class, p->n_node_classes) =
        (struct node_class){.offer = o, .total = offer_total(o)};
    return (int32_t)p->n_node_classes - 1;
}

/* What costs more an hour now than it takes (--max-usd-per-hour), or more in all than is left of
 * what it may (--max-usd), is not for it: neither prices nor what its user may yet allow are
 * foretold. Nor is what a budget will have left: what it does not pay for now is not promised. */
static bool takes_price(
    const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h)
{
    int64_t costs = s->least * resources_share(shape_takes(s, total), total, uusd_h);
    return budgets_afford(s, p, costs);
}

/* What it costs an hour on the cheapest machine that may hold it; -1: there is none. */
static int64_t least_uusd_h(const struct picture *p, int32_t lot, const struct pool **ret_pool)
{
    const struct shape *s = p->lots[lot].shape;
    int64_t least = -1;
    for (size_t k = 0; k < p->n_node_classes; k++) {
        const struct node_class *of = &p->node_class[k];
        int64_t price = of->node ? of->node->row.price_uusd_h : of->offer->row.price_uusd_h;
        int64_t uusd_h = s->least * resources_share(shape_takes(s, &of->total), &of->total, price);
        if (!(of->may[lot / 64] >> (lot % 64) & 1) || (least >= 0 && uusd_h >= least))
            continue;
        least = uusd_h;
        *ret_pool = of->node ? of->node->pool : of->offer->pool;
    }
    return least;
}

/* What the jobs of the lot will be set aside for in a budget; 0: it is none of theirs, or they
 * begin nothing. */
static int64_t set_aside(const struct picture *p, int32_t lot, const struct budget *b)
{
    const struct lot *l = &p->lots[lot];
    const struct pool *pool = NULL;
    int64_t uusd_h = l->shape->in_budgets >> b->index & 1 ? least_uusd_h(p, lot, &pool) : -1, each;
    if (uusd_h < 0 || (b->options->pool[0] && !str_eq(b->options->pool, pool->row.name)))
        return 0;
    each = budgets_needs(b, l->shape, uusd_h, pool_input_uusd(pool, l->shape->constraints));
    return each > 0 && l->left > INT64_MAX / 4 / each ? INT64_MAX / 4 : each * l->left;
}

/* A budget that will be used up by what stands before it; NULL: none. */
static const struct budget *spent_before(const struct picture *p)
{
    for (size_t k = 0; k < budgets_count(p->m); k++) {
        const struct budget *b = budgets_at(p->m, k);
        int64_t left = p->lots[p->mine].shape->in_budgets >> k & 1 ? budgets_left(b) : INT64_MAX,
                sum = 0;
        for (int32_t i = 0; left != INT64_MAX && i < p->n_lots && sum <= left; i++)
            if (i == p->mine || place_order(p->lots[i].place, p->lots[p->mine].place) < 0)
                sum += set_aside(p, i, b);
        if (sum > left)
            return b;
    }
    return NULL;
}

/* A budget of it that would not pay for it on any machine; NULL: none. */
static const struct budget *unpaid_by(const struct picture *p)
{
    const struct shape *s = p->lots[p->mine].shape;
    for (size_t k = 0; s->in_budgets && k < p->n_node_classes; k++) {
        const struct node_class *of = &p->node_class[k];
        int64_t price = of->node ? of->node->row.price_uusd_h : of->offer->row.price_uusd_h;
        int64_t uusd_h = s->least * resources_share(shape_takes(s, &of->total), &of->total, price);
        const struct budget *b =
            resources_fit(&s->need, &of->total)
                ? budgets_lacking(s, of->node ? of->node->pool : of->offer->pool, uusd_h)
                : NULL;
        if (b)
            return b;
    }
    return NULL;
}

static bool node_may(const struct node *n, const struct shape *s)
{
    return takes_price(s, n->pool, &n->row.total, n->row.price_uusd_h) &&
           shape_allows_pool(s, n->pool) && resources_fit(&s->need, &n->row.total) &&
           node_can_criu(n, s->criu) && node_has_constraints(n, s) &&
           shape_may_use(s, n->pool, n->row.market);
}

static bool offer_may(const struct offer *o, const struct shape *s)
{
    struct resources total = offer_total(o);
    return shape_allows_pool(s, o->pool) && resources_fit(&s->need, &total) &&
           pool_may_criu(o->pool, s->criu) && offer_suits(o, s) &&
           shape_may_use(s, o->pool, o->row.market) &&
           takes_price(s, o->pool, &total, o->row.price_uusd_h);
}

static void note_who_may(struct picture *p)
{
    for (size_t k = 0; k < p->n_node_classes; k++) {
        struct node_class *of = &p->node_class[k];
        for (int32_t i = 0; i < p->n_lots; i++)
            if (of->node ? node_may(of->node, p->lots[i].shape)
                         : offer_may(of->offer, p->lots[i].shape))
                of->may[i / 64] |= 1ULL << (i % 64);
    }
}

/* ---- who is limited ---- */

static void add_group(struct picture *p, const struct allowance *w)
{
    if (!w->is_limited || p->n_groups == GROUPS_MAX)
        return;
    p->group_of[w->index] = (uint8_t)p->n_groups;
    struct group *g = &p->groups[p->n_groups++];
    g->of = w;
    memcpy(g->used, w->used, sizeof g->used);
}

static void gather_groups(struct picture *p, const struct account *mine)
{
    p->n_groups = 1;
    /* two more: who asks may be new */
    p->group_of = mem_array((size_t)limits_n_allowances(p->m) + 2, sizeof *p->group_of);
    add_group(p, &mine->may);
    add_group(p, &mine->team->may);
    LIST_FOREACH (share_teams(p->m), lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        if (t != mine->team)
            add_group(p, &t->may);
        LIST_FOREACH (&t->accounts, la)
            if (LIST_ENTRY(la, struct account, in_team) != mine)
                add_group(p, &LIST_ENTRY(la, struct account, in_team)->may);
    }
}

/* ---- who waits ---- */

static struct place place_of(const struct model *m, const struct job *j)
{
    return (struct place){job_place_16(m, j), j->row.id};
}

struct before queue_before(
    const struct model *m, const struct shape *s, struct place at, int64_t *left)
{
    struct before b = {.last_16 = s->place_16, .exact = true};
    if (s->pending.n == 0 || place_order(queue_place(s), at) >= 0)
        return b;
    int64_t end_16 = s->pending.n == 1 ? s->place_16 : shape_place_16(m, s, s->last.since_ms);
    if (end_16 < at.at_16 || s->pending.n == 1) {
        b.last_16 = end_16;
        b.n = s->n_wanted;
        return b;
    }
    for (const struct tree_link *l = *left > 0 ? tree_first(&s->pending) : NULL; *left > 0;
         l = tree_next(l), --*left) {
        const struct job *j = l ? TREE_ENTRY(l, struct job, in_shape) : NULL;
        struct place own = j ? place_of(m, j) : at;
        if (place_order(own, at) >= 0)
            return b;
        b.last_16 = own.at_16;
        b.n += j->width;
    }
    double part = end_16 > s->place_16
                      ? (double)(at.at_16 - s->place_16) / (double)(end_16 - s->place_16)
                      : 1;
    b.n = (int64_t)((double)s->n_wanted * part + 0.5);
    b.n = b.n > 0 ? b.n : 1;
    b.last_16 = at.at_16;
    b.exact = false;
    return b;
}

/* The lot whose jobs are the most like these. */
static int32_t most_alike(const struct picture *p, const struct shape *s)
{
    int32_t best = 0;
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < p->n_lots; k++) {
        const struct shape *o = p->lots[k].shape;
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

static int32_t new_lot(struct picture *p, const struct shape *s, struct place at)
{
    const struct account *a = s->account;
    p->lots[p->n_lots] = (struct lot){.place = at,
        .last_at = at.at_16,
        .shape = s,
        .need = s->need,
        .nodes = s->least,
        .group = {p->group_of[a->may.index], p->group_of[a->team->may.index]}};
    return p->n_lots++;
}

/* A sample of whose they are: each as likely as any other. */
static void add_history(struct lot *l, const struct runtimes *r)
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

static void add_shape(
    struct picture *p, struct map *lots, const struct shape *s, bool behind, const struct before *b)
{
    bool limited =
        s->account->may.is_limited || s->account->team->may.is_limited || s->owner != CORE_ID_NONE;
    int64_t key = 4 * (limited ? s->id : s->demand_class->id) + 2 * limited + behind;
    int32_t at = (int32_t)(intptr_t)map_get(lots, key) - 1;
    if (at < 0) {
        at = p->n_lots < FORECAST_LOTS - 1 - (behind ? 0 : 8) ? new_lot(p, s, queue_place(s))
                                                              : most_alike(p, s);
        map_put(lots, key, (void *)(intptr_t)(at + 1));
    }
    struct lot *l = &p->lots[at];
    l->left += b->n;
    l->last_at = b->last_16 > l->last_at ? b->last_16 : l->last_at;
    add_history(l, p->n_named++ < NAMED_MAX ? runtimes_of(p->m, model_job(p->m, s->head))
                                            : runtimes_of_account(p->m, s->account));
}

static void add_read(struct picture *p, struct map *lots, const struct allowance *w,
    const struct asker *a, int64_t *left)
{
    for (const struct shape *s = queue_first_throttled(w); s; s = queue_next_throttled(s)) {
        struct before b = queue_before(p->m, s, a->at, left);
        if (b.n > 0)
            add_shape(p, lots, s, false, &b);
    }
}

static void gather_lots(struct picture *p, const struct asker *a)
{
    struct map lots = {0};
    int64_t left = QUEUE_WALK_MAX;
    int behind = 0;
    struct queue_walk walk = {0};
    const struct shape *s;
    p->mine = NOBODY;
    queue_walk_begin(&walk, p->m);
    while ((s = queue_walk_next(&walk)) != NULL && place_order(queue_place(s), a->at) < 0) {
        struct before b = queue_before(p->m, s, a->at, &left);
        add_shape(p, &lots, s, false, &b);
    }
    for (size_t k = 1; k < (size_t)p->n_groups; k++)
        add_read(p, &lots, p->groups[k].of, a, &left);
    p->mine = new_lot(p, a->shape, a->at);
    p->lots[p->mine].left = 1;
    p->lots[p->mine].from_ms = 0;
    add_history(&p->lots[p->mine], a->history);
    for (; s && behind < BEHIND_MAX && p->n_lots < FORECAST_LOTS - 1;
         s = queue_walk_next(&walk), behind++) {
        struct before all = {.n = s->n_wanted, .last_16 = s->place_16};
        add_shape(p, &lots, s, true, &all);
    }
    queue_walk_end(&walk);
    for (int32_t k = 0; k < p->n_lots; k++) {
        struct lot *l = &p->lots[k];
        l->step = l->left > 1 ? (l->last_at - l->place.at_16) / (l->left - 1) : 0;
    }
    map_deinit(&lots);
}

/* Who asks before all others. */
static void gather_naming(struct picture *p)
{
    const struct constraints *mine = p->lots[p->mine].shape->constraints;
    if (constraints_name_nodes(mine))
        p->naming[p->n_naming++] = mine;
    for (int32_t k = 0; k < p->n_lots && p->n_naming < NAMING_MAX; k++) {
        const struct constraints *x = p->lots[k].shape->constraints;
        if (k != p->mine && constraints_name_nodes(x))
            p->naming[p->n_naming++] = x;
    }
}

/* ---- what there is ---- */

static void add_run(struct picture *p, const struct attempt *a, int32_t slot)
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
        .prev = NOBODY,
        .next = NOBODY,
        .counts = &a->in_job == list_first(&j->ranks)};
    if (g->is_stopping)
        r->limit_ms = p->now.wall.ms;
    if (slot == NOBODY)
        return;
    r->next = p->slots[slot].first;
    if (r->next != NOBODY)
        p->runs[r->next].prev = at;
    p->slots[slot].first = at;
}

static int32_t lot_of(const struct picture *p, const struct shape *s)
{
    for (int32_t k = 0; s && k < p->n_lots; k++)
        if (p->lots[k].shape == s && p->lots[k].left > 0)
            return k;
    return NOBODY;
}

static void keep_as_it_is(struct picture *p, int32_t slot, const struct node *n)
{
    struct slot *c = &p->slots[slot];
    c->kept_for = lot_of(p, n->kept_for ? n->kept_for->shape : n->reserved_for);
    if (c->kept_for == NOBODY)
        return;
    struct lot *l = &p->lots[c->kept_for];
    if (l->nodes == 1 && l->has_reserved) {
        c->kept_for = NOBODY; /* claims for several of them */
        return;
    }
    c->until_ms = n->kept_for ? p->now.wall.ms : n->reserved_for->reserved_until;
    p->n_reserved += !l->has_reserved;
    c->next_kept = l->has_reserved ? l->kept : NOBODY;
    l->has_reserved = true;
    l->kept = slot;
}

static void add_attempts(struct picture *p, const struct node *n, int32_t slot)
{
    LIST_FOREACH (&n->attempts, l)
        add_run(p, LIST_ENTRY(l, struct attempt, on_node), slot);
}

static void add_node(struct picture *p, const struct node *n, int32_t node_class)
{
    int32_t slot = (int32_t)p->n_slots;
    int64_t idle_ms = mono_is_set(n->idle_since)
                          ? p->now.wall.ms - (p->now.mono.ms - n->idle_since.ms)
                          : p->now.wall.ms;
    if (p->n_look < LOOK_MAX)
        p->look[p->n_look++] = slot;
    *GROW(p->slots, p->n_slots) = (struct slot){.free = n->free,
        .node = n,
        .idle_ms = idle_ms,
        .node_class = node_class,
        .first = NOBODY,
        .kept_for = NOBODY};
    keep_as_it_is(p, slot, n);
    add_attempts(p, n, slot);
}

/* Its room is not looked at, but what its jobs take of a limit, or of licences, that who asks
 * needs. */
static void add_if_limited(struct picture *p, const struct node *n)
{
    const struct lot *mine = &p->lots[p->mine];
    bool licences = mine->shape->constraints && mine->shape->constraints->licences.n > 0;
    bool limits = mine->group[0] || mine->group[1];
    if (!licences && !limits)
        return;
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if ((limits && a->job->account->team == mine->shape->account->team) ||
            (licences && a->job->shape->constraints))
            add_run(p, a, NOBODY);
    }
}

static bool is_mine(const struct picture *p, int32_t node_class)
{
    return p->node_class[node_class].may[p->mine / 64] >> (p->mine % 64) & 1;
}

/* Of a large cluster a part stands for the whole: of the nodes that who asks may use, and of what
 * waits for them. */
static void choose_part(struct picture *p, int64_t n_nodes)
{
    int64_t mine = 0, ahead = 0;
    p->each = 1;
    p->faster = 1;
    if (n_nodes <= NODES_MAX)
        return;
    for (size_t k = 0; k < p->n_node_classes; k++)
        mine += is_mine(p, (int32_t)k) ? p->node_class[k].n_nodes : 0;
    p->each = (mine + NODES_MAX - 1) / NODES_MAX;
    p->each = p->each > 1 ? p->each : 1;
    for (int32_t i = 0; i < p->n_lots; i++) {
        struct lot *l = &p->lots[i];
        double here = 0, all = 0;
        for (size_t k = 0; k < p->n_node_classes; k++) {
            const struct node_class *of = &p->node_class[k];
            bool may = of->node && of->may[i / 64] >> (i % 64) & 1;
            double mcpu = may ? (double)of->n_nodes *
                                    (double)order_mcpu(model_order(p->m), &of->node->row.total)
                              : 0;
            all += mcpu;
            here += is_mine(p, (int32_t)k) ? mcpu : 0;
        }
        if (i == p->mine) {
            l->nodes = (int32_t)((l->nodes + p->each - 1) / p->each);
            continue;
        }
        int64_t left = (int64_t)((double)l->left * (all > 0 ? here / all : 1) + 0.5);
        ahead += place_order(l->place, p->lots[p->mine].place) < 0 ? left : 0;
        l->left = (left + (i * p->each / p->n_lots)) / p->each; /* roundings that even out */
        l->step *= p->each;
    }
    if (ahead + 1 < p->each)
        p->faster = (double)p->each / (double)(ahead + 1);
}

static void gather_nodes(struct picture *p)
{
    int64_t n = 0;
    LIST_FOREACH (nodes_by_growth(p->m), l) {
        int32_t node_class = class_of_node(p, LIST_ENTRY(l, struct node, by_growth));
        p->node_class[node_class].n_nodes++;
        n++;
    }
    note_who_may(p);
    choose_part(p, n);
    int64_t skipped = 0;
    LIST_FOREACH (nodes_by_growth(p->m), l) {
        const struct node *node = LIST_ENTRY(l, struct node, by_growth);
        int32_t node_class = class_of_node(p, node);
        bool is_kept = node->reserved_for && node->reserved_for == p->lots[p->mine].shape;
        if (n <= NODES_MAX || (is_mine(p, node_class) && (skipped++ % p->each == 0 || is_kept)))
            add_node(p, node, node_class);
        else
            add_if_limited(p, node);
    }
}

/* What runs elsewhere matters where it counts in a limit, or holds licences. */
static void gather_elsewhere(struct picture *p)
{
    if (p->n_groups <= 1 && licences_count(p->m) == 0)
        return;
    LIST_FOREACH (model_nodes(p->m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!node_takes_work(n))
            add_attempts(p, n, NOBODY);
    }
}

static void gather_machines(struct picture *p)
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

static void gather_coming(struct picture *p)
{
    LIST_FOREACH (model_instances(p->m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        if (!instance_is_coming(i) || !i->offer || pool_boots_fail(i->pool) ||
            (i->row.state == INSTANCE_INTENDED && offer_is_doubtful(i->offer)))
            continue;
        int32_t node_class = class_of_offer(p, i->offer);
        *GROW(p->slots, p->n_slots) = (struct slot){.free = offer_total(i->offer),
            .open_ms = i->row.intended_at.ms,
            .node_class = node_class,
            .first = NOBODY,
            .kept_for = NOBODY};
    }
}

static void take_picture(struct picture *p, const struct asker *a)
{
    gather_groups(p, a->shape->account);
    gather_lots(p, a);
    for (size_t k = 0; k < licences_count(p->m); k++)
        p->licences[k] = licence_at(p->m, k)->what.n - licence_at(p->m, k)->used;
    gather_naming(p);
    gather_machines(p);
    gather_nodes(p);
    gather_coming(p);
    gather_elsewhere(p);
}

static void picture_destroy(struct picture *p)
{
    free(p->node_class);
    free(p->slots);
    free(p->runs);
    free(p->running);
    free(p->group_of);
    free(p);
}

/* ---- what plays come to ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const struct forecast_result *)a)->at_ms,
            y = ((const struct forecast_result *)b)->at_ms;
    return (x > y) - (x < y);
}

static bool anything_may(const struct picture *p)
{
    for (size_t k = 0; k < p->n_node_classes; k++)
        if (p->node_class[k].may[p->mine / 64] >> (p->mine % 64) & 1)
            return true;
    return false;
}

static const char *why_nothing_may(const struct shape *s)
{
    if (s->procurement == PROCURE_WAIT)
        return "it waits for better spot while there is time (--finish-by)";
    return s->max_uusd_h > 0 || s->is_capped
               ? "no machine that there is, or that may be launched, suits it at a price that it "
                 "takes"
               : "no machine that there is, or that may be launched, suits it";
}

static struct wall wall_of(const struct asker *a, const struct model *m, int64_t at_ms)
{
    if (at_ms >= NEVER_MS)
        return WALL_NONE;
    struct wall at = {at_ms}, open = a->row ? window_not_before(m, a->row, at) : at;
    return open.ms >= WALL_NEVER.ms ? WALL_NONE : open.ms > at_ms ? open : at;
}

static void run_all(struct picture *p, const struct asker *a, struct forecast *ret_forecast)
{
    struct forecast_result results[FORECAST_RUNS];
    uint64_t seed = SEED + (uint64_t)a->at.head;
    p->lots[p->mine].from_ms = a->from_ms;
    results[0] = forecast_run(p, false, seed, FORECAST_WORK);
    int64_t n = FORECAST_WORK / results[0].work;
    n = n < 1 ? 1 : n > FORECAST_RUNS ? FORECAST_RUNS : n - (n % 2 == 0);
    for (int64_t k = 1; k < n; k++)
        results[k] =
            forecast_run(p, false, seed + (uint64_t)k * 0x9e3779b97f4a7c15ULL, FORECAST_WORK);
    qsort(results, (size_t)n, sizeof results[0], by_time);
    p->lots[p->mine].from_ms = a->latest_from_ms;
    struct forecast_result latest = forecast_run(p, true, seed, FORECAST_WORK);
    int64_t latest_ms = latest.at_ms > results[n - 1].at_ms ? latest.at_ms : results[n - 1].at_ms;
    const struct forecast_result *median = &results[n / 2];
    int64_t now_ms = p->now.wall.ms, at_ms = median->at_ms;
    if (at_ms < NEVER_MS)
        at_ms = now_ms + (int64_t)((double)(at_ms - now_ms) / p->faster);
    ret_forecast->median = wall_of(a, p->m, at_ms > a->from_ms ? at_ms : a->from_ms);
    ret_forecast->latest = a->latest_from_ms < NEVER_MS ? wall_of(a, p->m, latest_ms) : WALL_NONE;
    ret_forecast->node = median->node ? median->node->row.id : CORE_ID_NONE;
    ret_forecast->offer = median->offer ? median->offer->row.id : CORE_ID_NONE;
    const struct budget *b = anything_may(p) ? NULL : unpaid_by(p);
    if (b)
        text_format(ret_forecast->why, sizeof ret_forecast->why,
            "budget %s has not enough left for it", b->row.name);
    else if (!wall_is_set(ret_forecast->median))
        STR_COPY(ret_forecast->why, anything_may(p)
                                        ? "nobody can say when what is in its way will be over"
                                        : why_nothing_may(a->shape));
    else if (!wall_is_set(ret_forecast->latest))
        STR_COPY(ret_forecast->why, "something in its way has no time limit");
}

bool shape_starts_now(
    const struct model *m, const struct shape *s, struct stamp now, int64_t *ret_node)
{
    int64_t ids[JOB_NODES_MAX];
    enum limit_kind kind;
    if (limits_exceeded(m, s, s->least, &kind) || licences_lack(m, s->constraints))
        return false;
    if (s->nodes > 1) {
        if (nodes_for_gang(m, s, now, ids) == 0)
            return false;
        *ret_node = ids[0];
        return true;
    }
    const struct node *n = nodes_best(m, s, now);
    *ret_node = n ? n->row.id : CORE_ID_NONE;
    return n != NULL;
}

static int64_t input_there(const struct model *m, const struct forecast *f, const struct shape *s)
{
    const struct node *n = f->node != CORE_ID_NONE ? model_node(m, f->node) : NULL;
    const struct offer *o = f->offer != CORE_ID_NONE ? model_offer(m, f->offer) : NULL;
    return n || o ? pool_input_uusd(n ? n->pool : o->pool, s->constraints) : 0;
}

void forecast_for(
    const struct model *m, struct stamp now, const struct asker *a, struct forecast *ret_forecast)
{
    *ret_forecast = (struct forecast){.median = WALL_NONE, .latest = WALL_NONE};
    if (a->from_ms <= now.wall.ms && shape_starts_now(m, a->shape, now, &ret_forecast->node)) {
        ret_forecast->is_now = true;
        ret_forecast->median = ret_forecast->latest = now.wall;
    } else {
        struct picture *p = mem_alloc(sizeof *p);
        p->m = m;
        p->now = now;
        take_picture(p, a);
        const struct budget *b = spent_before(p);
        if (b)
            text_format(ret_forecast->why, sizeof ret_forecast->why,
                "what is left of budget %s does not suffice for it and for what stands before it",
                b->row.name);
        else
            run_all(p, a, ret_forecast);
        picture_destroy(p);
    }
    ret_forecast->input_uusd = input_there(m, ret_forecast, a->shape);
}

/* ---- a job that waits ---- */

static int64_t mean_end(const struct model *m, const struct job *j, struct stamp now)
{
    const struct attempt *a = job_attempt(j);
    const struct runtimes *r = runtimes_of(m, j);
    int64_t elapsed = now.wall.ms - a->row.assigned_at.ms;
    return a->row.assigned_at.ms +
           runtimes_mean(r, j->row.spec.time_limit_ms, elapsed > 0 ? elapsed : 0);
}

static int64_t latest_end(const struct job *j)
{
    return j->row.spec.time_limit_ms > 0
               ? job_attempt(j)->row.assigned_at.ms + j->row.spec.time_limit_ms
               : NEVER_MS;
}

bool forecast_dependency(const struct model *m, const struct job *on, enum depend_kind kind,
    int64_t delay_ms, struct stamp now, int64_t *ret_at, int64_t *ret_latest)
{
    if (kind == DEPEND_AFTER && wall_is_set(on->row.started_at)) {
        *ret_at = *ret_latest = on->row.started_at.ms + delay_ms;
        return true;
    }
    if (!job_attempt(on) || kind == DEPEND_AFTER || on->array)
        return false;
    *ret_at = mean_end(m, on, now);
    *ret_latest = latest_end(on);
    return true;
}

/* When what it depends on will have come true. False: nobody knows. */
static bool wait_for_dependencies(
    const struct model *m, const struct job *j, struct stamp now, struct asker *a, char *why)
{
    int64_t any = NEVER_MS, any_latest = NEVER_MS, all = 0, all_latest = 0;
    int64_t unknown = CORE_ID_NONE;
    if (list_is_empty(&job_side(j)->depends))
        return true;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.state != DEPEND_WAITS)
            continue;
        const struct job *on = d->row.of_task ? array_task(d->on, d->row.task) : d->on;
        int64_t at = NEVER_MS, latest = NEVER_MS;
        if (on)
            forecast_dependency(m, on, d->row.kind, d->row.delay_ms, now, &at, &latest);
        unknown = at == NEVER_MS && unknown == CORE_ID_NONE ? d->row.on : unknown;
        any = at < any ? at : any;
        any_latest = latest < any_latest ? latest : any_latest;
        all = max_i64(all, at);
        all_latest = max_i64(all_latest, latest);
    }
    a->from_ms = max_i64(a->from_ms, j->row.spec.depends_any ? any : all);
    a->latest_from_ms =
        max_i64(a->latest_from_ms, j->row.spec.depends_any ? any_latest : all_latest);
    if (a->from_ms < NEVER_MS)
        return true;
    text_format(why, CORE_TEXT_MAX, "it waits for job %" PRId64 ", which has not started", unknown);
    return false;
}

static bool wait_for_task(
    const struct model *m, const struct job *j, struct stamp now, struct asker *a, char *why)
{
    int64_t at = NEVER_MS, latest = NEVER_MS;
    if (!array_is_full(j))
        return true;
    LIST_FOREACH (&j->array->tasks, l) {
        const struct job *t = LIST_ENTRY(l, struct job_side, in_array)->job;
        if (!job_attempt(t))
            continue;
        int64_t mean = mean_end(m, t, now), limit = latest_end(t);
        at = mean < at ? mean : at;
        latest = limit < latest ? limit : latest;
    }
    a->from_ms = max_i64(a->from_ms, at);
    a->latest_from_ms = max_i64(a->latest_from_ms, latest);
    if (at < NEVER_MS)
        return true;
    text_format(
        why, CORE_TEXT_MAX, "as many of its tasks as may have begun, and none of them runs");
    return false;
}

/* From when on only room keeps it. */
static bool wait_for(
    const struct model *m, const struct job *j, struct stamp now, struct asker *a, char *why)
{
    a->from_ms = a->latest_from_ms = now.wall.ms;
    if (j->row.hold != HOLD_NONE) {
        text_format(why, CORE_TEXT_MAX, "it is held");
        return false;
    }
    if (j->is_waiting && !wait_for_dependencies(m, j, now, a, why))
        return false;
    if (!wait_for_task(m, j, now, a, why))
        return false;
    struct wall begin = window_not_before(m, &j->row, now.wall);
    if (j->row.spec.window[0] && begin.ms >= WALL_NEVER.ms) {
        text_format(why, CORE_TEXT_MAX, "its window never opens");
        return false;
    }
    a->from_ms = max_i64(a->from_ms, begin.ms);
    a->latest_from_ms = max_i64(a->latest_from_ms, begin.ms);
    return true;
}

bool core_forecast(
    const struct model *m, struct stamp now, int64_t job, struct forecast *ret_forecast)
{
    const struct job *j = model_job(m, job);
    if (!j || job_attempt(j) || j->row.state != JOB_PENDING)
        return false;
    struct asker a = {.shape = j->shape, .row = &j->row, .history = runtimes_of(m, j)};
    a.at = tree_has(&j->in_shape) ? place_of(m, j) : (struct place){INT64_MAX, INT64_MAX};
    *ret_forecast = (struct forecast){.median = WALL_NONE, .latest = WALL_NONE};
    if (wait_for(m, j, now, &a, ret_forecast->why))
        forecast_for(m, now, &a, ret_forecast);
    return true;
}
