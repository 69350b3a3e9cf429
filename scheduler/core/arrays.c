/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one row in the queue for all tasks that have not begun. Each decision to place one makes it a job, with a row and a
 * number of its own, which is retried, saved and billed as any other is; the array counts those that live, so that no more do
 * than may, and those that have ended, so that it knows when it has.
 */
#include "scheduler/core/impl.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

bool array_is_full(const struct job *j)
{
    return j->array && j->array->row.at_once > 0 && j->array->n_tasks >= j->array->row.at_once;
}

int64_t job_width(const struct job *j)
{
    const struct array *a = j->array;
    int64_t left = a ? ranges_count(&a->left) : 1;
    int64_t may = a && a->row.at_once > 0 ? a->row.at_once - a->n_tasks : left;
    return may < left ? may : left;
}

static void array_write(struct model *m, struct array *a)
{
    ranges_format(&a->left, a->row.left);
    *GROW(m->out.arrays, m->out.n_arrays) = a->row;
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
    list_push_back(&parent->array->tasks, &task->in_array);
    parent->array->n_tasks++;
}

struct job *array_task(const struct job *parent, int32_t index)
{
    LIST_FOREACH (&parent->array->tasks, l) {
        struct job *t = LIST_ENTRY(l, struct job, in_array);
        if (t->row.array_index == index)
            return t;
    }
    return NULL;
}

void array_free(struct job *j)
{
    free(j->array);
    j->array = NULL;
}

/* What it is and needs is the array's; what becomes of it is its own. */
static struct job *task_create(struct model *m, const struct job *parent)
{
    struct job *t = mem_alloc(sizeof *t);
    t->row = parent->row;
    t->row.id = m->next.next_job++;
    t->row.state = JOB_PENDING;
    t->row.hold = HOLD_NONE;
    t->row.begin_at = WALL_NONE;
    t->row.depends_any = false;
    t->row.warned = 0;
    t->row.array = parent->row.id;
    t->row.array_index = ranges_first(&parent->array->left);
    t->least = t->row.nodes;
    t->account = parent->account;
    t->certified_at = parent->certified_at;
    return t;
}

struct job *array_begin(struct model *m, struct job *j, struct stamp now)
{
    struct job *t = task_create(m, j);
    if (j->shape->claims == 0)
        reserve_drop(m, j->shape); /* it has a place now; the next task may need another */
    map_put(&m->jobs, t->row.id, t);
    extras_hold_again(m, t->row.extras);
    queue_adopt(m, t);
    array_adopt(j, t);
    ranges_take_first(&j->array->left);
    array_write(m, j->array);
    touch_job(m, t);
    array_settle(m, j, now);
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

void array_settle(struct model *m, struct job *j, struct stamp now)
{
    if (is_over(j->array)) {
        waits_withdraw(m, j);
        array_finish(m, j, now);
    } else if (j->row.state == JOB_PENDING && j->array->left.n == 0) {
        waits_withdraw(m, j);
        job_move(m, j, JOB_UNFOLDED);
    } else if (j->row.state == JOB_PENDING && array_is_full(j) == tree_has(&j->in_shape)) {
        waits_withdraw(m, j);
        job_enqueue(m, j, now);
    } else {
        queue_widen(m, j);
    }
}

void array_task_ended(struct model *m, struct job *task, struct stamp now)
{
    struct job *j = task->parent;
    struct array_row *r = &j->array->row;
    bool succeeded = task->row.end == END_SUCCEEDED;
    link_remove(&task->in_array);
    j->array->n_tasks--;
    r->n_succeeded += succeeded;
    r->n_other += !succeeded;
    if (!succeeded && r->end == END_NONE) {
        r->end = task->row.end;
        r->exit_code = task->row.exit_code;
    }
    array_write(m, j->array);
    array_settle(m, j, now);
}

int array_drop(struct model *m, struct job *j, const struct ranges *tasks, struct stamp now, struct err *e)
{
    struct array *a = j->array;
    int64_t n = tasks ? ranges_remove(&a->left, tasks) : ranges_count(&a->left);
    if (!tasks)
        a->left = (struct ranges){0};
    if (n < 0)
        return err_set(e, ERR_CONFLICT,
            "job %" PRId64
            ": without these, its tasks would be in more than %d pieces; cancel longer rows of them",
            j->row.id, RANGES_MAX);
    limits_submitted(j->account, -n);
    a->row.n_other += (int32_t)n;
    if (n > 0 && a->row.end == END_NONE)
        a->row.end = END_USER;
    array_write(m, a);
    waits_dropped(m, j, now);
    return 0;
}

int model_load_array(struct model *m, const struct array_row *r, struct err *e)
{
    struct job *j = model_job(m, r->job);
    struct array a = {.row = *r};
    struct err bad;
    if (!j || j->array || r->at_once < 0 || ranges_parse(r->tasks, &a.all, &bad) != 0 || (r->left[0] && ranges_parse(r->left, &a.left, &bad) != 0) ||
        (a.left.n == 0) != (j->row.state == JOB_UNFOLDED))
        return err_set(e, ERR_CORRUPT, "stored array %" PRId64 " and its job contradict each other", r->job);
    limits_submitted(j->account, -job_submitted(j));
    j->array = mem_dup(&a, sizeof a);
    limits_submitted(j->account, job_submitted(j));
    return 0;
}
