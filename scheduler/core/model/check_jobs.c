/* SPDX-License-Identifier: Apache-2.0
 *
 * The invariants of jobs and of the queue: the part of check.c that compares each job with the
 * place where it waits or runs.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/check_private.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/queue/array_dependencies.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_walk.h"
#include "scheduler/core/queue/shares.h"

#include <inttypes.h>

static int check_ranks(const struct model *m, const struct job *j, struct err *e)
{
    int32_t last = -1;
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        if (a->row.state == ATTEMPT_ENDED || a->row.attempt != j->row.attempts ||
            a->row.job != j->row.id)
            return BROKEN("job %" PRId64 "'s live attempt %" PRId64 " is not its newest, %" PRId64,
                j->row.id, a->row.attempt, j->row.attempts);
        if (!a->node || model_node(m, a->row.node) != a->node)
            return BROKEN("job %" PRId64 "'s attempt is on node %" PRId64 ", which does not exist",
                j->row.id, a->row.node);
        if (!job_pools_allow(j->row.spec.pool, a->node->row.pool))
            return BROKEN("job %" PRId64 "'s attempt is in pool %s, but the job may run only in %s",
                j->row.id, a->node->row.pool, j->row.spec.pool);
        if (a->row.rank <= last || a->row.rank >= j->row.ranks ||
            job_attempt_on(j, a->row.attempt, a->row.node) != a)
            return BROKEN("job %" PRId64 "'s rank %" PRId32
                          " is out of order, too high, or not the rank that is found on its node",
                j->row.id, a->row.rank);
        last = a->row.rank;
    }
    return 0;
}

/* A pending job is either in the queue or is_waiting; a job in any other state is neither. */
static int check_waits(const struct job *j, struct err *e)
{
    bool pending = j->row.state == JOB_PENDING, queued = tree_has(&j->in_shape);
    if (pending != (queued || j->is_waiting) || (queued && j->is_waiting) || !j->shape)
        return BROKEN("job %" PRId64 " is %s, but it is %sin the queue, %swaiting and in %s shape",
            j->row.id, sm_name(&job_sm, (int)j->row.state), queued ? "" : "not ",
            j->is_waiting ? "" : "not ", j->shape ? "a" : "no");
    bool kept_back = dependencies_is_kept_back(j);
    if (pending &&
        (kept_back ? queued || job_has_to_begin(j) : job_has_to_begin(j) != j->is_waiting))
        return BROKEN("job %" PRId64
                      " is %sin the queue and %sin the order of begin times, but its "
                      "dependencies, hold and begin time require otherwise",
            j->row.id, queued ? "" : "not ", job_has_to_begin(j) ? "" : "not ");
    if (queued && !wall_is_set(j->row.eligible_at))
        return BROKEN("job %" PRId64 " is in the queue, but its eligible_at is not set", j->row.id);
    if (queued && (j->least < j->row.spec.nodes_min || j->least > j->row.spec.nodes ||
                      j->shape->least != j->least))
        return BROKEN("job %" PRId64 " waits for %" PRId32 " nodes, but its shape for %" PRId32,
            j->row.id, j->least, j->shape->least);
    if (link_is_in(&job_side(j)->gang_resizes) && !queued)
        return BROKEN("job %" PRId64 " waits for more nodes, but is not in the queue", j->row.id);
    return 0;
}

static int check_kept_nodes(const struct job *j, struct err *e)
{
    bool pending = j->row.state == JOB_PENDING;
    LIST_FOREACH (&job_side(j)->kept, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_kept);
        if (n->kept_for != j || n->row.state != NODE_UP ||
            (pending && !link_is_in(&job_side(j)->gang_resizes)))
            return BROKEN("node %" PRId64 " is kept for job %" PRId64 ", but must not be",
                n->row.id, j->row.id);
    }
    return 0;
}

static bool has_its_task(const struct dependency *d)
{
    const struct job *on = d->on;
    return !on || !d->row.of_task ||
           (on->array && (array_has_left(on->array, d->row.task) || array_task(on, d->row.task)));
}

static int check_dependency(
    const struct model *m, const struct job *j, const struct dependency *d, struct err *e)
{
    bool is_over = d->row.kind == DEPEND_AFTERCORR && !d->on && j->array->n_never > 0;
    if (d->job != j || j->row.state != JOB_PENDING ||
        (d->row.state == DEPEND_WAITS) != (d->on || is_over) ||
        (d->on && model_job(m, d->row.on) != d->on) || !has_its_task(d))
        return BROKEN("job %" PRId64 "'s dependency on job %" PRId64
                      " does not match that job, its task or the dependency's state",
            j->row.id, d->row.on);
    return 0;
}

static int check_dependencies(const struct model *m, const struct job *j, struct err *e)
{
    int32_t open = 0, never = 0, never_of_tasks = 0;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        bool is_never = d->row.state == DEPEND_NEVER;
        open += !is_never;
        never += is_never;
        never_of_tasks += is_never && d->row.kind == DEPEND_AFTERCORR;
        int rc = check_dependency(m, j, d, e);
        if (rc != 0)
            return rc;
    }
    if (open != job_side(j)->n_open || never != job_side(j)->n_never ||
        never_of_tasks != job_side(j)->n_never_of_tasks)
        return BROKEN("job %" PRId64
                      ": the counts of its dependencies do not match its dependencies",
            j->row.id);
    return 0;
}

static int check_job(const struct model *m, const struct job *j, struct err *e)
{
    const struct attempt *a = job_attempt(j);
    bool runs = j->row.state != JOB_PENDING && j->row.state != JOB_UNFOLDED;
    if (j->row.state == JOB_ENDED || j->row.id >= m->changes.next_ids.next_job)
        return BROKEN("job %" PRId64 " has ended but is in the model, or its id was never assigned",
            j->row.id);
    if (runs != (a != NULL))
        return BROKEN("job %" PRId64 " is %s, but it %s attempt", j->row.id,
            sm_name(&job_sm, (int)j->row.state), a ? "has an" : "has no");
    if (a && (j->row.ranks < j->row.spec.nodes_min || j->row.ranks > j->row.spec.nodes))
        return BROKEN("job %" PRId64 " runs on %" PRId32 " nodes, which it does not request",
            j->row.id, j->row.ranks);
    for (int k = 0; k < RETRY_KINDS; k++)
        if (j->row.used[k] > j->row.spec.retries.n[k])
            return BROKEN("job %" PRId64
                          " was queued again after an end as %s more often than allowed",
                j->row.id, retry_kind_names[k]);
    if (j->row.last_good.attempt > j->row.attempts)
        return BROKEN(
            "job %" PRId64 " has a checkpoint of an attempt that does not exist", j->row.id);
    int rc = check_waits(j, e);
    if (rc == 0)
        rc = check_kept_nodes(j, e);
    if (rc == 0)
        rc = check_dependencies(m, j, e);
    return rc ? rc : check_ranks(m, j, e);
}

/* The sets of an array's tasks that are ready, or can never start, follow from the tasks that they
 * depend on. */
static int check_task_sets(const struct job *j, struct err *e)
{
    const struct array *a = j->array;
    int64_t gone = 0, ready = 0, never = 0;
    for (int32_t i = 0; i <= ranges_last(&a->all); i++) {
        bool open = false, lost = false, left = ranges_has(&a->left, i),
             is_gone = bits_has(&a->gone, i);
        LIST_FOREACH (&job_side(j)->depends, l) {
            const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
            const struct array *on = d->on ? d->on->array : NULL;
            if (d->row.kind != DEPEND_AFTERCORR || !on || bits_has(&on->done, i))
                continue;
            bool lives = array_has_left(on, i) || array_task(d->on, i);
            open |= lives;
            lost |= !lives;
        }
        gone += is_gone;
        ready += bits_has(&a->ready, i);
        never += bits_has(&a->never, i);
        bool should = array_has_task_dependencies(j) && left && !is_gone,
             is_never = bits_has(&a->never, i);
        if ((is_gone && !left) || (is_never && !should) || (should && lost && !is_never) ||
            bits_has(&a->ready, i) != (should && !open && !lost && !is_never))
            return BROKEN("array %" PRId64 ": task %" PRId32
                          " is gone %d, ready %d, never %d, which does not match its dependencies",
                j->row.id, i, is_gone, bits_has(&a->ready, i), is_never);
    }
    if (gone != a->n_gone || ready != a->n_ready || never != a->n_never ||
        (never > 0) > link_is_in(&job_side(j)->unmeetable))
        return BROKEN("array %" PRId64 " has %" PRId64 " gone, %" PRId64 " ready and %" PRId64
                      " never tasks, but counts %" PRId64 ", %" PRId64 " and %" PRId64
                      ", or is not listed as unmeetable",
            j->row.id, gone, ready, never, (int64_t)a->n_gone, (int64_t)a->n_ready,
            (int64_t)a->n_never);
    return 0;
}

static int check_array(const struct model *m, const struct job *j, struct err *e)
{
    int64_t n = 0;
    if ((j->parent != NULL) != (j->row.array != CORE_ID_NONE) ||
        (j->parent && model_job(m, j->row.array) != j->parent))
        return BROKEN("job %" PRId64 " and its array %" PRId64 " do not refer to each other",
            j->row.id, j->row.array);
    if (tree_has(&j->in_shape) ? j->width != job_width(j) || j->width < 1 : j->width != 0)
        return BROKEN("job %" PRId64 " counts as %" PRId64 " places, which is not what it requests",
            j->row.id, j->width);
    if (!j->array)
        return j->row.state == JOB_UNFOLDED
                   ? BROKEN("job %" PRId64 " is unfolded but is not an array", j->row.id)
                   : 0;
    LIST_FOREACH (&j->array->tasks, l)
        n += LIST_ENTRY(l, struct job_side, in_array)->job->parent == j;
    if (n != j->array->n_tasks || (j->array->left.n == 0) != (j->row.state == JOB_UNFOLDED) ||
        (n == 0 && j->array->left.n == 0) || (array_is_full(j) && tree_has(&j->in_shape)))
        return BROKEN("array %" PRId64 " is %s with %" PRId64 " live tasks, which is impossible",
            j->row.id, sm_name(&job_sm, (int)j->row.state), n);
    return array_has_task_dependencies(j) || j->array->n_gone > 0 ? check_task_sets(j, e) : 0;
}

static int check_throttled(const struct allowance *w, int64_t *queued, struct err *e)
{
    struct queue_position last = {INT64_MIN, INT64_MIN};
    for (const struct shape *s = queue_first_throttled(w); s; s = queue_next_throttled(s)) {
        if (s->throttled_by != w || !w->is_limited || s->pending.n == 0 ||
            !list_is_empty(&s->reserved) ||
            (w != &s->account->allowance && w != &s->account->team->allowance) ||
            queue_position_order(queue_position_of(s), last) <= 0)
            return BROKEN("job %" PRId64 " is throttled without a reason, or out of order among "
                          "the throttled jobs",
                s->head);
        last = queue_position_of(s);
        *queued += (int64_t)s->pending.n;
    }
    return 0;
}

static int check_all_throttled(const struct model *m, int64_t *queued, struct err *e)
{
    int rc = 0;
    LIST_FOREACH (&m->queue.all_teams, lt) {
        const struct team *t = LIST_ENTRY(lt, struct team, in_all);
        rc = rc ? rc : check_throttled(&t->allowance, queued, e);
        LIST_FOREACH (&t->accounts, la)
            rc = rc ? rc
                    : check_throttled(
                          &LIST_ENTRY(la, struct account, in_team)->allowance, queued, e);
    }
    return rc;
}

static int check_queued(
    const struct model *m, const struct shape *s, int64_t *queued, struct err *e)
{
    const struct tree_link *first = tree_first(&s->pending);
    const struct job *head = first ? TREE_ENTRY(first, struct job, in_shape) : NULL;
    int64_t wanted = 0;
    *queued += (int64_t)s->pending.n;
    for (const struct tree_link *l = first; l; l = tree_next(l))
        wanted += TREE_ENTRY(l, struct job, in_shape)->width;
    if (wanted != s->n_wanted)
        return BROKEN("a shape counts %" PRId64 " places, but its jobs request %" PRId64,
            s->n_wanted, wanted);
    if (!head || s->throttled_by || head->row.id != s->head ||
        s->position_16 != job_position_16(m, head))
        return BROKEN("the queue is out of order at job %" PRId64, s->head);
    return 0;
}

/* If the first job of a demand class finds no place, no later job of the class does: the purpose of
 * demand classes. */
static int check_first(const struct model *m, const struct demand_class *k, struct err *e)
{
    const struct stamp now = {.wall = m->queue.ordered_at};
    if (k->first->nodes > 1 || k->shapes.n == 1 || nodes_best(m, k->first, now))
        return 0;
    for (const struct shape *s = queue_next_in_class(k->first); s; s = queue_next_in_class(s))
        if (nodes_best(m, s, now))
            return BROKEN("job %" PRId64 " fits on no node, but job %" PRId64
                          " behind it in the same demand class does",
                k->first->head, s->head);
    return 0;
}

/* The queue is also walked in the order of demand classes. */
static int check_demand_classes(const struct model *m, int64_t *queued, struct err *e)
{
    struct queue_position before = {INT64_MIN, INT64_MIN};
    int64_t n = 0, walked = 0;
    for (const struct demand_class *k = queue_class_at_least(m, before); k;
         k = queue_next_class(k)) {
        struct queue_position last = {INT64_MIN, INT64_MIN};
        if (k->shapes.n == 0 || tree_first(&k->shapes) != &k->first->entry->link ||
            queue_position_order(k->at, queue_position_of(k->first)) != 0 ||
            queue_position_order(k->at, before) <= 0)
            return BROKEN("a demand class is not at the position of its first shape");
        if (!demand_class_sums_agree(k))
            return BROKEN("the sums of a demand class do not match its subtree");
        before = k->at;
        for (const struct shape *s = k->first; s; s = queue_next_in_class(s), n++) {
            if (s->demand_class != k || !queue_is_in_its_class(m, s) ||
                (k->team && s->account->team != k->team) ||
                queue_position_order(queue_position_of(s), s->entry->at) != 0 ||
                queue_position_order(queue_position_of(s), last) <= 0 ||
                link_is_in(&s->in_gangs) != (s->nodes > 1))
                return BROKEN("job %" PRId64 " is out of order in its demand class", s->head);
            last = queue_position_of(s);
            if (check_queued(m, s, queued, e) != 0)
                return ERR_INTERNAL;
        }
        if (check_first(m, k, e) != 0)
            return ERR_INTERNAL;
    }
    struct queue_walk walk = {0};
    const struct shape *s;
    before = (struct queue_position){INT64_MIN, INT64_MIN};
    queue_walk_begin(&walk, m);
    while ((s = queue_walk_next(&walk)) != NULL &&
           queue_position_order(queue_position_of(s), before) > 0) {
        before = queue_position_of(s);
        walked++;
    }
    queue_walk_end(&walk);
    return n == m->queue.n_queued_shapes && walked == n
               ? 0
               : BROKEN("the queue has %" PRId64 " shapes, but counts %" PRId64
                        ", and a walk visits %" PRId64,
                     n, m->queue.n_queued_shapes, walked);
}

static int check_procurement(const struct job *j, struct err *e)
{
    bool has = j->row.spec.finish_ms > 0 && j->row.state != JOB_UNFOLDED;
    if (procurement_is_looked_at(j) != has ||
        (j->row.spec.finish_ms == 0 && j->row.procurement != PROCURE_FREE) ||
        j->shape->procurement != j->row.procurement ||
        j->shape->procurement_offer != job_procurement_offer(j))
        return BROKEN("job %" PRId64
                      " is %sexamined for its --finish-by, or its procurement %s is wrong",
            j->row.id, procurement_is_looked_at(j) ? "" : "not ",
            procurement_names[j->row.procurement]);
    return 0;
}

int check_jobs(const struct model *m, struct err *e)
{
    const struct job *j;
    int64_t pending = 0, waiting = 0, queued = 0;
    for (size_t pos = 0; (j = map_next(&m->rows.jobs, &pos, &(int64_t){0})) != NULL;) {
        int rc = check_job(m, j, e);
        if (!rc)
            rc = check_array(m, j, e);
        if (!rc)
            rc = check_procurement(j, e);
        if (rc)
            return rc;
        pending += j->row.state == JOB_PENDING && !j->is_waiting;
        waiting += j->is_waiting;
    }
    int rc = check_all_throttled(m, &queued, e);
    if (!rc)
        rc = check_demand_classes(m, &queued, e);
    if (rc)
        return rc;
    if (waiting != m->queue.n_waiting)
        return BROKEN(
            "%" PRId64 " jobs wait, but %" PRId64 " are counted", waiting, m->queue.n_waiting);
    if (pending != m->queue.n_pending || queued != pending)
        return BROKEN("%" PRId64 " jobs are pending, %" PRId64 " are in the queue and %" PRId64
                      " are counted",
            pending, queued, m->queue.n_pending);
    return 0;
}
