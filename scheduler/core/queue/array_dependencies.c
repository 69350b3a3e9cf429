/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays with task-by-task dependencies (AFTERCORR): each task waits until the task of the other
 * array with its index has succeeded.
 *
 * Tasks that have not begun have no row, so their state is kept in bit sets. The array depended on
 * has the set of its succeeded tasks. The dependent array has two sets of tasks that have not
 * begun: `ready`, whose dependencies are met, and `never`, whose dependencies can never be met. The
 * end of a task costs only as much as its array has dependents. The array is queued while tasks are
 * ready, with as many places. Tasks in `never` are given up by a decision, like jobs with
 * unsatisfiable dependencies.
 *
 * Only the dependency itself is stored: a task that has begun has a row with its end
 * (model_load_task_end). When all arrays depended on have ended and no task remains to be given up,
 * the dependencies are removed and the array is an ordinary one.
 */
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/array_dependencies.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"

#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>

bool array_has_task_dependencies(const struct job *j)
{
    const struct link *first = list_first(&job_side(j)->depends);
    return first && LIST_ENTRY(first, struct dependency, of_job)->row.kind == DEPEND_AFTERCORR;
}

/* ---- the array depended on ---- */

/* Tasks of the array depended on: all, those that have succeeded, and those that still may. */
struct task_states {
    struct ranges all;
    struct bits done, open;
};

static void task_states_deinit(struct task_states *f)
{
    bits_deinit(&f->done);
    bits_deinit(&f->open);
}

static void add_all(struct bits *b, const struct bits *more)
{
    for (int32_t i = bits_next(more, 0); i < more->n; i = bits_next(more, i + 1))
        bits_set(b, i);
}

static void read_live_tasks(const struct job *on, struct task_states *ret)
{
    const struct array *a = on->array;
    ret->all = a->all;
    bits_init(&ret->done, ranges_last(&a->all) + 1);
    bits_init(&ret->open, ranges_last(&a->all) + 1);
    for (int k = 0; k < a->left.n; k++)
        for (int32_t i = a->left.v[k].first; i <= a->left.v[k].last; i += a->left.v[k].step)
            bits_set(&ret->open, i);
    for (int32_t i = bits_next(&a->gone, 0); i < a->gone.n; i = bits_next(&a->gone, i + 1))
        bits_clear(&ret->open, i);
    LIST_FOREACH (&a->tasks, l)
        bits_set(&ret->open, LIST_ENTRY(l, struct job_side, in_array)->job->row.array_index);
    add_all(&ret->done, &a->done);
}

/* Finds the tasks of an array that is not in the model: it ended in this tick, or the submitter has
 * read it from the database. */
static bool tasks_of(const struct model *m, const struct depend_ask *a, struct ranges *ret_all)
{
    struct err unused;
    for (size_t i = model_final_rows(m)->n_arrays; i-- > 0;)
        if (model_final_rows(m)->arrays[i].job == a->on)
            return ranges_parse(model_final_rows(m)->arrays[i].tasks, ret_all, &unused) == 0;
    if (a->array)
        *ret_all = a->array->all;
    return a->array && a->array->all.n > 0;
}

static bool ended_in_tick(const struct model *m, int64_t job)
{
    for (size_t i = model_final_rows(m)->n_jobs; i-- > 0;)
        if (model_final_rows(m)->jobs[i].id == job)
            return true;
    return false;
}

static int no_array(const struct depend_ask *a, struct err *e)
{
    return err_set(e, ERR_INVALID,
        "aftercorr:%" PRId64 ": job %" PRId64 " is not an array: use afterok:%" PRId64
        " to wait for the job",
        a->on, a->on, a->on);
}

/* On success the caller deinits the result. */
static int read_task_states(
    const struct model *m, const struct depend_ask *a, struct task_states *ret, struct err *e)
{
    const struct job *on = model_job(m, a->on);
    struct task_states f = {0};
    if (on && !on->array)
        return no_array(a, e);
    if (on) {
        read_live_tasks(on, &f);
    } else if (tasks_of(m, a, &f.all)) {
        bits_init(&f.done, ranges_last(&f.all) + 1);
    } else if (a->has_ended || ended_in_tick(m, a->on)) {
        return no_array(a, e);
    } else {
        return err_set(
            e, ERR_NOT_FOUND, "aftercorr:%" PRId64 ": there is no job %" PRId64, a->on, a->on);
    }
    if (a->array)
        add_all(&f.done, &a->array->succeeded);
    for (size_t i = 0; i < model_final_rows(m)->n_jobs; i++) {
        const struct job_row *r = &model_final_rows(m)->jobs[i];
        if (r->array == a->on && r->state == JOB_ENDED && r->end == END_SUCCEEDED)
            bits_set(&f.done, r->array_index);
    }
    *ret = f;
    return 0;
}

/* ---- submit ---- */

static int check_tasks(
    const struct task_states *f, const struct ranges *tasks, int64_t on, struct err *e)
{
    char all_text[RANGES_TEXT_MAX];
    struct bits want, all;
    int64_t missing = 0, may = 0;
    int32_t first = 0;
    ranges_bits(tasks, &want);
    ranges_bits(&f->all, &all);
    for (int32_t i = bits_next(&want, 0); i < want.n; i = bits_next(&want, i + 1)) {
        bool is_missing = !bits_has(&all, i);
        first = is_missing && missing == 0 ? i : first;
        missing += is_missing;
        may += bits_has(&f->done, i) || bits_has(&f->open, i);
    }
    bits_deinit(&want);
    bits_deinit(&all);
    ranges_format(&f->all, all_text);
    if (missing > 0)
        return err_set(e, ERR_INVALID,
            "aftercorr:%" PRId64 ": job %" PRId64 " has no task %" PRId32 ", so task %" PRId32
            " of this array could never begin (%" PRId64
            " task%s of this array in all); the tasks of that job are %.100s",
            on, on, first, first, missing, missing == 1 ? "" : "s", all_text);
    if (may == 0)
        return err_set(e, ERR_CONFLICT,
            "aftercorr:%" PRId64 " can never be satisfied: no task of job %" PRId64
            " with one of these indexes has succeeded or still can",
            on, on);
    return 0;
}

int array_dependencies_check(
    const struct model *m, const struct event *submit, const struct depend_ask *a, struct err *e)
{
    struct task_states f;
    if (!submit->submit.tasks)
        return err_set(e, ERR_INVALID,
            "aftercorr:%" PRId64
            " is for arrays, where each task waits for the task of job %" PRId64
            " with its index: submit one (--array), or use afterok:%" PRId64,
            a->on, a->on, a->on);
    if (submit->submit.job->spec.depends_any && submit->submit.n_depends > 1)
        return err_set(e, ERR_INVALID,
            "aftercorr cannot be one of several alternative dependencies: separate them by commas");
    int rc = read_task_states(m, a, &f, e);
    if (rc)
        return rc;
    rc = check_tasks(&f, submit->submit.tasks, a->on, e);
    task_states_deinit(&f);
    return rc;
}

static void init_task_sets(struct array *a)
{
    int32_t n = ranges_last(&a->all) + 1;
    if (a->ready.n > 0)
        return;
    bits_init(&a->ready, n);
    bits_init(&a->never, n);
    for (int k = 0; k < a->left.n; k++)
        for (int32_t i = a->left.v[k].first; i <= a->left.v[k].last; i += a->left.v[k].step)
            a->n_ready += !bits_has(&a->gone, i) && bits_set(&a->ready, i);
}

/* True if some of the tasks left must wait or be given up. */
static bool update_task_sets(struct array *a, const struct task_states *f)
{
    bool all = true;
    init_task_sets(a);
    for (int32_t i = 0; i < a->ready.n; i++) {
        if (!array_has_left(a, i) || bits_has(&f->done, i))
            continue;
        all = false;
        a->n_ready -= bits_clear(&a->ready, i);
        if (!bits_has(&f->open, i))
            a->n_never += bits_set(&a->never, i);
    }
    return !all;
}

bool array_dependencies_attach(struct model *m, struct job *j, const struct depend_ask *a)
{
    struct job *on = model_job(m, a->on);
    struct task_states f;
    struct err seen; /* checked by array_dependencies_check */
    if (read_task_states(m, a, &f, &seen) != 0)
        return false;
    bool waits = update_task_sets(j->array, &f);
    if (on && waits && on->array->done.n == 0) {
        on->array->done = f.done;
        f.done = (struct bits){0};
    }
    task_states_deinit(&f);
    return waits;
}

/* ---- events ---- */

static bool task_is_ready(const struct job *j, int32_t index)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_AFTERCORR && d->on && !bits_has(&d->on->array->done, index))
            return false;
    }
    return !bits_has(&j->array->never, index);
}

void array_dependencies_ended(
    struct model *m, struct job *array, int32_t index, bool succeeded, struct stamp now)
{
    if (succeeded)
        bits_set(&array->array->done, index);
    LIST_FOREACH (&array->array->task_dependents, l) {
        struct job *j = LIST_ENTRY(l, struct dependency, on_job)->job;
        struct array *a = j->array;
        if (!array_has_left(a, index))
            continue;
        if (!succeeded)
            a->n_never += bits_set(&a->never, index);
        else if (task_is_ready(j, index))
            a->n_ready += bits_set(&a->ready, index);
        dependencies_note_unmeetable(m, j);
        array_advance(m, j, now);
    }
}

void array_dependencies_dropped(struct model *m, struct job *array, struct stamp now)
{
    struct task_states f;
    if (list_is_empty(&array->array->task_dependents))
        return;
    read_live_tasks(array, &f);
    LIST_FOREACH (&array->array->task_dependents, l) {
        struct job *j = LIST_ENTRY(l, struct dependency, on_job)->job;
        update_task_sets(j->array, &f);
        dependencies_note_unmeetable(m, j);
        array_advance(m, j, now);
    }
    task_states_deinit(&f);
}

void array_dependencies_prune(struct model *m, struct job *j)
{
    struct array *a = j->array;
    LIST_FOREACH (&job_side(j)->depends, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_AFTERCORR && (a->left.n == 0 || (!d->on && a->n_never == 0)))
            dependencies_met(m, d);
    }
    if (!array_has_task_dependencies(j)) {
        bits_deinit(&a->ready);
        bits_deinit(&a->never);
        a->n_ready = a->n_never = 0;
    }
    dependencies_note_unmeetable(m, j);
}

void array_dependencies_over(struct model *m, struct job *array, struct stamp now)
{
    LIST_FOREACH (&array->array->task_dependents, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, on_job);
        struct job *j = d->job;
        link_remove(&d->on_job);
        d->on = NULL;
        array_dependencies_prune(m, j);
        array_advance(m, j, now);
    }
}

/* ---- recovery ---- */

void array_dependencies_load(struct model *m, struct job *j)
{
    if (!array_has_task_dependencies(j))
        return;
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        struct task_states f;
        if (d->row.kind != DEPEND_AFTERCORR)
            continue;
        read_live_tasks(d->on, &f);
        update_task_sets(j->array, &f);
        task_states_deinit(&f);
    }
    dependencies_note_unmeetable(m, j);
}
