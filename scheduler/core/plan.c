/* SPDX-License-Identifier: Apache-2.0
 *
 * Decisions; deciders[] is their order. Each examines only the head of an index of the model: the
 * lease that expires first, the node idle for longest, the oldest job that may fit.
 *
 * What the planner remembers, and why it is valid:
 *  - per demand class: the growth count at which it fitted nowhere. Until a node grows it still
 *    fits nowhere, and then only nodes that grew since need to be examined.
 *  - `seen`, when the cursor last passed the end of the queue: no class fits anywhere except on
 *    nodes that grew since. Then only those classes are examined that need no more than one of
 *    these nodes has, or that are new or have a new first shape. The work after an end is thus
 *    independent of the queue length.
 *  - the cursor: no class with its first shape before it fits anywhere. Valid until a node grows, a
 *    job returns to the queue or positions change (rewind): placements only reduce capacity, for
 *    gangs too (gang_in), and a shape that enters the queue moves the cursor back to itself.
 *  - the launches for a state of demand and supply (launch.c).
 */
#include "scheduler/core/planner.h"
#include "scheduler/core/deadline/spot_observations.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/ckpt_gc.h"
#include "scheduler/core/lifecycle/digest.h"
#include "scheduler/core/lifecycle/drill.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/lifecycle_access.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/lifecycle/user_requeue.h"
#include "scheduler/core/lifecycle/withheld.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/avoid.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/crons.h"
#include "scheduler/core/queue/expiry.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_access.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/prefetch.h"
#include <stdlib.h>

#define LOST_LEASES 2       /* an instance with a lost node is ended after this many leases */
#define LAST_OUTPUT_MS 5000 /* for output still in transit at the end of its attempt */
/* with more grown nodes, the index of free capacity is faster */
#define GROWN_EXAMINED_MAX 64
/* remembered classes beyond the live ones before the memory is cleared */
#define MEMO_SLACK 1024

struct planner *planner_create(void)
{
    struct planner *p = mem_alloc(sizeof *p);
    p->rewind = p->change = p->preempt_change = p->seen.growth = p->seen.retry_all = -1;
    p->preempt_until = MONO_NONE;
    p->valid_until = MONO_NONE;
    return p;
}

void planner_destroy(struct planner *p)
{
    if (!p)
        return;
    queue_walk_end(&p->walk);
    map_deinit(&p->unfit);
    launches_deinit(p);
    reserve_deinit(p);
    preempt_deinit(p);
    free(p);
}

/* ---- decisions by time ---- */

static struct mono mono_after(struct mono from, int64_t ms)
{
    return (struct mono){from.ms + ms};
}

static struct event end_of(const struct instance *i, const char *text)
{
    struct event ev = {.type = EV_END_INSTANCE};
    ev.end_instance.instance = i->row.id;
    STR_COPY(ev.end_instance.text, text);
    return ev;
}

static struct event end_after(const struct instance *i, const char *what, int64_t ms)
{
    char text[CORE_TEXT_MAX], took[32];
    time_format_duration(ms, took, sizeof took);
    text_format(text, sizeof text, "%s for %s", what, took);
    return end_of(i, text);
}

static void consider_leases(const struct model *m, struct mono *best, struct event *ret_event)
{
    struct link *l = list_first(nodes_by_seen(m));
    if (!l)
        return;
    const struct node *n = LIST_ENTRY(l, struct node, by_seen);
    struct event ev = {.type = EV_NODE_LOST, .lost.node = n->row.id};
    event_if_sooner(lease_ends(m, n->last_seen), &ev, best, ret_event);
}

static void consider_lost(const struct model *m, struct mono *best, struct event *ret_event)
{
    struct link *l = list_first(nodes_lost(m));
    if (!l)
        return;
    const struct node *n = LIST_ENTRY(l, struct node, by_state);
    int64_t ms = LOST_LEASES * m->options.lease_ms;
    struct event ev = end_after(n->instance, "its node was lost", ms);
    event_if_sooner(mono_after(n->since, ms), &ev, best, ret_event);
}

static void consider_noticed(const struct model *m, struct mono *best, struct event *ret_event)
{
    struct link *l = list_first(nodes_noticed(m));
    const struct node *n = l ? LIST_ENTRY(l, struct node, by_state) : NULL;
    if (!n || !n->instance || !list_is_empty(&n->attempts))
        return;
    struct event ev = end_of(n->instance, "it is being reclaimed and runs no jobs");
    event_if_sooner(mono_after(n->idle_since, LAST_OUTPUT_MS), &ev, best, ret_event);
}

/* Few: at most a part of each pool is drained by belay. */
static void consider_drained(const struct model *m, struct mono *best, struct event *ret_event)
{
    LIST_FOREACH (nodes_drained(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_state);
        struct event ev = end_of(n->instance, "belay drained it, and its jobs have left");
        event_if_sooner(mono_after(n->idle_since, LAST_OUTPUT_MS), &ev, best, ret_event);
    }
}

/* Idle nodes are in the order in which they became idle; a recently joined one may have to wait for
 * longer than later ones. */
static void consider_idle(
    const struct planner *planner, const struct pool *p, struct mono *best, struct event *ret_event)
{
    int64_t spare = list_is_empty(&p->idle) ? 0 : base_load_spare(p);
    LIST_FOREACH (&p->idle, l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_state);
        struct mono due = mono_after(n->idle_since, p->row.idle_timeout_ms);
        int64_t at_least_ms =
            p->row.cooldown_ms > p->row.min_paid_ms ? p->row.cooldown_ms : p->row.min_paid_ms;
        struct mono cool = mono_after(n->instance->since, at_least_ms);
        if (mono_is_set(*best) && best->ms <= due.ms)
            return; /* later ones are not due earlier */
        if (n->kept_for || n->reserved_for || node_is_earmarked(planner, n->row.id) ||
            (n->row.state == NODE_UP && spare <= 0))
            continue;
        if (cool.ms > due.ms)
            due = cool;
        struct event ev = end_after(n->instance, "idle", due.ms - n->idle_since.ms);
        event_if_sooner(due, &ev, best, ret_event);
    }
}

static void consider_queued(const struct pool *p, struct mono *best, struct event *ret_event)
{
    struct link *l = list_first(&p->queued);
    if (!l || p->row.queue_patience_ms == 0)
        return;
    const struct instance *i = LIST_ENTRY(l, struct instance, booting);
    struct event ev = end_after(i, "waited in the provider's queue", p->row.queue_patience_ms);
    event_if_sooner(mono_after(i->since, p->row.queue_patience_ms), &ev, best, ret_event);
}

static void consider_booting(const struct pool *p, struct mono *best, struct event *ret_event)
{
    struct link *l = list_first(&p->booting);
    if (!l)
        return;
    const struct instance *i = LIST_ENTRY(l, struct instance, booting);
    struct event ev = end_after(i, "did not join", p->row.boot_timeout_ms);
    event_if_sooner(mono_after(i->since, p->row.boot_timeout_ms), &ev, best, ret_event);
}

/* When the next instance must be ended, with the event; MONO_NONE: never. */
static struct mono end_due(
    const struct planner *planner, const struct model *m, struct event *ret_event)
{
    struct mono best = MONO_NONE;
    consider_noticed(m, &best, ret_event);
    consider_drained(m, &best, ret_event);
    consider_lost(m, &best, ret_event);
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        consider_idle(planner, p, &best, ret_event);
        consider_queued(p, &best, ret_event);
        consider_booting(p, &best, ret_event);
    }
    return best;
}

static struct mono loss_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    (void)now;
    struct mono best = MONO_NONE;
    consider_leases(m, &best, ret_event);
    return best;
}

/* When the next cleaning or measurement of an ended job's data is due, with the event. */
static struct mono clean_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    *ret_event = (struct event){.type = EV_CLEAN};
    return ckpt_gc_due(m, now, &ret_event->clean.job);
}

static bool is_due(struct mono due, struct stamp now)
{
    return mono_is_set(due) && due.ms <= now.mono.ms;
}

/* ---- placement ---- */

/* Growth counts are stored as pointers, plus one, since a map has no NULL. Classes skipped since
 * the cursor last passed the end have no entry. */
static int64_t unfit_at(
    const struct planner *p, const struct model *m, const struct demand_class *k)
{
    const struct constraints *x = k->first->constraints;
    int64_t known = (int64_t)(intptr_t)map_get(&p->unfit, k->id) - 1;
    bool was_there = p->seen.retry_all == model_versions(m)->retry_all && k->id < p->seen.fresh &&
                     !(x && x->licences.n > 0);
    return was_there && known < p->seen.growth ? p->seen.growth : known;
}

static void remember_unfit(struct planner *p, const struct model *m, const struct demand_class *k)
{
    if (map_size(&p->unfit) > queue_n_demand_classes(m) + MEMO_SLACK) {
        map_deinit(&p->unfit); /* mostly of classes that are gone */
        p->unfit = (struct map){0};
    }
    map_put(&p->unfit, k->id, (void *)(intptr_t)(model_versions(m)->growth + 1));
}

static bool may_fit(const struct planner *p, const struct model *m, const struct shape *s)
{
    int64_t known = unfit_at(p, m, s->demand_class);
    int examined = 0;
    if (known < s->account->allowance.freed_version ||
        known < s->account->team->allowance.freed_version || known < 0 ||
        (s->in_budgets && known < budgets_freed_version(s)))
        return true;
    LIST_FOREACH (nodes_by_growth(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_growth);
        if (n->grown <= known)
            return false;
        if (examined++ == GROWN_EXAMINED_MAX || (node_has_capacity(n, s) && node_suits(n, s)))
            return true;
    }
    return false;
}

static bool find_place(struct planner *p, const struct model *m, const struct shape *s,
    struct stamp now, struct event *ret_event)
{
    *ret_event = (struct event){.type = EV_PLACE, .place.job = s->head};
    if (s->nodes > 1) {
        int32_t n = nodes_for_gang(m, s, now, p->gang);
        ret_event->place.node = n ? p->gang[0] : CORE_ID_NONE;
        ret_event->place.more = &p->gang[1];
        ret_event->place.n_more = n ? (size_t)n - 1 : 0;
    } else {
        const struct node *n = nodes_best(m, s, now);
        n = n ? prefetch_place(m, s, n, now) : NULL;
        ret_event->place.node = n ? n->row.id : CORE_ID_NONE;
    }
    return ret_event->place.node != CORE_ID_NONE;
}

static bool wants_licence(const struct shape *s, const struct licence *l)
{
    return counts_of(&s->constraints->licences, l->what.name) > 0;
}

/* Licences that it needs are not available: too few are free, or they are reserved for a shape
 * before it. */
static bool lacks_licences(const struct planner *p, const struct model *m, const struct shape *s)
{
    if (!s->constraints || s->constraints->licences.n == 0)
        return false;
    for (size_t i = 0; p->is_wanting && i < licences_count(m); i++)
        if (wants_licence(s, licence_at(m, i)) &&
            queue_position_order(p->wanting[i], queue_position_of(s)) < 0)
            return true;
    return licences_lack(m, s->constraints) != NULL;
}

/* The shape lacks only licences: shapes behind it must not take those that it needs. */
static void note_licences_wanted(struct planner *p, const struct model *m, const struct shape *s)
{
    for (size_t i = 0; i < licences_count(m); i++)
        if (counts_of(&s->constraints->licences, licence_at(m, i)->what.name) >
            licence_at(m, i)->what.n)
            return; /* the configuration has fewer now: it cannot start */
    for (size_t i = 0; i < licences_count(m); i++) {
        if (!p->is_wanting)
            p->wanting[i] = (struct queue_position){INT64_MAX, INT64_MAX};
        if (wants_licence(s, licence_at(m, i)) &&
            queue_position_order(queue_position_of(s), p->wanting[i]) < 0)
            p->wanting[i] = queue_position_of(s);
    }
    p->is_wanting = true;
    p->wanting_change = model_versions(m)->change;
}

static void throttle(const struct shape *s, struct event *ret_event)
{
    *ret_event = (struct event){.type = EV_THROTTLE, .throttle.job = s->head};
}

/* For a shape that found a place. Throttles it if it may not run; reduces a gang to the number of
 * nodes allowed or desired. */
static void apply_limits(
    struct planner *p, const struct model *m, const struct shape *s, struct event *ret_event)
{
    enum limit_kind kind;
    if (!limits_exceeded(m, s, s->least, &kind)) {
        if (s->nodes > 1)
            ret_event->place.n_more =
                (size_t)limits_count_allowed(m, s, p->gang, (int32_t)ret_event->place.n_more + 1) -
                1;
        return;
    }
    const struct job *j = model_job(m, s->head);
    if (link_is_in(&job_side(j)->gang_resizes) && s->least > j->row.spec.nodes_min &&
        !limits_exceeded(m, s, j->row.spec.nodes_min, &kind))
        *ret_event =
            (struct event){.type = EV_SETTLE, .settle = {.job = s->head, .nothing_more = true}};
    else
        throttle(s, ret_event);
}

#define OWED_EXAMINED_MAX 64

/* Shapes within a quota go before borrowing ones: the first that fits somewhere. */
static bool next_owed(struct planner *p, const struct model *m, const struct shape *s,
    struct stamp now, struct event *ret_event)
{
    if (quota_owes(s))
        return false;
    LIST_FOREACH (quota_teams(m), l) {
        const struct team *t = LIST_ENTRY(l, struct team, in_quotas);
        const struct demand_class *k = team_may_be_owed(t) ? queue_first_of(t) : NULL;
        for (int examined = 0; k && examined < OWED_EXAMINED_MAX;
             k = queue_next_of(k), examined++) {
            const struct shape *o = k->first;
            p->n_tried++;
            if (!quota_owes(o))
                continue;
            if (limits_used_up(m, o)) {
                throttle(o, ret_event); /* later ones of other accounts may run */
                return true;
            }
            if (lacks_licences(p, m, o) || !may_fit(p, m, o))
                continue;
            if (find_place(p, m, o, now, ret_event)) {
                apply_limits(p, m, o, ret_event);
                return true;
            }
            remember_unfit(p, m, k);
        }
    }
    return false;
}

static void add_free(struct planner *p, const struct resources *free)
{
    p->grown.cpus = free->cpus > p->grown.cpus ? free->cpus : p->grown.cpus;
    p->grown.gpus = free->gpus > p->grown.gpus ? free->gpus : p->grown.gpus;
    p->grown.memory_mib =
        free->memory_mib > p->grown.memory_mib ? free->memory_mib : p->grown.memory_mib;
}

/* Capacity on the node, and on those of its rack; false: too many nodes to examine. */
static bool add_rack_free(struct planner *p, const struct node *of, int *examined)
{
    if (++*examined > GROWN_EXAMINED_MAX)
        return false;
    add_free(p, &of->free);
    if (!of->rack)
        return true;
    LIST_FOREACH (&of->rack->nodes, l) {
        if (++*examined > GROWN_EXAMINED_MAX)
            return false;
        add_free(p, &LIST_ENTRY(l, struct node, in_rack)->free);
    }
    return true;
}

/* Capacity that is new since the cursor last passed the end; false: too many nodes to examine. A
 * job within its quota ignores reservations: when more is owed to a team, capacity on nodes with a
 * reservation, and power on all nodes of their racks, count as new. */
static bool gather_capacity(struct planner *p, const struct model *m)
{
    int examined = 0;
    p->grown = (struct resources){0};
    LIST_FOREACH (nodes_by_growth(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, by_growth);
        if (n->grown <= p->seen.growth)
            break;
        if (examined++ == GROWN_EXAMINED_MAX)
            return false;
        add_free(p, &n->free);
    }
    if (model_versions(m)->owed_more <= p->seen.growth)
        return true;
    LIST_FOREACH (reserve_shapes(m), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct shape, by_reserve)->reserved, ln)
            if (!add_rack_free(p, LIST_ENTRY(ln, struct node, in_reserved), &examined))
                return false;
    return true;
}

static void rewind_cursor(struct planner *p, const struct model *m)
{
    bool wanted = p->is_wanting && p->wanting_change != model_versions(m)->change,
         again = p->rewind != model_versions(m)->rewind || wanted;
    if (again) {
        p->is_wanting = p->is_all = false;
        p->cursor = (struct queue_position){INT64_MIN, INT64_MIN};
        p->begun = (struct seen){.growth = model_versions(m)->growth,
            .fresh = queue_next_class_id(m),
            .retry_all = model_versions(m)->retry_all};
    }
    if (wanted)
        p->seen.retry_all = -1;
    p->is_all =
        p->is_all || p->seen.retry_all != model_versions(m)->retry_all || !gather_capacity(p, m);
    LIST_FOREACH (queue_by_arrival(m), l) {
        const struct shape *s = LIST_ENTRY(l, struct shape, by_arrival);
        if (p->rewind != model_versions(m)->rewind || s->arrived <= p->arrived)
            break;
        if (queue_position_order(queue_position_of(s), p->cursor) < 0)
            p->cursor = queue_position_of(s);
    }
    p->rewind = model_versions(m)->rewind;
    p->arrived = model_versions(m)->arrivals;
}

static struct demand_class *next_to_try(
    const struct planner *p, const struct model *m, const struct demand_class *before)
{
    if (!p->is_all)
        return queue_class_within(m,
            before ? (struct queue_position){before->at.at_16, before->at.head + 1} : p->cursor,
            &p->grown, p->seen.fresh);
    return before ? queue_next_class(before) : queue_class_at_least(m, p->cursor);
}

/* The time for a shape that lacks only licences. A placement at it ends before any reservation
 * begins, so no reservation excludes it. At the real time, reservations would exclude it as time
 * passes, and licences would then be released to others without an event. */
static const struct stamp before_all = {.wall = {-(1LL << 61)}};

static bool next_place(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    rewind_cursor(p, m);
    for (struct demand_class *k = next_to_try(p, m, NULL); k; k = next_to_try(p, m, k)) {
        const struct shape *s = k->first;
        p->cursor = k->at;
        p->n_tried++;
        if (limits_used_up(m, s)) {
            throttle(s, ret_event);
            return true;
        }
        bool lacks = lacks_licences(p, m, s);
        if (lacks ? find_place(p, m, s, before_all, ret_event)
                  : may_fit(p, m, s) && find_place(p, m, s, now, ret_event)) {
            apply_limits(p, m, s, ret_event);
            if (lacks && ret_event->type == EV_PLACE) {
                note_licences_wanted(p, m, s);
                continue;
            }
            if (ret_event->type != EV_PLACE || reserve_next(p, m, s, now, ret_event) ||
                list_is_empty(quota_teams(m)) || next_owed(p, m, s, now, ret_event))
                return true;
            find_place(p, m, s, now, ret_event); /* again: others were examined in between */
            apply_limits(p, m, s, ret_event);
            return true;
        }
        if (!lacks)
            remember_unfit(p, m, k);
    }
    p->cursor = (struct queue_position){INT64_MAX, INT64_MAX};
    p->is_all = false;
    p->seen = p->begun;
    if (p->is_wanting)
        p->seen.retry_all = -1; /* the shapes that it blocks from licences were not examined */
    *ret_event =
        (struct event){.type = EV_UNTHROTTLE, .unthrottle.job = limits_next_unthrottled(m)};
    return ret_event->unthrottle.job != CORE_ID_NONE;
}

/* ---- plan_next, plan_wake ---- */

/* Gangs that earmark nodes for their start, and jobs that move, keep them from being ended as
 * idle. */
static bool decide_end(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    earmarks_refresh(p, m, now);
    return is_due(end_due(p, m, ret_event), now);
}

static struct mono end_until(const struct planner *p, const struct model *m)
{
    struct event unused;
    return end_due(p, m, &unused);
}

static bool decide_launch(
    struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    *ret_event = (struct event){.type = EV_LAUNCH};
    return launches_next(p, m, now, &ret_event->launch.offer);
}

static struct mono launch_until(const struct planner *p, const struct model *m)
{
    (void)m;
    return p->valid_until;
}

static struct mono preempt_until(const struct planner *p, const struct model *m)
{
    (void)m;
    return p->preempt_until;
}

/* One type of decision. The table is in order of precedence. plan_next returns the first
 * one available; plan_wake returns the earliest time at which one may become due without an
 * event. */
struct decider {
    const char *name;
    /* For a decision by the model alone: when it is due, and its event; MONO_NONE: never without
     * another event. Sets all of *ret_event or nothing of it. */
    struct mono (*when_due)(const struct model *m, struct stamp now, struct event *ret_event);
    /* Instead, for a decision that uses the planner's memory: true if it is due now. */
    bool (*decide)(
        struct planner *p, const struct model *m, struct stamp now, struct event *ret_event);
    /* until when a negative answer is valid; NULL: until an event */
    struct mono (*valid_until_of)(const struct planner *p, const struct model *m);
};

static const struct decider deciders[] = {
    {"lost nodes", .when_due = loss_due},
    {"dependencies", .when_due = dependencies_due},
    {"expiry", .when_due = expiry_due},
    {"procurement", .when_due = procurement_due},
    {"spot observations", .when_due = spot_observations_due},
    {"windows", .when_due = windows_due},
    {"budgets", .when_due = budgets_next},
    {"notifications of users", .when_due = notify_due},
    {"gangs that wait for more nodes", .when_due = gang_due},
    {"requeues by users", .when_due = user_requeue_due},
    {"withheld attempts", .when_due = withheld_due},
    {"idle GPUs", .when_due = idle_gpus_due},
    {"reservations", .when_due = maintenance_due},
    {"order of the queue", .when_due = order_due},
    {"cron entries", .when_due = cron_next_due},
    {"morning digests", .when_due = digest_next_due},
    {"base load", .when_due = base_load_due},
    {"places", .decide = next_place},
    {"preemption", .decide = preempt_next, .valid_until_of = preempt_until},
    {"ends of machines", .decide = decide_end, .valid_until_of = end_until},
    {"drills", .when_due = drill_next},
    {"avoided nodes", .when_due = avoid_due},
    {"prefetches", .decide = prefetch_next},
    {"moves", .decide = moves_next},
    {"launches", .decide = decide_launch, .valid_until_of = launch_until},
    {"gangs that settle for less", .decide = settles_next},
    {"checkpoints of ended jobs", .when_due = clean_due},
};
#define N_DECIDERS (sizeof deciders / sizeof deciders[0])

bool plan_next(struct planner *p, const struct model *m, struct stamp now, struct event *ret_event)
{
    struct event ev = {0};
    for (size_t k = 0; k < N_DECIDERS; k++) {
        const struct decider *d = &deciders[k];
        if (d->decide)
            ev = (struct event){0};
        if (d->decide ? d->decide(p, m, now, &ev) : is_due(d->when_due(m, now, &ev), now)) {
            ev.now = now;
            *ret_event = ev;
            p->decider = d->name;
            return true;
        }
    }
    return false;
}

const char *plan_decider(const struct planner *p)
{
    return p->decider;
}

struct mono plan_wake(const struct planner *p, const struct model *m, struct stamp now)
{
    struct mono wake = MONO_NONE;
    struct event unused;
    for (size_t k = 0; k < N_DECIDERS; k++) {
        const struct decider *d = &deciders[k];
        struct mono due = d->when_due         ? d->when_due(m, now, &unused)
                          : d->valid_until_of ? d->valid_until_of(p, m)
                                              : MONO_NONE;
        if (mono_is_set(due) && (!mono_is_set(wake) || due.ms < wake.ms))
            wake = due;
    }
    if (mono_is_set(wake) && wake.ms <= now.mono.ms)
        wake.ms = now.mono.ms + 1; /* due decisions are returned by plan_next; avoids a busy loop */
    return wake;
}
