/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: pending jobs by shape, shapes by the position of their first job. Within a shape jobs
 * are ordered by the time since which they are eligible, plus their nice; a requeued job keeps its
 * position. All other parts of the priority are equal within a shape (priority.h), so a change
 * moves one job and at most one shape. Only usage changes by itself: then the shapes, which are
 * few, get new positions (queue_order), and no job is touched.
 */
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/placement/placement_access.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"

#include "base/str.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_KEY_MAX 512
#define NUMBER_MAX 14 /* of a key, in base-32 digits */
#define OWNER_KEY_MAX (POLICY_QOS_MAX + 40)
/* Significant binary digits of time limits, which bounds the number of demand classes. */
#define LIMIT_BITS 3

/* Which nodes have capacity depends on the rest of the allowance: by cost there, or by the total of
 * the node. */
static bool chooses_nodes(const struct allowance *w, const struct shape *s)
{
    return w->max[LIMIT_UUSD_H] != LIMIT_NONE || (w->is_limited && shape_is_exclusive(s));
}

/* ---- keys: texts that differ for different values and are fast to build ---- */

static char *add_number(char *at, int64_t n)
{
    uint64_t left = (uint64_t)n;
    do
        *at++ = (char)('A' + (left & 31));
    while (left >>= 5);
    *at++ = ' ';
    return at;
}

static char *add_text(char *at, const char *text)
{
    at = stpcpy(at, text);
    *at++ = ' ';
    return at;
}

/* The demands that placement reads, besides the account. */
static void add_demand(char *at, const struct shape *s)
{
    const int64_t numbers[] = {s->constraints ? s->constraints->id : CONSTRAINTS_NONE,
        s->labels ? s->labels->id : 0, s->limit_ms, s->need.cpus, s->need.gpus, s->need.memory_mib,
        s->nodes, s->least, s->owner, s->wish, s->procurement, s->procurement_offer, s->criu,
        s->avoid, s->certified_at.ms, s->can_drain};
    const int64_t pays[] = {(int64_t)s->in_budgets, s->max_uusd_h, s->is_capped ? s->left_uusd : -1,
        s->expect_ms, s->can_park};
    static_assert(OWNER_KEY_MAX + NUMBER_MAX + sizeof numbers / sizeof *numbers * NUMBER_MAX +
                          sizeof s->pool + 1 + sizeof pays / sizeof *pays * NUMBER_MAX <
                      SHAPE_KEY_MAX,
        "a key has space for all of it");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        at = add_number(at, numbers[i]);
    at = add_text(at, s->pool);
    for (size_t i = 0; shape_pays(s) && i < sizeof pays / sizeof *pays; i++)
        at = add_number(at, pays[i]);
    *at = '\0';
}

static void shape_key(const struct shape *s, char *out)
{
    add_demand(add_text(add_number(out, s->account->id), s->qos ? s->qos->policy->name : ""), s);
}

/* Whether it has capacity may depend on its account, on its team's quota, on the reservations that
 * are open to it, or, with claims in progress, on these jobs only. */
static void demand_class_key(const struct shape *s, char *out)
{
    const struct account *a = s->account;
    if (s->is_apart)
        out = add_number(add_text(out, "shape"), s->id);
    else if (chooses_nodes(&a->allowance, s))
        out = add_number(add_text(out, "account"), a->id);
    else if (chooses_nodes(&a->team->allowance, s) || a->team->quota_mcpu > 0)
        out = add_number(add_text(out, "team"), a->team->allowance.index);
    else
        out = add_text(out, "all");
    if (s->open_to)
        out = add_number(out, (int64_t)s->open_to);
    add_demand(out, s);
}

static struct position position_of(const struct job *j)
{
    return (struct position){job_since_ms(j), j->row.id};
}

static int position_order(struct position a, struct position b)
{
    int c = tree_order(a.since_ms, b.since_ms);
    return c ? c : tree_order(a.id, b.id);
}

static int compare_job(const void *key, const struct tree_link *l)
{
    return position_order(
        *(const struct position *)key, position_of(TREE_ENTRY(l, struct job, in_shape)));
}

int queue_position_order(struct queue_position a, struct queue_position b)
{
    int c = tree_order(a.at_16, b.at_16);
    return c ? c : tree_order(a.head, b.head);
}

struct queue_position queue_position_of(const struct shape *s)
{
    return (struct queue_position){s->position_16, s->head};
}

static int compare_entries(const void *key, const struct tree_link *l)
{
    return queue_position_order(
        *(const struct queue_position *)key, TREE_ENTRY(l, struct queue_entry, link)->at);
}

static struct shape *as_shape(struct tree_link *l)
{
    return l ? TREE_ENTRY(l, struct queue_entry, link)->shape : NULL;
}

/* Inserts it at its position, in the queue or among the throttled ones. */
static void add_shape_at_position(struct tree *t, struct shape *s)
{
    s->entry->at = queue_position_of(s);
    tree_add(t, &s->entry->link, &s->entry->at, compare_entries);
}

static int compare_position_in_qos(const void *key, const struct tree_link *l)
{
    return queue_position_order(*(const struct queue_position *)key,
        queue_position_of(TREE_ENTRY(l, struct shape, in_qos)));
}

/* Sets its position in the queue; head CORE_ID_NONE: it is not queued. */
static void index_in_qos(struct shape *s, struct queue_position at)
{
    if (!qos_preempts(s->qos))
        return;
    tree_remove(&s->qos->queue, &s->in_qos);
    if (at.head != CORE_ID_NONE && !s->throttled_by)
        tree_add(&s->qos->queue, &s->in_qos, &at, compare_position_in_qos);
}

static struct demand_class *as_demand_class(struct tree_link *l)
{
    return l ? TREE_ENTRY(l, struct demand_class, in_demand_classes) : NULL;
}

/* ---- demand classes ---- */

static int compare_demand_class(const void *key, const struct tree_link *l)
{
    return queue_position_order(*(const struct queue_position *)key,
        TREE_ENTRY(l, struct demand_class, in_demand_classes)->at);
}

static int compare_class_in_team(const void *key, const struct tree_link *l)
{
    return queue_position_order(
        *(const struct queue_position *)key, TREE_ENTRY(l, struct demand_class, in_team)->at);
}

/* Minimum of each resource, and maximum id. */
static void add_below(struct demand_class *sum, const struct tree_link *below)
{
    const struct demand_class *k =
        below ? TREE_ENTRY(below, struct demand_class, in_demand_classes) : NULL;
    if (!k)
        return;
    sum->least.cpus = k->least.cpus < sum->least.cpus ? k->least.cpus : sum->least.cpus;
    sum->least.gpus = k->least.gpus < sum->least.gpus ? k->least.gpus : sum->least.gpus;
    sum->least.memory_mib =
        k->least.memory_mib < sum->least.memory_mib ? k->least.memory_mib : sum->least.memory_mib;
    sum->newest = k->newest > sum->newest ? k->newest : sum->newest;
}

static bool sum_demand_class(struct tree_link *l)
{
    struct demand_class *k = TREE_ENTRY(l, struct demand_class, in_demand_classes);
    const struct resources was = k->least;
    int64_t was_newest = k->newest;
    k->least = k->need;
    k->newest = k->id;
    add_below(k, l->left);
    add_below(k, l->right);
    return k->newest != was_newest || k->least.cpus != was.cpus || k->least.gpus != was.gpus ||
           k->least.memory_mib != was.memory_mib;
}

bool demand_class_sums_agree(const struct demand_class *k)
{
    struct demand_class copy = *k;
    return !sum_demand_class(&copy.in_demand_classes);
}

static struct demand_class *class_for_shape(struct model *m, const struct shape *s)
{
    char key[SHAPE_KEY_MAX];
    demand_class_key(s, key);
    struct demand_class *k = smap_get(&m->queue.demand_classes, key);
    if (!k) {
        k = slab_take(&m->queue.demand_class_slab, sizeof *k);
        k->id = m->queue.next_demand_class++;
        k->need = s->need;
        k->team = s->account->team->quota_mcpu > 0 ? s->account->team : NULL;
        smap_put(&m->queue.demand_classes, key, k);
    }
    k->n_shapes++;
    return k;
}

static void demand_class_leave(struct model *m, const struct shape *s)
{
    char key[SHAPE_KEY_MAX];
    if (--s->demand_class->n_shapes > 0)
        return;
    demand_class_key(s, key);
    smap_remove(&m->queue.demand_classes, key);
    slab_give(&m->queue.demand_class_slab, s->demand_class);
}

/* Moves the class to the position of its first shape. Results for later shapes say nothing of one
 * that gets ahead of them. */
static void demand_class_reposition(struct model *m, struct demand_class *k)
{
    const struct queue_position last = {INT64_MAX, INT64_MAX},
                                at = k->first ? queue_position_of(k->first) : last,
                                was = tree_has(&k->in_demand_classes) ? k->at : last;
    int moves = queue_position_order(at, was);
    if (moves == 0)
        return;
    if (moves < 0)
        k->id = m->queue.next_demand_class++;
    tree_remove_summed(&m->queue.classes_by_position, &k->in_demand_classes, sum_demand_class);
    if (k->team)
        tree_remove(&k->team->queue, &k->in_team);
    k->at = at;
    if (!k->first)
        return;
    tree_add_summed(&m->queue.classes_by_position, &k->in_demand_classes, &at, compare_demand_class,
        sum_demand_class);
    if (k->team)
        tree_add(&k->team->queue, &k->in_team, &at, compare_class_in_team);
}

/* Adds the shape to the queue, or removes it; the caller repositions its class afterwards. */
static void shape_enqueue(struct model *m, struct shape *s)
{
    struct demand_class *k = s->demand_class;
    add_shape_at_position(&k->shapes, s);
    if (!k->first || queue_position_order(queue_position_of(s), queue_position_of(k->first)) < 0)
        k->first = s;
    if (s->nodes > 1)
        list_push_back(&m->queue.gangs, &s->in_gangs);
    m->queue.n_queued_shapes++;
}

static void shape_dequeue(struct model *m, struct shape *s)
{
    struct demand_class *k = s->demand_class;
    if (k->first == s)
        k->first = as_shape(tree_next(&s->entry->link));
    tree_remove(&k->shapes, &s->entry->link);
    link_remove(&s->in_gangs);
    m->queue.n_queued_shapes--;
}

/* It moves back, but not behind another shape of its class. */
static bool keeps_order(const struct shape *s)
{
    const struct tree_link *next = tree_next(&s->entry->link);
    return queue_position_order(queue_position_of(s), s->entry->at) > 0 &&
           (!next || compare_entries(&(struct queue_position){s->position_16, s->head}, next) < 0);
}

/* A shape of the class left. The new first shape may have exhausted its limits, which is not
 * examined behind another: it is treated like a new arrival. */
static void renew_first(struct model *m, struct demand_class *k)
{
    struct shape *s = k->first;
    if (!s || !limits_used_up(m, s))
        return;
    k->id = m->queue.next_demand_class++;
    tree_changed(&k->in_demand_classes, sum_demand_class);
    link_remove(&s->by_arrival);
    list_push_front(&m->queue.by_arrival, &s->by_arrival);
    s->arrived = model_note_arrival(m);
}

/* Moves the shape to the class that these values give it. */
static void set_class(struct model *m, struct shape *s, bool is_apart, uint64_t open_to)
{
    bool is_in = tree_has(&s->entry->link) && !s->throttled_by;
    struct demand_class *from = s->demand_class;
    if (is_in) {
        shape_dequeue(m, s);
        demand_class_reposition(m, from);
        renew_first(m, from);
    }
    demand_class_leave(m, s);
    s->is_apart = is_apart;
    s->open_to = open_to;
    s->demand_class = class_for_shape(m, s);
    if (is_in) {
        shape_enqueue(m, s);
        demand_class_reposition(m, s->demand_class);
    }
}

void queue_set_apart(struct model *m, struct shape *s, bool is_apart)
{
    if (s->is_apart != is_apart)
        set_class(m, s, is_apart, s->open_to);
}

void queue_reclassify(struct model *m)
{
    struct shape *s;
    bool any = false;
    for (size_t pos = 0; (s = smap_next(&m->queue.shapes, &pos, &(const char *){NULL})) != NULL;) {
        uint64_t open_to = maintenance_open_to(m, s->account);
        if (open_to == s->open_to)
            continue;
        set_class(m, s, s->is_apart, open_to);
        any = true;
    }
    if (!any)
        return;
    model_note_rewind(m);
    model_note_retry_all(m);
}

bool queue_is_in_its_class(const struct model *m, const struct shape *s)
{
    char key[SHAPE_KEY_MAX];
    demand_class_key(s, key);
    return s->is_apart == (s->claims > 0) &&
           smap_get(&m->queue.demand_classes, key) == s->demand_class;
}

/* ---- shapes ---- */

int64_t queue_round_up(int64_t ms, int bits)
{
    int64_t step = 1;
    while (ms / step >= 1 << bits)
        step *= 2;
    return (ms + step - 1) / step * step;
}

/* Not every machine that is large enough may be used. */
static bool is_constrained(const struct shape *s)
{
    const struct constraints *x = s->constraints;
    return x &&
           (x->constraint.n_names > 0 || x->gpu.model[0] || x->gpu.memory_mib > 0 || x->nodes[0]);
}

void queue_describe(const struct model *m, const struct job *j,
    const struct constraints *constraints, struct shape *ret_shape)
{
    struct shape want = {.need = j->row.spec.need,
        .constraints = constraints,
        .labels = j->labels,
        .nodes = j->row.spec.nodes,
        .least = j->least,
        .owner = list_is_empty(&job_side(j)->kept) ? CORE_ID_NONE : j->row.id,
        .wish = j->row.spec.market,
        .procurement = j->row.procurement,
        .procurement_offer = job_procurement_offer(j),
        .criu = criu_needed(&j->row),
        .avoid = job_side(j)->avoid,
        .certified_at = j->certified_at,
        .account = j->account,
        .limit_ms = queue_round_up(j->row.spec.time_limit_ms, LIMIT_BITS),
        .can_drain = job_can_drain(&j->row),
        .open_to = maintenance_open_to(m, j->account),
        .maintenance = maintenance_all(m),
        .policy = model_policy(m)};
    STR_COPY(want.pool, j->row.spec.pool);
    const struct policy_qos *qos = policy_qos(want.policy, j->row.spec.qos);
    want.qos = qos ? &m->queue.qos[qos - want.policy->qos] : NULL;
    want.mcpu = priority_mcpu(want.policy, &want.need);
    budgets_describe(m, j, &want);
    want.boost_ms = priority_qos_ms(want.policy, &j->row) + priority_size_ms(want.policy, &j->row);
    *ret_shape = want;
}

void queue_adopt(struct model *m, struct job *j)
{
    char key[SHAPE_KEY_MAX];
    struct shape want;
    queue_describe(m, j, model_constraints(m, j->row.constraints), &want);
    shape_key(&want, key);
    struct shape *s = smap_get(&m->queue.shapes, key);
    if (!s) {
        s = slab_take(&m->queue.shape_slab, sizeof *s);
        *s = want;
        s->id = m->queue.next_shape++;
        s->entry = slab_take(&m->queue.entry_slab, sizeof *s->entry);
        s->entry->shape = s;
        s->demand_class = class_for_shape(m, s);
        smap_put(&m->queue.shapes, key, s);
        m->queue.n_constrained += is_constrained(s);
        m->queue.n_exclusive += shape_is_exclusive(s);
        m->queue.n_paying += shape_pays(s);
    }
    s->n_jobs++;
    s->account->n_jobs++;
    j->shape = s;
    m->queue.n_gangs += s->nodes > 1;
}

static void note_arrival(struct model *m, struct shape *s)
{
    struct account *a = s->account;
    s->arrived = model_note_arrival(m);
    list_push_front(&m->queue.by_arrival, &s->by_arrival);
    m->queue.n_queued_accounts += a->n_queued++ == 0;
    if (!a->is_ordered)
        m->queue.ordered_mono = MONO_NONE;
}

static void note_departure(struct model *m, struct shape *s)
{
    link_remove(&s->by_arrival);
    m->queue.n_queued_accounts -= --s->account->n_queued == 0;
}

/* Moves the shape to the position of its first pending job, in the queue or among the throttled
 * ones. Returns true if the position changed. */
static bool shape_reposition(struct model *m, struct shape *s)
{
    struct tree_link *first = tree_first(&s->pending);
    const struct job *j = first ? TREE_ENTRY(first, struct job, in_shape) : NULL;
    bool was_in = s->head != CORE_ID_NONE && !s->throttled_by;
    struct queue_position at = {j ? job_position_16(m, j) : 0, j ? j->row.id : CORE_ID_NONE};
    if (queue_position_order(at, queue_position_of(s)) == 0)
        return false;
    if (at.head != s->head && (s->claims == 0 || at.head == CORE_ID_NONE || s->nodes > 1))
        reserve_drop(m, s);
    s->head = at.head;
    s->position_16 = at.at_16;
    if (was_in && first && keeps_order(s)) {
        s->entry->at = at;
    } else {
        if (was_in)
            shape_dequeue(m, s);
        else if (s->throttled_by)
            tree_remove(&s->throttled_by->throttled, &s->entry->link);
        if (!first)
            s->throttled_by = NULL;
        if (first && s->throttled_by)
            add_shape_at_position(&s->throttled_by->throttled, s);
        else if (first)
            shape_enqueue(m, s);
    }
    demand_class_reposition(m, s->demand_class);
    index_in_qos(s, at);
    if (first && !was_in && !s->throttled_by)
        note_arrival(m, s);
    else if (!first && was_in)
        note_departure(m, s);
    return true;
}

void queue_throttle(struct model *m, struct shape *s, struct allowance *by)
{
    reserve_drop(m, s);
    note_departure(m, s);
    shape_dequeue(m, s);
    demand_class_reposition(m, s->demand_class);
    renew_first(m, s->demand_class);
    s->throttled_by = by;
    add_shape_at_position(&by->throttled, s);
    index_in_qos(s, queue_position_of(s));
    model_note_change(m);
}

void queue_unthrottle(struct model *m, struct shape *s)
{
    tree_remove(&s->throttled_by->throttled, &s->entry->link);
    s->throttled_by = NULL;
    shape_enqueue(m, s);
    demand_class_reposition(m, s->demand_class);
    index_in_qos(s, queue_position_of(s));
    note_arrival(m, s);
    shape_reposition(m, s); /* the order may have changed meanwhile */
    model_note_change(m);
}

struct demand_class *queue_first_of(const struct team *t)
{
    struct tree_link *l = tree_first(&t->queue);
    return l ? TREE_ENTRY(l, struct demand_class, in_team) : NULL;
}

struct demand_class *queue_next_of(const struct demand_class *k)
{
    struct tree_link *l = tree_next(&k->in_team);
    return l ? TREE_ENTRY(l, struct demand_class, in_team) : NULL;
}

struct shape *queue_first_of_qos(const struct qos *q)
{
    struct tree_link *l = tree_first(&q->queue);
    return l ? TREE_ENTRY(l, struct shape, in_qos) : NULL;
}

struct shape *queue_next_of_qos(const struct shape *s)
{
    struct tree_link *l = tree_next(&s->in_qos);
    return l ? TREE_ENTRY(l, struct shape, in_qos) : NULL;
}

struct shape *queue_first_throttled(const struct allowance *w)
{
    return as_shape(tree_first(&w->throttled));
}

struct shape *queue_next_throttled(const struct shape *s)
{
    return as_shape(tree_next(&s->entry->link));
}

void queue_order(struct model *m)
{
    bool moved = false;
    LIST_FOREACH (&m->queue.by_arrival, l)
        moved |= shape_reposition(m, LIST_ENTRY(l, struct shape, by_arrival));
    if (!moved)
        return;
    reserve_reorder(m);
    model_note_rewind(m);
    model_note_retry_all(m);
    model_note_change(m);
}

void queue_add(struct model *m, struct job *j)
{
    struct shape *s = j->shape;
    struct position at = position_of(j);
    if (s->pending.n == 0 || position_order(at, s->last) > 0) {
        s->last = at; /* avoids access to its predecessor, which is not cached by now */
        tree_append(&s->pending, &j->in_shape);
    } else {
        tree_add(&s->pending, &j->in_shape, &at, compare_job);
    }
    shape_reposition(m, s);
    j->width = job_width(j);
    s->n_wanted += j->width;
    j->account->n_pending++;
    m->queue.n_pending++;
    model_note_change(m);
}

void queue_remove(struct model *m, struct job *j)
{
    if (!tree_has(&j->in_shape))
        return;
    tree_remove(&j->shape->pending, &j->in_shape);
    shape_reposition(m, j->shape);
    renew_first(m, j->shape->demand_class);
    j->shape->n_wanted -= j->width;
    j->width = 0;
    reserve_trim(m, j->shape);
    j->account->n_pending--;
    m->queue.n_pending--;
    model_note_change(m);
    if (!j->shape->constraints || j->shape->constraints->licences.n == 0)
        return;
    model_note_rewind(m); /* its reservations may have excluded other jobs */
    model_note_retry_all(m);
}

void queue_widen(struct model *m, struct job *j)
{
    if (!tree_has(&j->in_shape))
        return;
    j->shape->n_wanted += job_width(j) - j->width;
    j->width = job_width(j);
    reserve_trim(m, j->shape);
    model_note_change(m);
}

void queue_disown(struct model *m, struct job *j)
{
    struct shape *s = j->shape;
    queue_remove(m, j);
    j->shape = NULL;
    j->account->n_jobs--;
    m->queue.n_gangs -= s->nodes > 1;
    if (--s->n_jobs > 0)
        return;
    char key[SHAPE_KEY_MAX];
    shape_key(s, key);
    smap_remove(&m->queue.shapes, key);
    m->queue.n_constrained -= is_constrained(s);
    m->queue.n_exclusive -= shape_is_exclusive(s);
    m->queue.n_paying -= shape_pays(s);
    demand_class_leave(m, s);
    slab_give(&m->queue.entry_slab, s->entry);
    slab_give(&m->queue.shape_slab, s);
}

void queue_reshape(struct model *m, struct job *j)
{
    bool pending = tree_has(&j->in_shape);
    queue_disown(m, j);
    queue_adopt(m, j);
    if (!pending)
        return;
    queue_add(m, j);
    model_note_rewind(m); /* it may fit now */
}

struct shape *queue_next_in_class(const struct shape *s)
{
    return as_shape(tree_next(&s->entry->link));
}

struct demand_class *queue_class_at_least(const struct model *m, struct queue_position at)
{
    return as_demand_class(tree_at_least(&m->queue.classes_by_position, &at, compare_demand_class));
}

struct demand_class *queue_next_class(const struct demand_class *k)
{
    return as_demand_class(tree_next(&k->in_demand_classes));
}

/* First class in the subtree of l that is at this position or behind it, and fits the capacity or
 * is fresh. */
static struct tree_link *within(
    struct tree_link *l, struct queue_position at, const struct resources *available, int64_t fresh)
{
    const struct demand_class *k = as_demand_class(l);
    if (!k || (k->newest < fresh && !resources_fit(&k->least, available)))
        return NULL;
    bool is_behind = queue_position_order(k->at, at) >= 0;
    struct tree_link *found = is_behind ? within(l->left, at, available, fresh) : NULL;
    if (!found && is_behind && (k->id >= fresh || resources_fit(&k->need, available)))
        found = l;
    return found ? found : within(l->right, at, available, fresh);
}

struct demand_class *queue_class_within(const struct model *m, struct queue_position at,
    const struct resources *available, int64_t fresh)
{
    return as_demand_class(within(m->queue.classes_by_position.root, at, available, fresh));
}

void queue_init(struct model *m)
{
    const struct queue_policy *o = model_policy(m);
    m->queue.next_shape = m->queue.next_demand_class = 1;
    m->queue.qos = mem_array(o->n_qos, sizeof *m->queue.qos);
    for (size_t k = 0; k < o->n_qos; k++)
        m->queue.qos[k] = (struct qos){.policy = &o->qos[k], .index = (int32_t)k};
    m->queue.ordered_mono = MONO_NONE;
}

void queue_deinit(struct model *m)
{
    smap_deinit(&m->queue.shapes);
    smap_deinit(&m->queue.demand_classes);
    slab_deinit(&m->queue.shape_slab);
    slab_deinit(&m->queue.entry_slab);
    slab_deinit(&m->queue.demand_class_slab);
    free(m->queue.qos);
}
