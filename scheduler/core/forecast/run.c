/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a forecast: what is to happen, in the order of time, with the planner's rules. Only
 * the slot where something changed is looked at, so that an event costs what there are lots,
 * whatever there are nodes and jobs.
 */
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/mem.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_held.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/market.h"
#include <stdlib.h>
#include <string.h>

#define STOPPING_MS 10000
#define COMING_MAX 1024 /* machines that one forecast run launches */
#define SORT_MAX 256    /* runs of a node that are told apart */
#define AGAIN_MAX 64

/* The end of a run. */
struct due {
    int64_t at_ms;
    int32_t run;
};

struct forecast_run {
    const struct picture *p;
    struct prng prng;
    bool latest;
    int64_t t_ms, work;
    struct slot *slots;
    size_t n_slots;
    struct run *runs;
    size_t n_runs;
    struct due *heap;
    size_t n_heap; /* the first on top */
    struct lot lots[FORECAST_LOTS];
    struct group groups[GROUPS_MAX];
    int64_t licences[LICENCES_MAX];
    struct room *room, all;    /* by the index of a pool */
    int64_t left_w[RACKS_MAX]; /* by the index of a rack */
    int32_t look[LOOK_MAX], n_look;
    int32_t again[AGAIN_MAX], n_again; /* slots to be looked at once more */
    int32_t n_reserved;
    int64_t epoch; /* grows when there may be other nodes to keep */
    size_t n_launched;
    struct forecast_result done;
    bool is_done;
};

/* ---- the heap ---- */

static bool is_earlier(struct due a, struct due b)
{
    return a.at_ms != b.at_ms ? a.at_ms < b.at_ms : a.run < b.run;
}

static void sift_down(struct forecast_run *s, size_t k)
{
    const struct due it = s->heap[k];
    for (size_t child; (child = 2 * k + 1) < s->n_heap; k = child) {
        if (child + 1 < s->n_heap && is_earlier(s->heap[child + 1], s->heap[child]))
            child++;
        if (!is_earlier(s->heap[child], it))
            break;
        s->heap[k] = s->heap[child];
    }
    s->heap[k] = it;
}

static void heap_push(struct forecast_run *s, int32_t run, int64_t at_ms)
{
    const struct due it = {at_ms, run};
    size_t k = s->n_heap;
    *GROW(s->heap, s->n_heap) = it;
    for (; k > 0 && is_earlier(it, s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = it;
}

static struct due heap_pop(struct forecast_run *s)
{
    const struct due first = s->heap[0];
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0)
        sift_down(s, 0);
    return first;
}

/* Something that is to happen, which is no run. */
static void remind(struct forecast_run *s, int32_t slot, int64_t at_ms)
{
    *GROW(s->runs, s->n_runs) =
        (struct run){.limit_ms = at_ms, .slot = slot, .prev = NOBODY, .next = NOBODY};
    heap_push(s, (int32_t)s->n_runs - 1, at_ms);
}

/* ---- what may be where ---- */

static bool may(const struct forecast_run *s, const struct slot *c, int32_t lot)
{
    return s->p->node_class[c->node_class].may[lot / 64] >> (lot % 64) & 1;
}

static bool waits(const struct forecast_run *s, const struct lot *l)
{
    return l->left > 0 && l->from_ms <= s->t_ms;
}

/* What one of the shape has of the slot. */
static const struct resources *takes(
    const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    return shape_takes(of, &s->p->node_class[c->node_class].total);
}

static int64_t price_of(const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    const struct node_class *k = &s->p->node_class[c->node_class];
    return resources_share(takes(s, c, of), &k->total,
        c->node ? c->node->row.price_uusd_h : k->offer->row.price_uusd_h);
}

static bool exceeds(const struct forecast_run *s, const struct lot *l, const struct slot *c)
{
    for (int k = 0; k < 2; k++) {
        const struct group *g = &s->groups[l->group[k]];
        if (l->group[k] == 0)
            continue;
        const struct resources *each = c ? takes(s, c, l->shape) : &l->need;
        int64_t more[LIMIT_KINDS] = {[LIMIT_RUNNING] = 1,
            [LIMIT_GPUS] = (int64_t)l->nodes * each->gpus,
            [LIMIT_UUSD_H] = c ? l->nodes * price_of(s, c, l->shape) : 0,
            [LIMIT_MCPU] = l->nodes * order_mcpu(model_order(s->p->m), each)};
        for (int kind = 0; kind < LIMIT_SUBMITTED; kind++)
            if (more[kind] > 0 && more[kind] > g->of->most[kind] - g->used[kind])
                return true;
    }
    return false;
}

static bool lacks_licences(const struct forecast_run *s, const struct lot *l)
{
    const struct counts *need = l->shape->constraints ? &l->shape->constraints->licences : NULL;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *of = licence_named(s->p->m, need->v[i].name);
        if (!of || s->licences[licence_index(of, s->p->m)] < need->v[i].n)
            return true;
    }
    return false;
}

/* The rack that its machine stands in; NULL: none. */
static const struct rack *rack_of(
    const struct forecast_run *s, const struct slot *c, const struct rack_nodes **ret_kind)
{
    const struct node_class *k = &s->p->node_class[c->node_class];
    const struct rack *r = c->node ? c->node->rack : k->offer ? k->offer->pool->rack : NULL;
    *ret_kind = !r ? NULL : c->node ? c->node->rack_kind : k->offer->pool->rack_kind;
    return *ret_kind ? r : NULL;
}

/* What one more of the shape draws there; NULL: it is in no rack. */
static const struct rack *draws(
    const struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t *ret_w)
{
    const struct rack_nodes *kind;
    const struct rack *r = rack_of(s, c, &kind);
    *ret_w = r ? rack_adds(kind, &s->p->node_class[c->node_class].total, &c->free, of, 1) : 0;
    return r;
}

static bool has_power(const struct forecast_run *s, const struct slot *c, const struct shape *of)
{
    int64_t watts;
    const struct rack *r = draws(s, c, of, &watts);
    return !r || watts <= s->left_w[r->index];
}

/* sign 1: one of the shape begins there; -1: one has ended, and what it took is free again. */
static void take_power(
    struct forecast_run *s, const struct slot *c, const struct shape *of, int64_t sign)
{
    int64_t watts;
    const struct rack *r = draws(s, c, of, &watts);
    if (r)
        s->left_w[r->index] -= sign * watts;
}

static bool fits(const struct forecast_run *s, const struct slot *c, int32_t lot)
{
    const struct lot *l = &s->lots[lot];
    return resources_fit(takes(s, c, l->shape), &c->free) && has_power(s, c, l->shape) &&
           may(s, c, lot) && (!c->node || c->node->row.id != l->shape->avoid);
}

static int64_t limit_end(int64_t from_ms, int64_t limit_ms)
{
    return limit_ms > 0 ? from_ms + limit_ms : NEVER_MS;
}

/* The first of who the slot is kept for would still start by then, with this one there. */
static bool leaves_room(const struct forecast_run *s, const struct slot *c, const struct lot *l)
{
    struct resources free = c->free, all = *takes(s, c, s->lots[c->kept_for].shape);
    resources_give(&all, takes(s, c, l->shape));
    for (int32_t r = c->first; r != NOBODY; r = s->runs[r].next)
        if (s->runs[r].limit_ms <= c->until_ms)
            resources_give(&free, takes(s, c, s->runs[r].shape));
    return resources_fit(&all, &free);
}

static bool stands_before(const struct lot *a, const struct lot *b)
{
    return place_order(a->place, b->place) < 0;
}

static bool is_open(const struct forecast_run *s, const struct slot *c, int32_t lot)
{
    const struct lot *l = &s->lots[lot];
    if (c->open_ms > s->t_ms)
        return false;
    if (c->kept_for == NOBODY || c->kept_for == lot || stands_before(l, &s->lots[c->kept_for]))
        return true;
    return limit_end(s->t_ms, l->shape->limit_ms) <= c->until_ms || leaves_room(s, c, l);
}

/* ---- reservations ---- */

static void look_again(struct forecast_run *s, int32_t slot)
{
    if (s->n_again < AGAIN_MAX)
        s->again[s->n_again++] = slot;
}

static void unreserve(struct forecast_run *s, int32_t lot)
{
    struct lot *l = &s->lots[lot];
    l->looked = 0;
    if (!l->has_reserved)
        return;
    l->has_reserved = false;
    s->epoch++;
    s->n_reserved--;
    for (int32_t c = l->kept, next; c != NOBODY; c = next) {
        next = s->slots[c].next_kept;
        s->slots[c].kept_for = NOBODY;
        look_again(s, c);
    }
}

struct by_limit {
    int64_t at_ms;
    const struct resources *need;
};

static int compare_limits(const void *a, const void *b)
{
    int64_t x = ((const struct by_limit *)a)->at_ms, y = ((const struct by_limit *)b)->at_ms;
    return (x > y) - (x < y);
}

/* When it has room there by the limits of what runs; 0: now. */
static int64_t room_at(const struct forecast_run *s, const struct slot *c, const struct lot *l)
{
    struct by_limit ends[SORT_MAX];
    struct resources free = c->free;
    const struct resources *need = takes(s, c, l->shape);
    size_t n = 0;
    int64_t at = 0;
    if (c->open_ms > s->t_ms)
        at = c->open_ms;
    if (resources_fit(need, &free))
        return at;
    for (int32_t r = c->first; r != NOBODY && n < SORT_MAX; r = s->runs[r].next)
        ends[n++] = (struct by_limit){s->runs[r].limit_ms, takes(s, c, s->runs[r].shape)};
    qsort(ends, n, sizeof ends[0], compare_limits);
    for (size_t k = 0; k < n && !resources_fit(need, &free); k++) {
        resources_give(&free, ends[k].need);
        at = ends[k].at_ms;
    }
    return at;
}

struct option {
    int64_t at_ms;
    int32_t slot;
};

static int compare_options(const void *a, const void *b)
{
    const struct option *x = a, *y = b;
    int by_time = (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
    return by_time ? by_time : (x->slot > y->slot) - (x->slot < y->slot);
}

static const struct pool *pool_of(const struct slot *c, const struct picture *p)
{
    const struct node_class *k = &p->node_class[c->node_class];
    return k->node ? k->node->pool : k->offer->pool;
}

static bool may_be_kept(const struct forecast_run *s, const struct slot *c, int32_t lot)
{
    const struct lot *l = &s->lots[lot];
    return c->open_ms < NEVER_MS && may(s, c, lot) &&
           (c->kept_for == NOBODY || stands_before(l, &s->lots[c->kept_for]));
}

static void keep(struct forecast_run *s, int32_t lot, const struct option *o, int32_t n)
{
    s->lots[lot].kept = NOBODY;
    for (int32_t k = 0; k < n; k++) {
        struct slot *c = &s->slots[o[k].slot];
        if (c->kept_for != NOBODY)
            unreserve(s, c->kept_for);
        c->kept_for = lot;
        c->until_ms = o[n - 1].at_ms;
        c->next_kept = s->lots[lot].kept;
        s->lots[lot].kept = o[k].slot;
    }
    s->lots[lot].has_reserved = true;
    s->n_reserved++;
}

/* Where it can start the earliest: as many of these slots as it needs, sorted, in the pool that has
 * enough of them first. */
static int32_t choose(
    const struct forecast_run *s, const struct lot *l, struct option *options, size_t n)
{
    qsort(options, n, sizeof *options, compare_options);
    for (size_t k = 0; k < n; k++) {
        const struct pool *pool = pool_of(&s->slots[options[k].slot], s->p);
        int32_t same = 0;
        for (size_t i = 0; i <= k && same < l->nodes; i++)
            same += pool_of(&s->slots[options[i].slot], s->p) == pool;
        if (same < l->nodes)
            continue;
        size_t chosen = 0;
        for (size_t i = 0; i <= k; i++)
            if (pool_of(&s->slots[options[i].slot], s->p) == pool)
                options[chosen++] = options[i];
        return l->nodes;
    }
    return 0;
}

/* Among the slots that had something end last; for a gang that needs many, and finds too few there,
 * among all. */
static void reserve(struct forecast_run *s, int32_t lot)
{
    struct lot *l = &s->lots[lot];
    bool all = l->nodes * 4 > LOOK_MAX;
    l->looked = s->epoch;
    for (int tries = 0; tries < 2 && !l->has_reserved; tries++, all = true) {
        size_t max = all ? s->n_slots : (size_t)s->n_look, n = 0;
        struct option *options = mem_array(max + 1, sizeof *options);
        for (size_t k = 0; k < max; k++) {
            int32_t at = all ? (int32_t)k : s->look[k];
            if (may_be_kept(s, &s->slots[at], lot))
                options[n++] = (struct option){room_at(s, &s->slots[at], l), at};
        }
        s->work += 1 + (int64_t)max / 64;
        if (choose(s, l, options, n) > 0)
            keep(s, lot, options, l->nodes);
        free(options);
        if (all || l->nodes == 1)
            return;
    }
}

/* ---- starts and ends ---- */

static void count(struct forecast_run *s, const struct run *r, int64_t sign)
{
    const struct account *a = r->shape->account;
    const struct allowance *const of[] = {&a->may, &a->team->may};
    const struct resources *has =
        r->slot == NOBODY ? &r->shape->need : takes(s, &s->slots[r->slot], r->shape);
    for (int k = 0; k < 2; k++) {
        struct group *g = &s->groups[s->p->group_of ? s->p->group_of[of[k]->index] : 0];
        if (g == &s->groups[0])
            continue;
        g->used[LIMIT_RUNNING] += r->counts ? sign : 0;
        g->used[LIMIT_GPUS] += sign * has->gpus;
        g->used[LIMIT_UUSD_H] += sign * r->uusd_h;
        g->used[LIMIT_MCPU] += sign * order_mcpu(model_order(s->p->m), has);
    }
    const struct counts *need =
        r->counts && r->shape->constraints ? &r->shape->constraints->licences : NULL;
    for (size_t i = 0; need && i < need->n; i++) {
        const struct licence *l = licence_named(s->p->m, need->v[i].name);
        if (l)
            s->licences[licence_index(l, s->p->m)] -= sign * need->v[i].n;
    }
}

static void unlink_run(struct forecast_run *s, const struct run *r)
{
    if (r->prev != NOBODY)
        s->runs[r->prev].next = r->next;
    else
        s->slots[r->slot].first = r->next;
    if (r->next != NOBODY)
        s->runs[r->next].prev = r->prev;
}

static void start_on(
    struct forecast_run *s, const struct lot *l, int32_t slot, int64_t end_ms, bool counts)
{
    struct slot *c = &s->slots[slot];
    struct run *r = GROW(s->runs, s->n_runs);
    int32_t at = (int32_t)s->n_runs - 1;
    *r = (struct run){.limit_ms = limit_end(s->t_ms, l->shape->limit_ms),
        .shape = l->shape,
        .uusd_h = price_of(s, c, l->shape),
        .slot = slot,
        .prev = NOBODY,
        .next = c->first,
        .counts = counts};
    if (c->first != NOBODY)
        s->runs[c->first].prev = at;
    c->first = at;
    take_power(s, c, l->shape, 1);
    resources_take(&c->free, takes(s, c, l->shape));
    count(s, r, 1);
    heap_push(s, at, end_ms);
}

static int64_t draw_end(struct forecast_run *s, const struct lot *l)
{
    int64_t limit_ms = l->shape->limit_ms;
    if (s->latest)
        return limit_end(s->t_ms, limit_ms);
    const struct runtimes *r =
        l->n_histories ? l->histories[prng_below(&s->prng, (uint64_t)l->n_histories)] : NULL;
    return s->t_ms + runtimes_draw(r, limit_ms, 0, prng_u64(&s->prng));
}

/* The next of the lot has started. */
static void advance(struct forecast_run *s, int32_t lot)
{
    struct lot *l = &s->lots[lot];
    unreserve(s, lot);
    l->place.at_16 += l->step;
    l->left--;
}

static void note_mine(struct forecast_run *s, int32_t lot, int32_t slot)
{
    const struct slot *c = &s->slots[slot];
    if (lot != s->p->mine)
        return;
    s->is_done = true;
    s->done.at_ms = s->t_ms;
    s->done.node = c->node;
    s->done.offer = c->node ? NULL : s->p->node_class[c->node_class].offer;
}

static void start(struct forecast_run *s, int32_t lot, int32_t slot)
{
    struct slot *c = &s->slots[slot];
    const struct lot *l = &s->lots[lot];
    if (c->kept_for != NOBODY && c->kept_for != lot &&
        !(limit_end(s->t_ms, l->shape->limit_ms) <= c->until_ms || leaves_room(s, c, l)))
        unreserve(s, c->kept_for); /* it stands before them */
    note_mine(s, lot, slot);
    start_on(s, l, slot, draw_end(s, l), true);
    advance(s, lot);
}

/* For one of the shape on each of these slots. */
static bool have_power(
    const struct forecast_run *s, const int32_t *slots, int32_t n, const struct shape *of)
{
    int64_t sums[RACKS_MAX] = {0};
    for (int32_t k = 0; k < n && racks_count(s->p->m) > 0; k++) {
        int64_t watts;
        const struct rack *r = draws(s, &s->slots[slots[k]], of, &watts);
        if (r && (sums[r->index] += watts) > s->left_w[r->index])
            return false;
    }
    return true;
}

/* A gang that nodes are kept for starts when all of them have room. */
static bool start_gang(struct forecast_run *s, int32_t lot)
{
    struct lot *l = &s->lots[lot];
    int32_t slots[JOB_NODES_MAX] = {0}, n = 0;
    if (!l->has_reserved || !waits(s, l) || exceeds(s, l, NULL) || lacks_licences(s, l))
        return false;
    for (int32_t k = l->kept; k != NOBODY && n < l->nodes; k = s->slots[k].next_kept) {
        const struct slot *c = &s->slots[k];
        if (c->open_ms > s->t_ms || !resources_fit(takes(s, c, l->shape), &c->free))
            return false;
        slots[n++] = k;
    }
    if (n < l->nodes || !have_power(s, slots, n, l->shape))
        return false;
    int64_t end_ms = draw_end(s, l);
    note_mine(s, lot, slots[0]);
    for (int32_t k = 0; k < n; k++)
        start_on(s, l, slots[k], end_ms, k == 0);
    advance(s, lot);
    return true;
}

/* ---- who is next ---- */

static int32_t best_for(const struct forecast_run *s, const struct slot *c)
{
    int32_t best = NOBODY;
    for (int32_t k = 0; k < s->p->n_lots; k++) {
        const struct lot *l = &s->lots[k];
        if (l->left == 0 || !resources_fit(&l->need, &c->free) || l->nodes > 1)
            continue;
        if ((best != NOBODY && !stands_before(l, &s->lots[best])) || !waits(s, l) ||
            !fits(s, c, k) || !is_open(s, c, k))
            continue;
        if (!exceeds(s, l, c) && !lacks_licences(s, l))
            best = k;
    }
    return best;
}

/* Before somebody passes them, the first that wait get nodes. */
static bool reserve_before(struct forecast_run *s, const struct lot *passing)
{
    int32_t reserve_max = model_order(s->p->m)->reserve;
    for (int32_t k = 0; k < s->p->n_lots && s->n_reserved < reserve_max; k++) {
        const struct lot *l = &s->lots[k];
        if (l->has_reserved || l->looked == s->epoch || l->comes || !waits(s, l) ||
            (passing ? !stands_before(l, passing) : l->nodes == 1))
            continue;
        if (exceeds(s, l, NULL) || lacks_licences(s, l))
            continue;
        reserve(s, k);
        if (l->nodes > 1)
            start_gang(s, k); /* all may have room already */
        return true;
    }
    return false;
}

static void look_at(struct forecast_run *s, int32_t slot)
{
    if (s->slots[slot].kept_for != NOBODY && s->lots[s->slots[slot].kept_for].nodes > 1)
        start_gang(s, s->slots[slot].kept_for);
    while (!s->is_done) {
        int32_t best = best_for(s, &s->slots[slot]);
        s->work++;
        if (best == NOBODY)
            return;
        if (!reserve_before(s, &s->lots[best]))
            start(s, best, slot);
    }
}

static void look_through(struct forecast_run *s)
{
    while (s->n_again > 0 && !s->is_done)
        look_at(s, s->again[--s->n_again]);
    s->n_again = 0;
}

/* One that was kept back by something else than room: anywhere. */
static void look_for(struct forecast_run *s, int32_t lot)
{
    const struct lot *l = &s->lots[lot];
    for (size_t k = 0; k < s->n_slots && !s->is_done && waits(s, l) && l->nodes == 1; k++) {
        if (exceeds(s, l, NULL) || lacks_licences(s, l))
            return;
        if (fits(s, &s->slots[k], lot) && is_open(s, &s->slots[k], lot))
            look_at(s, (int32_t)k);
    }
    s->work += (int64_t)s->n_slots / 64;
}

static bool has_licences(const struct lot *l)
{
    return l->shape->constraints && l->shape->constraints->licences.n > 0;
}

/* Less is used by who this was of, or more licences are free. */
static void look_for_limited(struct forecast_run *s, const struct run *r)
{
    bool licences = r->shape->constraints && r->shape->constraints->licences.n > 0;
    if (s->p->n_groups <= 1 && !licences)
        return;
    const struct account *a = r->shape->account;
    for (int32_t k = 0; k < s->p->n_lots && !s->is_done; k++) {
        const struct lot *l = &s->lots[k];
        bool same = (l->group[0] && s->groups[l->group[0]].of == &a->may) ||
                    (l->group[1] && s->groups[l->group[1]].of == &a->team->may);
        if (l->left > 0 && (same || (licences && has_licences(l))))
            look_for(s, k);
    }
}

/* Its rack draws less: others there may begin something. */
static void look_for_powered(struct forecast_run *s, const struct slot *c)
{
    const struct rack_nodes *kind;
    if (!rack_of(s, c, &kind))
        return;
    for (int32_t k = 0; k < s->p->n_lots && !s->is_done; k++)
        if (s->lots[k].left > 0)
            look_for(s, k);
}

/* ---- machines to come ---- */

static void note_growth(struct forecast_run *s, int32_t slot)
{
    int32_t k = 0;
    while (k < s->n_look - 1 && s->look[k] != slot)
        k++;
    if (s->n_look < LOOK_MAX && (s->n_look == 0 || s->look[k] != slot))
        k = s->n_look++;
    for (; k > 0; k--)
        s->look[k] = s->look[k - 1];
    s->look[0] = slot;
}

static int32_t launch(struct forecast_run *s, const struct offer *o)
{
    int32_t slot = (int32_t)s->n_slots, node_class = 0;
    while (s->p->node_class[node_class].offer != o)
        node_class++;
    *GROW(s->slots, s->n_slots) = (struct slot){.free = offer_total(o),
        .node_class = node_class,
        .first = NOBODY,
        .kept_for = NOBODY,
        .open_ms = s->t_ms + offer_boot_ms(o) * (s->latest ? 2 : 1)};
    s->slots[slot].idle_ms = s->slots[slot].open_ms;
    remind(s, slot, s->slots[slot].open_ms);
    room_take(&s->room[o->pool->index], o);
    room_take(&s->all, o);
    s->n_launched++;
    return slot;
}

static const struct offer *cheapest_for(
    const struct forecast_run *s, int32_t lot, int64_t *ret_again_ms)
{
    const struct offer *best = NULL;
    struct stamp now = s->p->now;
    now.mono.ms += s->t_ms - now.wall.ms;
    for (size_t k = 0; k < s->p->n_node_classes; k++) {
        const struct offer *o = s->p->node_class[k].offer;
        if (!o || !(s->p->node_class[k].may[lot / 64] >> (lot % 64) & 1) ||
            room_lacks(&s->room[o->pool->index], o) || room_lacks(&s->all, o))
            continue;
        const struct pool *in = o->pool;
        if (offer_is_doubtful(o) ||
            (in->rack && rack_alone_w(in->rack_kind, offer_total(o), s->lots[lot].shape) >
                             s->left_w[in->rack->index]))
            continue;
        int64_t until = mono_is_set(o->row.avoid_until) ? o->row.avoid_until.ms : 0;
        if (until > now.mono.ms) {
            int64_t at = s->t_ms + until - now.mono.ms;
            *ret_again_ms = at < *ret_again_ms ? at : *ret_again_ms;
            continue;
        }
        if (!best || o->row.rank < best->row.rank ||
            (o->row.rank == best->row.rank && o->row.price_uusd_h < best->row.price_uusd_h))
            best = o;
    }
    return best;
}

/* How many of n places the machine has, which are taken. */
static int64_t fill(const struct forecast_run *s, const struct slot *c, const struct lot *l,
    int64_t n, struct resources *left)
{
    const struct resources *each = takes(s, c, l->shape);
    int64_t times = l->nodes > 1 ? resources_fit(each, left) : resources_times(left, each);
    times = times < n ? times : n;
    for (int64_t i = 0; i < times; i++)
        resources_take(left, each);
    return times;
}

/* For what waits, in its order, as if nothing ended meanwhile. Places on what comes already are
 * taken first. */
static void launch_for(
    struct forecast_run *s, int32_t lot, struct resources *left, int64_t *ret_again_ms)
{
    struct lot *l = &s->lots[lot];
    int64_t n = l->left * l->nodes;
    for (size_t k = 0; k < s->n_slots && n > 0; k++)
        if (left[k].cpus > 0 && may(s, &s->slots[k], lot))
            n -= fill(s, &s->slots[k], l, n, &left[k]);
    const struct offer *o;
    while (n > 0 && s->n_launched < COMING_MAX && (o = cheapest_for(s, lot, ret_again_ms))) {
        const struct room *room = &s->room[o->pool->index];
        if (l->nodes > 1 && (room->nodes < l->nodes || s->all.nodes < l->nodes))
            break;
        size_t at = (size_t)launch(s, o);
        left[at] = s->slots[at].free;
        n -= fill(s, &s->slots[at], l, n, &left[at]);
    }
    l->comes = n == 0;
}

static void launch_all(struct forecast_run *s)
{
    int64_t again_ms = NEVER_MS;
    bool any = s->n_launched > 0;
    for (size_t k = 0; k < s->p->n_node_classes; k++)
        any |= s->p->node_class[k].offer != NULL;
    if (!any)
        return;
    /* of those that come */
    struct resources *left = mem_array(s->n_slots + COMING_MAX, sizeof *left);
    for (size_t k = 0; k < s->n_slots; k++)
        if (s->slots[k].open_ms > s->t_ms && s->slots[k].open_ms < NEVER_MS)
            left[k] = s->slots[k].free;
    for (int32_t k = 0; k < s->p->n_lots; k++)
        if (waits(s, &s->lots[k]) && !exceeds(s, &s->lots[k], NULL) &&
            !lacks_licences(s, &s->lots[k]))
            launch_for(s, k, left, &again_ms);
    free(left);
    s->work += s->p->n_lots;
    if (again_ms < NEVER_MS)
        remind(s, NOBODY, again_ms);
}

static const struct pool_row *elastic(const struct forecast_run *s, const struct slot *c)
{
    const struct pool *p = pool_of(c, s->p);
    return p->row.elastic ? &p->row : NULL;
}

/* Nothing fits there any more: it may make room for another machine. */
static void end_if_idle(struct forecast_run *s, int32_t slot)
{
    struct slot *c = &s->slots[slot];
    const struct pool_row *pool = elastic(s, c);
    if (!pool || c->first != NOBODY || c->kept_for != NOBODY || c->open_ms > s->t_ms)
        return;
    if (s->t_ms < c->idle_ms + pool->idle_timeout_ms) {
        remind(s, slot, c->idle_ms + pool->idle_timeout_ms);
        return;
    }
    c->open_ms = NEVER_MS;
    struct room *room = &s->room[pool_of(c, s->p)->index];
    const struct node_class *k = &s->p->node_class[c->node_class];
    int64_t uusd_h = k->node ? k->node->row.price_uusd_h : k->offer->row.price_uusd_h;
    int64_t gpus = k->node ? k->node->row.total.gpus : k->offer->row.total.gpus;
    struct room *const both[] = {room, &s->all};
    for (int i = 0; i < 2; i++) {
        both[i]->nodes += both[i]->nodes == INT64_MAX ? 0 : 1;
        both[i]->gpus += both[i]->gpus == INT64_MAX ? 0 : gpus;
        both[i]->uusd_h += both[i]->uusd_h == INT64_MAX ? 0 : uusd_h;
    }
    launch_all(s);
}

/* ---- time ---- */

static void reserve_gangs(struct forecast_run *s)
{
    for (int32_t k = 0; k < s->p->n_lots && !s->is_done; k++)
        while (!s->is_done && s->lots[k].nodes > 1 && reserve_before(s, NULL))
            ;
}

static void happen(struct forecast_run *s, struct due due)
{
    const struct run r = s->runs[due.run];
    s->work++;
    s->t_ms = due.at_ms > s->t_ms ? due.at_ms : s->t_ms;
    if (!r.shape && r.slot == NOBODY) {
        launch_all(s);
        look_for(s, s->p->mine);
        reserve_gangs(s);
        return;
    }
    if (r.shape)
        count(s, &r, -1);
    if (r.shape && r.slot != NOBODY) {
        unlink_run(s, &r);
        resources_give(&s->slots[r.slot].free, takes(s, &s->slots[r.slot], r.shape));
        take_power(s, &s->slots[r.slot], r.shape, -1);
        if (s->slots[r.slot].first == NOBODY)
            s->slots[r.slot].idle_ms = s->t_ms;
    }
    if (r.slot != NOBODY && s->slots[r.slot].open_ms <= s->t_ms) {
        note_growth(s, r.slot);
        reserve_gangs(s); /* nobody may come to pass them */
        look_at(s, r.slot);
        look_through(s);
        end_if_idle(s, r.slot);
    }
    if (r.shape)
        look_for_limited(s, &r);
    if (r.shape && r.slot != NOBODY)
        look_for_powered(s, &s->slots[r.slot]);
}

static int64_t expected_ms(const struct forecast_run *s, const struct lot *l)
{
    double sum = 0;
    if (s->latest)
        return l->shape->limit_ms ? l->shape->limit_ms : NEVER_MS;
    for (int k = 0; k < l->n_histories; k++)
        sum += (double)runtimes_mean(l->histories[k], l->shape->limit_ms, 0);
    return l->n_histories > 0 ? (int64_t)(sum / l->n_histories)
                              : runtimes_mean(NULL, l->shape->limit_ms, 0);
}

static bool competes(const struct forecast_run *s, int32_t lot)
{
    for (size_t k = 0; k < s->p->n_node_classes; k++) {
        const uint64_t *b = s->p->node_class[k].may;
        if ((b[lot / 64] >> (lot % 64) & 1) && (b[s->p->mine / 64] >> (s->p->mine % 64) & 1))
            return true;
    }
    return false;
}

/* What is left ahead, over what can be done at once where it may run. */
static int64_t extrapolate(const struct forecast_run *s)
{
    double work = 0, capacity = 0;
    const struct lot *mine = &s->lots[s->p->mine];
    for (int32_t k = 0; k < s->p->n_lots; k++) {
        const struct lot *l = &s->lots[k];
        if (l->left == 0 || !stands_before(l, mine) || !competes(s, k))
            continue;
        int64_t ms = expected_ms(s, l), n = l->left;
        if (ms >= NEVER_MS)
            return NEVER_MS;
        if (l->step > 0 && (mine->place.at_16 - l->place.at_16) / l->step + 1 < n)
            n = (mine->place.at_16 - l->place.at_16) / l->step + 1;
        work += (double)n * (double)l->nodes * (double)l->shape->mcpu * (double)ms;
    }
    for (size_t k = 0; k < s->n_slots; k++) {
        const struct slot *c = &s->slots[k];
        if (c->open_ms == NEVER_MS || !may(s, c, s->p->mine))
            continue;
        capacity +=
            (double)order_mcpu(model_order(s->p->m), &s->p->node_class[c->node_class].total);
    }
    double ms = capacity > 0 ? work / capacity * (s->latest ? 1.25 : 1) : (double)NEVER_MS;
    return ms < (double)RUNTIMES_MAX_MS * 120 ? s->t_ms + (int64_t)ms : NEVER_MS;
}

/* So that GROW goes on from there. */
static void *copy(const void *from, size_t n, size_t size)
{
    size_t room = 1;
    while (room < n)
        room *= 2;
    void *p = mem_array(room, size);
    if (n > 0)
        memcpy(p, from, n * size);
    return p;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* All ranks of a gang are drawn the same. */
static int64_t end_of(
    const struct forecast_run *s, const struct running *g, const struct run *r, uint64_t seed)
{
    int64_t now_ms = s->p->now.wall.ms;
    if (g->is_stopping)
        return now_ms + STOPPING_MS;
    if (s->latest)
        return r->limit_ms > now_ms ? r->limit_ms : now_ms + STOPPING_MS;
    int64_t elapsed = now_ms - g->began_ms,
            limit = r->limit_ms >= NEVER_MS ? 0 : r->limit_ms - g->began_ms;
    return g->began_ms + runtimes_draw(g->history, limit, elapsed > 0 ? elapsed : 0,
                             mix(seed + mix((uint64_t)g->job)));
}

static int64_t joins_ms(const struct forecast_run *s, const struct slot *c)
{
    const struct offer *o = s->p->node_class[c->node_class].offer;
    int64_t at = c->open_ms + offer_boot_ms(o) * (s->latest ? 2 : 1);
    if (at > s->t_ms)
        return at;
    return s->t_ms + (s->latest ? o->pool->row.boot_timeout_ms : offer_boot_ms(o) / 2);
}

static void set_up(struct forecast_run *s, uint64_t seed)
{
    const struct picture *p = s->p;
    s->slots = copy(p->slots, s->n_slots = p->n_slots, sizeof *s->slots);
    s->runs = copy(p->runs, s->n_runs = p->n_runs, sizeof *s->runs);
    memcpy(s->lots, p->lots, sizeof s->lots);
    memcpy(s->groups, p->groups, sizeof s->groups);
    memcpy(s->licences, p->licences, sizeof s->licences);
    memcpy(s->look, p->look, sizeof s->look);
    s->n_look = p->n_look;
    s->n_reserved = p->n_reserved;
    s->all = model_room(p->m);
    for (size_t k = 0; k < racks_count(p->m);
         k++) /* of a large cluster a part stands for the whole */
        s->left_w[k] = rack_left(rack_at(p->m, k)) / (p->each > 1 ? p->each : 1);
    size_t n = 0;
    LIST_FOREACH (model_pools(p->m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        struct room *room = GROW(s->room, n);
        *room = pool_limits(pool);
        /* nobody knows whether, and when, the next of its machines joins */
        if (pool_boots_fail(pool))
            room->nodes = 0;
    }
    for (size_t k = 0; k < s->n_runs; k++)
        *GROW(s->heap, s->n_heap) =
            (struct due){end_of(s, &p->running[k], &s->runs[k], seed), (int32_t)k};
    for (size_t k = s->n_heap / 2; k-- > 0;)
        sift_down(s, k);
    for (size_t k = 0; k < p->n_slots; k++) {
        struct slot *c = &s->slots[k];
        if (!c->node)
            remind(s, (int32_t)k, c->open_ms = joins_ms(s, c));
        else if (c->first == NOBODY && elastic(s, c))
            remind(s, (int32_t)k, c->idle_ms + elastic(s, c)->idle_timeout_ms);
    }
    if (s->lots[p->mine].from_ms > s->t_ms)
        remind(s, NOBODY, s->lots[p->mine].from_ms);
}

struct forecast_result forecast_run(
    const struct picture *p, bool latest, uint64_t seed, int64_t work_max)
{
    struct forecast_run s = {
        .p = p, .latest = latest, .t_ms = p->now.wall.ms, .epoch = 1, .done = {.at_ms = NEVER_MS}};
    prng_init(&s.prng, seed);
    set_up(&s, seed);
    launch_all(&s);
    reserve_gangs(&s);
    while (!s.is_done && s.work < work_max && s.n_heap > 0 && s.heap[0].at_ms < NEVER_MS)
        happen(&s, heap_pop(&s));
    if (!s.is_done && s.work >= work_max)
        s.done.at_ms = extrapolate(&s);
    s.done.work = s.work + 1;
    free(s.slots);
    free(s.runs);
    free(s.heap);
    free(s.room);
    return s.done;
}
