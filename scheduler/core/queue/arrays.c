/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one queue row for all tasks that have not begun. The decision to place a task makes it a
 * job with a row and an id of its own, which is retried, saved and billed like any job. The array
 * counts live tasks, to enforce their maximum number, and ended ones, to detect its own end.
 *
 * With task-by-task dependencies (array_dependencies.c) tasks begin in any order. The remaining
 * indices are stored as at most PIECES_MAX ranges, with space for user cancellations. Beyond that,
 * a task that begins stays in `left` and is excluded by its row.
 */
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/array_dependencies.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/queue.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define PIECES_MAX (RANGES_MAX / 2)
#define GIVE_UP_MAX 1000 /* rows per decision */

bool array_is_full(const struct job *j)
{
    return j->array && j->array->row.at_once > 0 && j->array->n_tasks >= j->array->row.at_once;
}

bool array_is_kept(const struct job *j)
{
    return array_is_full(j) || (array_has_task_dependencies(j) && j->array->n_ready == 0);
}

int64_t array_left(const struct array *a)
{
    return ranges_count(&a->left) - a->n_gone;
}

bool array_has_left(const struct array *a, int32_t index)
{
    return ranges_has(&a->left, index) && !bits_has(&a->gone, index);
}

int64_t job_width(const struct job *j)
{
    const struct array *a = j->array;
    int64_t left = !a ? 1 : array_has_task_dependencies(j) ? a->n_ready : array_left(a);
    int64_t may = a && a->row.at_once > 0 ? a->row.at_once - a->n_tasks : left;
    return may < left ? may : left;
}

static void array_write(struct model *m, struct array *a)
{
    ranges_format(&a->left, a->row.left);
    *ADD_ROW(m, arrays) = a->row;
}

void array_attach(struct model *m, struct job *j, const struct event *submit)
{
    if (!submit->submit.tasks)
        return;
    struct array *a = mem_alloc(sizeof *a);
    a->all = a->left = *submit->submit.tasks;
    a->row = (struct array_row){.job = j->row.id, .at_once = submit->submit.at_once};
    ranges_format(&a->all, a->row.tasks);
    j->array = a;
    array_write(m, a);
}

void array_adopt(struct job *parent, struct job *task)
{
    task->parent = parent;
    list_push_back(&parent->array->tasks, &job_make_side(task)->in_array);
    parent->array->n_tasks++;
}

struct job *array_task(const struct job *parent, int32_t index)
{
    LIST_FOREACH (&parent->array->tasks, l) {
        struct job *t = LIST_ENTRY(l, struct job_side, in_array)->job;
        if (t->row.array_index == index)
            return t;
    }
    return NULL;
}

int array_check_tasks(const struct job *j, const struct ranges *tasks, struct err *e)
{
    int32_t index = ranges_first_outside(tasks, &j->array->all);
    return index < 0 ? 0
                     : err_set(e, ERR_NOT_FOUND,
                           "array %" PRId64 " has no task %" PRId32 ": its tasks are %.200s",
                           j->row.id, index, j->array->row.tasks);
}

bool array_all_ended(const struct job *j, const struct ranges *tasks)
{
    int k = 0;
    LIST_FOREACH (&j->array->tasks, l) {
        if (ranges_has(tasks, LIST_ENTRY(l, struct job_side, in_array)->job->row.array_index))
            return false;
    }
    int32_t i = ranges_next(tasks, &k, -1);
    while (i >= 0 && !array_has_left(j->array, i))
        i = ranges_next(tasks, &k, i);
    return i < 0;
}

void array_free(struct job *j)
{
    if (!j->array)
        return;
    bits_deinit(&j->array->done);
    bits_deinit(&j->array->gone);
    bits_deinit(&j->array->ready);
    bits_deinit(&j->array->never);
    free(j->array);
    j->array = NULL;
}

/* ---- remaining tasks ---- */

/* No range begins or ends with a task that is gone. */
static void trim_ranges(struct array *a)
{
    for (int k = 0; a->n_gone > 0 && k < a->left.n;) {
        const struct range *r = &a->left.v[k];
        int32_t edge = bits_has(&a->gone, r->first) ? r->first : r->last;
        if (!bits_clear(&a->gone, edge)) {
            k++;
            continue;
        }
        a->n_gone--;
        ranges_take(&a->left, edge, RANGES_MAX);
    }
}

static void mark_task_gone(struct array *a, int32_t index)
{
    if (a->gone.n == 0)
        bits_init(&a->gone, ranges_last(&a->all) + 1);
    a->n_gone += bits_set(&a->gone, index);
}

static void take(struct array *a, int32_t index)
{
    if (!ranges_take(&a->left, index, PIECES_MAX))
        mark_task_gone(a, index);
    a->n_ready -= bits_clear(&a->ready, index);
    a->n_never -= bits_clear(&a->never, index);
    trim_ranges(a);
}

static int64_t prune_bits(struct bits *b, const struct ranges *left)
{
    int64_t n = 0;
    for (int32_t i = bits_next(b, 0); i < b->n; i = bits_next(b, i + 1))
        n += !ranges_has(left, i) && bits_clear(b, i);
    return n;
}

/* Updates `left` after tasks were removed. */
static void prune(struct array *a)
{
    a->n_gone -= prune_bits(&a->gone, &a->left);
    a->n_ready -= prune_bits(&a->ready, &a->left);
    a->n_never -= prune_bits(&a->never, &a->left);
    trim_ranges(a);
}

void array_load_begun(struct job *j, int32_t index)
{
    if (!array_has_left(j->array, index))
        return;
    mark_task_gone(j->array, index);
    limits_submitted(j->account, -1);
}

/* ---- tasks ---- */

/* Definition and demands are the array's; the state is the task's own. */
static struct job *task_create(struct model *m, const struct job *parent, int32_t index)
{
    struct job *t = model_alloc_job(m);
    t->row = parent->row;
    t->row.id = NEXT_ID(m, job);
    t->row.state = JOB_PENDING;
    t->row.hold = HOLD_NONE;
    t->row.spec.begin_at = WALL_NONE;
    t->row.spec.depends_any = false;
    t->row.warned = 0;
    t->row.array = parent->row.id;
    t->row.array_index = index;
    t->least = t->row.spec.nodes;
    t->account = parent->account;
    t->certified_at = parent->certified_at;
    return t;
}

/* Makes the task a job of its own. */
static struct job *split_off(struct model *m, struct job *j, int32_t index)
{
    struct job *t = task_create(m, j, index);
    model_put_job(m, t);
    constraints_ref(m, t->row.constraints);
    t->labels = labels_ref(j->labels);
    queue_adopt(m, t);
    array_adopt(j, t);
    take(j->array, index);
    return t;
}

struct job *array_begin(struct model *m, struct job *j, struct stamp now)
{
    const struct array *a = j->array;
    if (j->shape->claims == 0)
        reserve_drop(m, j->shape); /* it is placed now; the next task may need other nodes */
    struct job *t = split_off(
        m, j, array_has_task_dependencies(j) ? bits_next(&a->ready, 0) : ranges_first(&a->left));
    array_write(m, j->array);
    procurement_look(m, t, now);
    touch_job(m, t);
    array_advance(m, j, now);
    return t;
}

static bool is_over(const struct array *a)
{
    return a->left.n == 0 && a->n_tasks == 0;
}

static void array_finish(struct model *m, struct job *j, struct stamp now)
{
    const struct array_row *r = &j->array->row;
    assert(list_is_empty(&j->array->dependents)); /* each of its tasks has ended */
    j->row.end = r->end == END_NONE ? END_SUCCEEDED : r->end;
    j->row.exit_code = r->exit_code;
    history(m, now, "ended", (struct history_of){.job = j, .a = r->exit_code},
        "%" PRId32 " of its tasks succeeded, %" PRId32 " did not", r->n_succeeded, r->n_other);
    job_finish(m, j, now);
}

void array_advance(struct model *m, struct job *j, struct stamp now)
{
    if (j->array->left.n == 0)
        array_dependencies_prune(m, j);
    if (is_over(j->array)) {
        dependencies_withdraw(m, j);
        array_finish(m, j, now);
    } else if (j->row.state == JOB_PENDING && j->array->left.n == 0) {
        dependencies_withdraw(m, j);
        job_move(m, j, JOB_UNFOLDED);
        dependencies_no_more(m, j);
        procurement_leave(m, j);
    } else if (j->row.state == JOB_PENDING && array_is_kept(j) == tree_has(&j->in_shape)) {
        dependencies_withdraw(m, j);
        job_enqueue(m, j, now);
    } else {
        queue_widen(m, j);
    }
}

void array_throttle(struct model *m, struct job *j, int32_t at_once, struct stamp now)
{
    dependencies_withdraw(m, j);
    j->array->row.at_once = at_once;
    array_write(m, j->array);
    job_enqueue(m, j, now);
}

void array_task_ended(struct model *m, struct job *task, struct stamp now)
{
    struct job *j = task->parent;
    struct array_row *r = &j->array->row;
    bool succeeded = task->row.end == END_SUCCEEDED;
    link_remove(&task->side->in_array);
    j->array->n_tasks--;
    r->n_succeeded += succeeded;
    r->n_other += !succeeded;
    if (!succeeded && r->end == END_NONE) {
        r->end = task->row.end;
        r->exit_code = task->row.exit_code;
    }
    array_write(m, j->array);
    array_dependencies_ended(m, j, task->row.array_index, succeeded, now);
    array_advance(m, j, now);
}

/* Counts n of the tasks in `left` as ended without a start. */
static void dropped(struct model *m, struct job *j, int64_t n, enum end_kind end, struct stamp now)
{
    struct array *a = j->array;
    limits_submitted(j->account, -n);
    a->row.n_other += (int32_t)n;
    if (n > 0 && a->row.end == END_NONE)
        a->row.end = end;
    array_write(m, a);
    dependencies_dropped(m, j, now);
}

int array_drop(struct model *m, struct job *j, const struct ranges *tasks, enum end_kind end,
    struct stamp now, struct err *e)
{
    struct array *a = j->array;
    int64_t before = array_left(a);
    if (!tasks)
        a->left = (struct ranges){0};
    else if (ranges_remove(&a->left, tasks) < 0)
        return err_set(e, ERR_CONFLICT,
            "job %s: the remaining tasks would need more than %d ranges: cancel longer "
            "contiguous ranges",
            job_ref(&j->row).s, RANGES_MAX);
    prune(a);
    array_dependencies_prune(m, j);
    dropped(m, j, before - array_left(a), end, now);
    return 0;
}

static bool may_succeed(const struct job *array, int32_t index)
{
    return bits_has(&array->array->done, index) || array_has_left(array->array, index) ||
           array_task(array, index);
}

/* The unsatisfiable dependency of a task: on an array that still runs, if there is one; else on one
 * that ended. */
static struct depend_text find_unsatisfiable(const struct job *j, int32_t index)
{
    int64_t on = CORE_ID_NONE;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_AFTERCORR &&
            (d->on ? !may_succeed(d->on, index) : on == CORE_ID_NONE))
            on = d->row.on;
    }
    return depend_text(DEPEND_AFTERCORR, on, true, index);
}

static void give_up(struct model *m, struct job *j, int32_t index, struct stamp now)
{
    const struct depend_text why = find_unsatisfiable(j, index);
    struct job *t = split_off(m, j, index);
    t->row.end = END_DEPENDENCY;
    history(m, now, "ended", (struct history_of){.job = t}, "dependency: %s can never be satisfied",
        why.s);
    job_finish(m, t, now);
}

/* Without a row per task, as for tasks cancelled before they begin. False: the rest would have too
 * many ranges. */
static bool give_up_many(struct model *m, struct job *j, struct stamp now)
{
    struct array *a = j->array;
    int64_t n = ranges_remove_bits(&a->left, &a->never);
    if (n < 0)
        return false;
    prune(a);
    history(m, now, "cancel", (struct history_of){.job = j},
        "%" PRId64 " of its tasks were given up: the tasks that they wait for did not succeed, or "
        "will never run",
        n);
    dropped(m, j, n, END_DEPENDENCY, now);
    return true;
}

void array_give_up(struct model *m, struct job *j, struct stamp now)
{
    struct array *a = j->array;
    a->n_tasks++; /* keeps the array until all are handled */
    if (a->n_never <= GIVE_UP_MAX || !give_up_many(m, j, now)) {
        int n = 0;
        for (int32_t i = bits_next(&a->never, 0); i < a->never.n && n < GIVE_UP_MAX;
             i = bits_next(&a->never, i + 1), n++)
            give_up(m, j, i, now);
    }
    a->n_tasks--;
    array_dependencies_prune(m, j);
    array_advance(m, j, now);
}

/* ---- recovery ---- */

int model_load_array(struct model *m, const struct array_row *r, struct err *e)
{
    struct job *j = model_job(m, r->job);
    struct array a = {.row = *r};
    struct err bad;
    if (!j || j->array || r->at_once < 0 || ranges_parse(r->tasks, &a.all, &bad) != 0 ||
        (r->left[0] && ranges_parse(r->left, &a.left, &bad) != 0) ||
        (a.left.n == 0) != (j->row.state == JOB_UNFOLDED))
        return err_set(
            e, ERR_CORRUPT, "stored array %" PRId64 " and its job contradict each other", r->job);
    limits_submitted(j->account, -job_submitted(j));
    j->array = mem_dup(&a, sizeof a);
    limits_submitted(j->account, job_submitted(j));
    return 0;
}

int model_load_task_end(struct model *m, const struct task_end *r, struct err *e)
{
    struct job *j = model_job(m, r->array);
    if (!j || !j->array || !ranges_has(&j->array->all, r->array_index))
        return err_set(e, ERR_CORRUPT,
            "a task %" PRId32 " of array %" PRId64 " is stored, but the array has no such task",
            r->array_index, r->array);
    array_load_begun(j, r->array_index);
    if (r->succeeded)
        bits_set(&j->array->done, r->array_index);
    return 0;
}
