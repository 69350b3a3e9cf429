/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations for the jobs that wait longest. A job that does not fit lets others pass, which
 * alone could starve it. Before a shape passes them, the first few shapes of the queue therefore
 * get nodes reserved for their first job: the nodes where it is expected to start earliest, by the
 * time limits of running jobs. Jobs without a limit are assumed to end after all others, the
 * longest running first. Other jobs are placed there only if they end before that, or leave enough
 * capacity (backfill).
 *
 * Invariants:
 *  1. The job of a reservation is the first of its shape and pending. A node has at most one
 *     reservation, and accepts work.
 *  2. No job behind the shape in the queue is placed so that the expected start is delayed. The
 *     reservation stays until its job is placed, there or elsewhere, so the wait of a job at the
 *     front of the queue is bounded by the longest time limit, which agents enforce.
 *  3. Jobs before the shape in the queue ignore it; it is dropped if it cannot be kept any more,
 *     and made again.
 *
 * Changes that may admit other jobs count as growth of its nodes for the planner: a reservation is
 * dropped, the order of the queue changes, an attempt there is stopping. Time alone only makes a
 * reservation stricter.
 *
 * For preemptions (preempt.c) nodes are claimed: reserved in the same way, for one or several jobs
 * of a shape, against all other jobs regardless of their position, until those jobs are placed.
 * Jobs within a quota ignore reservations that are by queue position only.
 *
 * The power of a rack (racks.h) is reserved as well: a job behind in the queue is placed on no node
 * of the rack if too little power would be left at that time.
 *
 * There are no reservations for demand that launches will serve; for a gang only for the rest.
 * Reservations are decisions (EV_RESERVE) and in memory only: they are made again after a restart.
 */
#include "scheduler/core/planner.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <stdlib.h>

/* Added to the start of a job without a time limit, in ms: unknown ends are after all known ones.
 */
#define END_UNKNOWN (1LL << 60)
/* Nodes of a pool that are examined, those with the most recent ends first; for a gang at least
 * EXAMINED_PER_RANK for each rank. Some of these will have capacity soon; examining all would cost
 * more than it gains. */
#define EXAMINED_MAX 64
#define EXAMINED_PER_RANK 4

/* ---- time of free capacity ---- */

static int64_t end_after(int64_t from_ms, int64_t limit_ms)
{
    return limit_ms > 0 ? from_ms + limit_ms : END_UNKNOWN + from_ms;
}

/* Counted from the assignment, although the time limit counts from the start: the end then does not
 * move when the attempt starts, which would invalidate reservations. Starts are short. */
static int64_t end_of(const struct attempt *a)
{
    return a->row.state == ATTEMPT_STOPPING
               ? 0
               : end_after(a->row.assigned_at.ms, a->job->row.spec.time_limit_ms);
}

static void return_resources(struct resources *free, struct stock *stock, const struct attempt *a)
{
    const struct constraints *x = a->job->shape->constraints;
    resources_give(free, &a->allocated);
    if (x)
        stock_add(stock, &x->resources, 1);
}

/* Capacity for r, the shape that n is reserved for, once all attempts that end by then have ended,
 * and with `other` (may be NULL) placed there. */
static bool has_capacity(
    const struct node *n, const struct shape *r, int64_t until, const struct shape *other)
{
    struct resources free = n->free, all = r->need;
    struct stock stock = n->stock;
    int32_t times = n->claims > 1 ? n->claims : 1;
    bool is_empty = true;
    if (other && (shape_is_exclusive(r) || shape_is_exclusive(other)))
        return false;
    for (int32_t k = 1; k < times; k++)
        resources_give(&all, &r->need);
    if (other)
        resources_give(&all, &other->need);
    if (other && other->constraints)
        stock_add(&stock, &other->constraints->resources, -1);
    LIST_FOREACH (&n->attempts, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, on_node);
        if (end_of(a) <= until)
            return_resources(&free, &stock, a);
        else
            is_empty = false;
    }
    return resources_fit(&all, &free) && (is_empty || !shape_is_exclusive(r)) &&
           (!r->constraints || stock_times(&stock, &r->constraints->resources) >= times);
}

static int compare_ends(const void *a, const void *b)
{
    int64_t x = end_of(*(const struct attempt *const *)a),
            y = end_of(*(const struct attempt *const *)b);
    return (x > y) - (x < y);
}

/* When a job of the shape will have capacity there; 0 = now. The node is large enough. */
static int64_t fits_at(struct planner *p, const struct node *n, const struct shape *s)
{
    struct resources free = n->free;
    struct stock stock = n->stock;
    p->n_running = 0;
    LIST_FOREACH (&n->attempts, l)
        *GROW(p->running, p->n_running) = LIST_ENTRY(l, struct attempt, on_node);
    if (p->n_running > 1)
        qsort(p->running, p->n_running, sizeof *p->running, compare_ends);
    int64_t at = 0;
    for (size_t k = 0; k < p->n_running; k++) {
        if (!shape_is_exclusive(s) && resources_fit(&s->need, &free) &&
            (!s->constraints || stock_times(&stock, &s->constraints->resources) > 0))
            break;
        return_resources(&free, &stock, p->running[k]);
        at = end_of(p->running[k]);
    }
    return at;
}

/* ---- time of available power ---- */

/* State at a time, as seen by shape s. */
struct moment {
    int64_t until;
    const struct shape *s;
};

static bool ends_before(const void *ctx, const struct attempt *a)
{
    const struct moment *t = ctx;
    return end_of(a) <= t->until;
}

static const struct shape *kept_for(const void *ctx, const struct node *n)
{
    const struct moment *t = ctx;
    return reserve_is_taken(n, t->s) ? n->reserved_for : NULL;
}

static bool has_power(const struct node *n, const struct shape *s, int64_t until)
{
    return rack_fits_after(n->rack, ends_before, kept_for, &(struct moment){until, s}, n, s);
}

/* When its rack has the power for a job of the shape there, in addition to earlier reservations. */
static int64_t power_at(struct planner *p, const struct node *n, const struct shape *s)
{
    if (!n->rack || has_power(n, s, 0))
        return 0;
    p->n_running = 0;
    LIST_FOREACH (&n->rack->nodes, ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_rack)->attempts, la)
            *GROW(p->running, p->n_running) = LIST_ENTRY(la, struct attempt, on_node);
    }
    if (p->n_running > 1)
        qsort(p->running, p->n_running, sizeof *p->running, compare_ends);
    if (p->n_running == 0)
        return END_UNKNOWN;                    /* others have reserved it before */
    size_t first = 0, last = p->n_running - 1; /* more ended attempts leave more power */
    while (first < last) {
        size_t mid = first + (last - first) / 2;
        if (has_power(n, s, end_of(p->running[mid])))
            last = mid;
        else
            first = mid + 1;
    }
    return end_of(p->running[first]);
}

/* ---- node selection ---- */

/* The reservation of the node yields to s: it is behind s in the queue, or only s is within its
 * quota. */
static bool yields(
    const struct node *n, const struct shape *r, struct queue_position s, bool s_is_owed)
{
    if (n->claims > 0)
        return false;
    bool r_is_owed = quota_owes(r);
    return s_is_owed != r_is_owed ? s_is_owed : queue_position_order(s, queue_position_of(r)) < 0;
}

bool reserve_is_taken(const struct node *n, const struct shape *s)
{
    const struct shape *r = n->reserved_for;
    return r && r != s && !yields(n, r, queue_position_of(s), quota_owes(s));
}

static void gather(struct planner *p, const struct model *m, const struct shape *s,
    const struct pool *pool, struct stamp now)
{
    size_t max = EXAMINED_PER_RANK * (size_t)s->least;
    max = max > EXAMINED_MAX ? max : EXAMINED_MAX;
    p->n_candidates = 0;
    LIST_FOREACH (nodes_by_growth(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_growth);
        if (n->pool != pool || !resources_fit(&s->need, &n->row.total) || !node_suits(n, s) ||
            reserve_is_taken(n, s))
            continue;
        int64_t at = max_i64(fits_at(p, n, s), power_at(p, n, s));
        if (!maintenance_allows(n, s, (struct wall){max_i64(at, now.wall.ms)}))
            continue;
        *GROW(p->candidates, p->n_candidates) = (struct candidate){at, n->row.id};
        if (p->n_candidates == max)
            break;
    }
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    int by_time = (x->at > y->at) - (x->at < y->at);
    return by_time ? by_time : (x->node > y->node) - (x->node < y->node);
}

int32_t reserve_to_come(
    const struct model *m, const struct shape *s, const struct pool *pool, struct stamp now)
{
    int64_t n = 0;
    if (!pool->row.elastic || !pool_may_criu(pool, s->criu))
        return 0;
    LIST_FOREACH (&pool->offers, lo) {
        const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
        struct capacity capacity = pool_capacity(pool, now.mono), all = model_capacity(m);
        LIST_FOREACH (&o->instances, li)
            n += instance_is_coming(LIST_ENTRY(li, struct instance, of_offer));
        for (int32_t k = 0; k < s->least && offer_may_serve(o, s, &capacity, &all, now) &&
                            rack_has_power(o, s, n + 1);
             k++, n++) {
            capacity_take(&capacity, o);
            capacity_take(&all, o);
        }
    }
    return n < s->least ? (int32_t)n : s->least;
}

/* Whether the rack, if it were otherwise empty, would have the power for ranks on this node, on the
 * chosen nodes and on this many future machines. */
static bool rack_suffices_alone(const struct model *m, const struct shape *s, const struct node *n,
    const struct pool *pool, int64_t coming, const struct candidate *chosen, size_t n_chosen)
{
    if (!n->rack)
        return true;
    int64_t watts =
        rack_single_w(n->rack_kind, n->row.total, s) * (1 + (pool->rack == n->rack ? coming : 0));
    for (size_t k = 0; k < n_chosen; k++) {
        const struct node *other = model_node(m, chosen[k].node);
        if (other->rack == n->rack)
            watts += rack_single_w(other->rack_kind, other->row.total, s);
    }
    return n->rack->idle_w + watts <= n->rack->options->max_w;
}

/* Of the ordered candidates, the first that can have power together: at most `need`, the number
 * that the job lacks. */
static size_t keep_powered(struct planner *p, const struct model *m, const struct shape *s,
    const struct pool *pool, size_t need)
{
    size_t n = 0;
    for (size_t k = 0; k < p->n_candidates && n < need; k++)
        if (m->placement.n_racks == 0 ||
            rack_suffices_alone(m, s, model_node(m, p->candidates[k].node), pool,
                s->least - (int64_t)need, p->candidates, n))
            p->candidates[n++] = p->candidates[k];
    return n;
}

/* Writes the nodes of the pool that can serve it the earliest into ret_event; none if there are too
 * few or launches will serve it. */
static void choose(struct planner *p, const struct model *m, const struct shape *s,
    struct stamp now, struct event *ret_event)
{
    *ret_event =
        (struct event){.type = EV_RESERVE, .reserve = {.job = s->head, .nodes = p->reserve}};
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *pool = LIST_ENTRY(l, struct pool, in_all);
        if (!shape_allows_pool(s, pool))
            continue;
        size_t need = (size_t)(s->least - reserve_to_come(m, s, pool, now));
        if (need == 0) {
            ret_event->reserve.n_nodes = 0;
            return;
        }
        gather(p, m, s, pool, now);
        if (p->n_candidates < need)
            continue;
        qsort(p->candidates, p->n_candidates, sizeof *p->candidates, compare_candidates);
        if (keep_powered(p, m, s, pool, need) < need)
            /* a rack never has enough power for all of it: reservations there would last forever */
            continue;
        int64_t until = p->candidates[need - 1].at;
        if (ret_event->reserve.n_nodes > 0 && until >= ret_event->reserve.until)
            continue;
        ret_event->reserve.until = until;
        ret_event->reserve.n_nodes = need;
        for (size_t k = 0; k < need; k++)
            p->reserve[k] = p->candidates[k].node;
    }
}

static bool is_settled(const struct model *m, const struct shape *s)
{
    enum limit_kind kind;
    return !list_is_empty(&s->reserved) || s->reserve_tried == model_versions(m)->reserve_epoch ||
           limits_exceeded(m, s, s->least, &kind);
}

bool reserve_next(struct planner *p, const struct model *m, const struct shape *passing,
    struct stamp now, struct event *ret_event)
{
    const struct shape *s;
    queue_walk_begin(&p->walk, m);
    for (int32_t left = model_policy(m)->reserve;
         left > 0 && (s = queue_walk_next(&p->walk)) != NULL && s != passing; left--) {
        if (is_settled(m, s) || licences_lack(m, s->constraints))
            continue;
        choose(p, m, s, now, ret_event);
        return true;
    }
    return false;
}

void reserve_deinit(struct planner *p)
{
    free(p->running);
    free(p->candidates);
}

/* ---- effect on other jobs ---- */

bool reserve_is_known(int64_t until)
{
    return until < END_UNKNOWN;
}

/* Leaves enough power for the reservations on the nodes of its rack. */
static bool leaves_power(const struct node *n, const struct shape *s, struct stamp now)
{
    LIST_FOREACH (&n->rack->nodes, l) {
        const struct node *other = LIST_ENTRY(l, struct node, in_rack);
        const struct shape *r = other->reserved_for;
        if (r && r != s && reserve_is_taken(other, s) &&
            end_after(now.wall.ms, s->limit_ms) > r->reserved_until &&
            !has_power(n, s, r->reserved_until))
            return false;
    }
    return true;
}

bool reserve_allows(const struct node *n, const struct shape *s, struct stamp now)
{
    if (n->rack && !leaves_power(n, s, now))
        return false;
    if (!n->reserved_for || n->reserved_for == s || !reserve_is_taken(n, s))
        return true;
    const struct shape *r = n->reserved_for;
    return end_after(now.wall.ms, s->limit_ms) <= r->reserved_until ||
           has_capacity(n, r, r->reserved_until, s);
}

static void unreserve(struct model *m, struct node *n)
{
    n->reserved_for = NULL;
    n->claims = 0;
    link_remove(&n->in_reserved);
    node_refresh(m, n, true); /* other jobs may fit there now */
    if (n->rack)
        rack_reservations_changed(m, n->rack);
}

static void unclaim(struct model *m, struct shape *s, int64_t n)
{
    struct team *t = s->account->team;
    s->claims -= n;
    queue_set_apart(m, s, s->claims > 0);
    t->claimed_mcpu -= n * s->least * s->mcpu;
    limits_more_owed(m, t);
}

void reserve_claim(struct model *m, struct shape *s, struct node *n)
{
    if (n->reserved_for && n->reserved_for != s)
        reserve_drop(m, n->reserved_for);
    if (!n->reserved_for) {
        n->reserved_for = s;
        list_push_back(&s->reserved, &n->in_reserved);
    }
    n->claims++;
    /* With a claim in force other jobs may get more of the node and of its rack than before. */
    reserve_may_yield(m, n);
}

void reserve_claimed(struct model *m, struct shape *s)
{
    s->claims++;
    queue_set_apart(m, s, true);
    s->account->team->claimed_mcpu += s->least * s->mcpu;
    s->reserved_until = 0; /* stopping attempts count as gone */
    s->reserve_tried = model_versions(m)->reserve_epoch;
    if (!link_is_in(&s->by_reserve))
        list_push_back(&m->placement.reserving, &s->by_reserve);
    limits_less_owed(m, s->account->team);
    model_note_change(m);
}

/* Drops the claim of one job, on this node if it has claims there. */
static void give_up_claim(struct model *m, struct shape *s, struct node *n)
{
    if (s->nodes > 1 || s->claims == 1) {
        reserve_drop(m, s);
        return;
    }
    if (n->reserved_for != s)
        n = LIST_ENTRY(list_first(&s->reserved), struct node, in_reserved);
    if (--n->claims == 0)
        unreserve(m, n);
    else
        reserve_relaxed(m, n);
    unclaim(m, s, 1);
}

void reserve_used(struct model *m, struct shape *s, struct node *n)
{
    if (s->claims > 0)
        give_up_claim(m, s, n);
}

void reserve_trim(struct model *m, struct shape *s)
{
    while (s->claims > s->n_wanted)
        give_up_claim(m, s, LIST_ENTRY(list_last(&s->reserved), struct node, in_reserved));
}

void reserve_drop(struct model *m, struct shape *s)
{
    s->reserve_tried = 0;
    link_remove(&s->by_reserve);
    if (list_is_empty(&s->reserved))
        return;
    model_note_reserve(m);
    for (struct link *l; (l = list_first(&s->reserved)) != NULL;)
        unreserve(m, LIST_ENTRY(l, struct node, in_reserved));
    if (s->claims > 0)
        unclaim(m, s, s->claims);
}

/* Without node_refresh, which may drop reservations while callers iterate over them. */
void reserve_may_yield(struct model *m, struct node *n)
{
    node_grew(m, n);
    if (n->rack)
        rack_reservations_changed(m, n->rack);
}

/* Position of the last shape that may have a reservation by its queue position. */
static struct queue_position last_with_reservation(const struct model *m)
{
    struct queue_walk w = {0};
    struct queue_position last = {INT64_MIN, INT64_MIN};
    const struct shape *s;
    queue_walk_begin(&w, m);
    for (int32_t left = model_policy(m)->reserve; left > 0 && (s = queue_walk_next(&w)) != NULL;
         left--)
        last = queue_position_of(s);
    queue_walk_end(&w);
    return last;
}

void reserve_reorder(struct model *m)
{
    const struct queue_position last = last_with_reservation(m);
    LIST_FOREACH (&m->placement.reserving, l) {
        struct shape *s = LIST_ENTRY(l, struct shape, by_reserve);
        if (s->claims > 0)
            continue;
        if (queue_position_order(last, queue_position_of(s)) < 0)
            reserve_drop(m, s);
        LIST_FOREACH (&s->reserved, ln)
            /* a job may be before it now */
            reserve_may_yield(m, LIST_ENTRY(ln, struct node, in_reserved));
    }
}

void reserve_relaxed(struct model *m, struct node *n)
{
    bool is_rack_kept = n->rack && rack_reserved_for(n->rack);
    if (n->reserved_for || is_rack_kept)
        node_refresh(m, n, true);
    if (is_rack_kept)
        rack_reservations_changed(m, n->rack);
}

void reserve_retimed(struct model *m, struct node *n)
{
    model_note_reserve(m);
    if (!reserve_is_valid(n))
        reserve_drop(m, n->reserved_for);
    reserve_relaxed(m, n);
}

bool reserve_is_valid(const struct node *n)
{
    const struct shape *r = n->reserved_for;
    return !r || has_capacity(n, r, r->reserved_until, NULL);
}

void reserve_overridden(struct model *m, struct node *n, struct queue_position by, bool was_owed)
{
    struct shape *r = n->reserved_for;
    if (r && yields(n, r, by, was_owed) && !reserve_is_valid(n))
        reserve_drop(m, r);
}

bool reserve_may_take(
    const struct model *m, const struct shape *s, const int64_t *nodes, size_t n_nodes)
{
    bool may = true;
    for (size_t k = 0; may && k < n_nodes; k++) {
        const struct node *n = model_node(m, nodes[k]);
        may = n && node_takes_work(n) && !reserve_is_taken(n, s);
        for (size_t i = 0; may && i < k; i++)
            may = nodes[i] != nodes[k];
    }
    return may;
}

int apply_reserve(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct job *j = model_job(m, ev->reserve.job);
    struct shape *s = j ? j->shape : NULL;
    if (!s || s->head != ev->reserve.job || ev->reserve.n_nodes > (size_t)s->nodes ||
        !reserve_may_take(m, s, ev->reserve.nodes, ev->reserve.n_nodes))
        return err_set(e, ERR_CONFLICT,
            "nothing can be reserved for job %" PRId64 " there (any more)", ev->reserve.job);
    reserve_drop(m, s);
    for (size_t k = 0; k < ev->reserve.n_nodes; k++) {
        struct node *n = model_node(m, ev->reserve.nodes[k]);
        if (n->reserved_for)
            reserve_drop(m, n->reserved_for);
        n->reserved_for = s;
        list_push_back(&s->reserved, &n->in_reserved);
    }
    s->reserved_until = ev->reserve.until;
    s->reserve_tried = model_versions(m)->reserve_epoch;
    list_push_back(&m->placement.reserving, &s->by_reserve);
    model_note_change(m);
    ret_outcome->id = ev->reserve.job;
    return 0;
}
