/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies between jobs. An open dependency is linked from both of its jobs, so that the start
 * or end of a job costs only as much as it has dependents. Waiting and eligibility are in
 * eligible.c, dependencies by name in namesakes.c.
 *
 * A dependency that can never be satisfied is refused at the submit. If it becomes so later, a
 * decision of its own ends the job: a long chain is a sequence of decisions, not a recursion.
 */
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/array_dependencies.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include "scheduler/core/queue/eligible.h"
#include "scheduler/core/queue/dependencies_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- dependencies ---- */

enum depend_state dependencies_judge(enum depend_kind kind, enum end_kind end)
{
    bool is_met = kind == DEPEND_AFTEROK      ? end == END_SUCCEEDED
                  : kind == DEPEND_AFTERNOTOK ? end != END_SUCCEEDED
                                              : true;
    return is_met ? DEPEND_MET : DEPEND_NEVER;
}

static void dependency_write(struct model *m, const struct dependency *d)
{
    *ADD_ROW(m, depends) = d->row;
}

static bool is_of_tasks(const struct dependency *d)
{
    return d->row.kind == DEPEND_AFTERCORR;
}

void dependencies_counted(struct account *a, int64_t n)
{
    a->n_waits += n;
}

/* A job may depend on a thousand others, so open dependencies are counted, not searched at each
 * end. */
static void count(const struct dependency *d, int32_t sign)
{
    struct job_side *s = job_make_side(d->job);
    if (d->row.state == DEPEND_NEVER) {
        s->n_never += sign;
        s->n_never_of_tasks += is_of_tasks(d) ? sign : 0;
    } else {
        s->n_open += sign;
        dependencies_counted(d->job->account, sign);
    }
}

/* AFTERCORR come first in the list of a job, AFTER first in the list of the job depended on. */
static struct dependency *dependency_add(
    struct job *j, const struct dependency_row *r, struct job *on)
{
    struct dependency *d = mem_alloc(sizeof *d);
    d->row = *r;
    d->job = j;
    d->on = on;
    if (on && is_of_tasks(d) && on->array->done.n == 0)
        bits_init(&on->array->done, ranges_last(&on->array->all) + 1);
    if (is_of_tasks(d))
        list_push_front(&job_make_side(j)->depends, &d->of_job);
    else
        list_push_back(&job_make_side(j)->depends, &d->of_job);
    if (on && is_of_tasks(d))
        list_push_back(&on->array->task_dependents, &d->on_job);
    else if (on && r->of_task)
        list_push_back(&on->array->dependents, &d->on_job);
    else if (on && r->kind == DEPEND_AFTER)
        list_push_front(&job_make_side(on)->dependents, &d->on_job);
    else if (on)
        list_push_back(&job_make_side(on)->dependents, &d->on_job);
    count(d, 1);
    return d;
}

void dependency_move(struct model *m, struct dependency *d, enum depend_state to)
{
    int state = (int)d->row.state;
    count(d, -1);
    sm_move(&depend_sm, d->row.job, &state, (int)to);
    d->row.state = (enum depend_state)state;
    dependency_write(m, d);
    link_remove(&d->on_job);
    d->on = NULL;
    if (to == DEPEND_NEVER) {
        /* kept as the reason of the job's end, or because another one may still be satisfied */
        count(d, 1);
        return;
    }
    link_remove(&d->of_job);
    free(d);
}

/* Drops all dependencies. Of an ended job those in NEVER keep their state. */
static void drop_all(struct model *m, struct job *j)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.state != DEPEND_NEVER || j->row.state != JOB_ENDED) {
            dependency_move(m, d, DEPEND_DROPPED);
        } else {
            count(d, -1);
            link_remove(&d->of_job);
            free(d);
        }
    }
}

static void clear_unmeetable(struct job *j)
{
    if (j->side)
        link_remove(&j->side->unmeetable);
}

/* True if the job must end, because it can never start. Tasks with task-by-task dependencies are
 * given up one by one instead. */
static bool is_unmeetable(const struct job *j)
{
    const struct job_side *s = job_side(j);
    bool any_never = (j->row.spec.keep_unmeetable ? s->n_never_of_tasks : s->n_never) > 0;
    return any_never && !(j->row.spec.depends_any && s->n_open > 0);
}

void dependencies_note_unmeetable(struct model *m, struct job *j)
{
    bool is = is_unmeetable(j) || (j->array && j->array->n_never > 0);
    if (!is)
        clear_unmeetable(j);
    else if (!link_is_in(&job_side(j)->unmeetable))
        list_push_back(&m->queue.unmeetable, &job_make_side(j)->unmeetable);
}

void dependencies_met(struct model *m, struct dependency *d)
{
    dependency_move(m, d, DEPEND_MET);
}

/* True if it waits for whole jobs, not only task by task for those of another array. */
bool dependencies_wait_for_jobs(const struct job *j)
{
    const struct link *last = list_last(&job_side(j)->depends);
    return last && !is_of_tasks(LIST_ENTRY(last, struct dependency, of_job));
}

static void delay_begin(struct job *j, struct wall started_at, int64_t delay_ms)
{
    if (delay_ms > 0 && j->row.spec.begin_at.ms < started_at.ms + delay_ms)
        j->row.spec.begin_at.ms = started_at.ms + delay_ms; /* WALL_NONE is before all times */
}

void dependency_ends(struct model *m, struct dependency *d, enum depend_state as, struct stamp now)
{
    struct job *j = d->job;
    if (d->row.kind == DEPEND_AFTER && as == DEPEND_MET) {
        delay_begin(j, now.wall, d->row.delay_ms);
        touch_job(m, j);
    }
    dependency_move(m, d, as);
    if (as == DEPEND_MET && j->row.spec.depends_any)
        drop_all(m, j);
    dependencies_note_unmeetable(m, j);
    if (!dependencies_wait_for_jobs(j)) {
        dependencies_stop_waiting(m, j);
        job_enqueue(m, j, now);
    }
}

/* Call repeatedly: the end of one dependency may remove others of the same job. */
static struct dependency *first_dependent(const struct job *j)
{
    struct link *l = list_first(&job_side(j)->dependents);
    return l ? LIST_ENTRY(l, struct dependency, on_job) : NULL;
}

/* Returns a dependency on this task, or, if task is NULL, on any task that will never begin. */
static struct dependency *task_dependent(
    const struct job *array, const struct job *task, bool only_after)
{
    LIST_FOREACH (&array->array->dependents, l) {
        struct dependency *d = LIST_ENTRY(l, struct dependency, on_job);
        bool is_on_it =
            task ? d->row.task == task->row.array_index
                 : !array_has_left(array->array, d->row.task) && !array_task(array, d->row.task);
        if (is_on_it && (d->row.kind == DEPEND_AFTER || !only_after))
            return d;
    }
    return NULL;
}

void dependencies_started(struct model *m, struct job *j, struct stamp now)
{
    for (struct dependency *d; (d = first_dependent(j)) && d->row.kind == DEPEND_AFTER;)
        dependency_ends(m, d, DEPEND_MET, now);
    for (struct dependency *d; j->parent && (d = task_dependent(j->parent, j, true));)
        dependency_ends(m, d, DEPEND_MET, now);
}

void dependencies_dropped(struct model *m, struct job *array, struct stamp now)
{
    for (struct dependency *d; (d = task_dependent(array, NULL, false));)
        dependency_ends(m, d, dependencies_judge(d->row.kind, END_CANCELLED), now);
    array_dependencies_dropped(m, array, now);
}

/* ---- submit ---- */

/* The end of a job that is not in the model: from this tick, or as read by the submitter. */
static bool find_ended(const struct model *m, const struct depend_ask *a, enum end_kind *ret_end,
    struct wall *ret_started)
{
    for (size_t i = model_final_rows(m)->n_jobs; i-- > 0;) {
        const struct job_row *r = &model_final_rows(m)->jobs[i];
        bool is_it = a->of_task ? r->array == a->on && r->array_index == a->task : r->id == a->on;
        if (is_it && r->state == JOB_ENDED) {
            *ret_end = r->end;
            *ret_started = r->started_at;
            return true;
        }
    }
    *ret_end = a->end;
    *ret_started = a->started_at;
    return a->has_ended;
}

/* "afterok:42", "afterok:42_7". */
struct depend_text depend_text(enum depend_kind kind, int64_t on, bool of_task, int32_t task)
{
    struct depend_text t;
    if (of_task)
        text_format(t.s, sizeof t.s, "%s:%" PRId64 "_%" PRId32, depend_kind_names[kind], on, task);
    else
        text_format(t.s, sizeof t.s, "%s:%" PRId64, depend_kind_names[kind], on);
    return t;
}

static struct depend_text requested_text(const struct depend_ask *a)
{
    return depend_text(a->kind, a->on, a->of_task, a->task);
}

/* dependency_state_now() for a dependency on a task. A task that was cancelled before it began has
 * no row. */
static int task_dependency_state(const struct model *m, const struct depend_ask *a,
    enum depend_state *ret_state, struct wall *ret_started, enum end_kind *ret_end, struct err *e)
{
    const struct job *on = model_job(m, a->on);
    const struct job *task = on && on->array ? array_task(on, a->task) : NULL;
    if (on && !on->array)
        return err_set(
            e, ERR_NOT_FOUND, "%s: job %" PRId64 " is not an array", requested_text(a).s, a->on);
    *ret_end = END_NONE;
    *ret_started = task ? task->row.started_at : WALL_NONE;
    *ret_state =
        task && a->kind == DEPEND_AFTER && wall_is_set(*ret_started) ? DEPEND_MET : DEPEND_WAITS;
    if (task || (on && array_has_left(on->array, a->task)))
        return 0;
    if (!find_ended(m, a, ret_end, ret_started)) {
        if (!on || !ranges_has(&on->array->all, a->task))
            return err_set(e, ERR_NOT_FOUND, "%s: there is no task %" PRId32 " of job %" PRId64,
                requested_text(a).s, a->task, a->on);
        *ret_end = END_CANCELLED;
    }
    *ret_state = dependencies_judge(a->kind, *ret_end);
    return 0;
}

/* State of this dependency now; ERR_NOT_FOUND for an unknown job. */
static int dependency_state_now(const struct model *m, const struct depend_ask *a,
    enum depend_state *ret_state, struct wall *ret_started, enum end_kind *ret_end, struct err *e)
{
    const struct job *on = model_job(m, a->on);
    if (a->of_task)
        return task_dependency_state(m, a, ret_state, ret_started, ret_end, e);
    *ret_end = END_NONE;
    *ret_started = on ? on->row.started_at : WALL_NONE;
    if (on) {
        *ret_state =
            a->kind == DEPEND_AFTER && wall_is_set(*ret_started) ? DEPEND_MET : DEPEND_WAITS;
        return 0;
    }
    if (!find_ended(m, a, ret_end, ret_started))
        return err_set(
            e, ERR_NOT_FOUND, "%s: there is no job %" PRId64, requested_text(a).s, a->on);
    *ret_state = dependencies_judge(a->kind, *ret_end);
    return 0;
}

int dependencies_check(const struct model *m, const struct event *submit, struct err *e)
{
    size_t n = submit->submit.n_depends, n_never = 0;
    bool any = submit->submit.job->spec.depends_any,
         keeps = submit->submit.job->spec.keep_unmeetable;
    if (n > DEPENDS_MAX)
        return err_set(e, ERR_INVALID, "a job can depend on at most %d others", DEPENDS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct depend_ask *a = &submit->submit.depends[i];
        enum depend_state state;
        enum end_kind end;
        struct wall started;
        if (a->delay_ms < 0 || (a->kind == DEPEND_SINGLETON) != (a->on == CORE_ID_NONE) ||
            (a->of_task &&
                (a->task < 0 || a->kind == DEPEND_SINGLETON || a->kind == DEPEND_AFTERCORR)))
            return err_set(e, ERR_INVALID,
                "a dependency of kind %s on job %" PRId64 " is malformed: its delay, job or task",
                depend_kind_names[a->kind], a->on);
        if (a->kind == DEPEND_SINGLETON)
            continue;
        state = DEPEND_WAITS;
        int rc = a->kind == DEPEND_AFTERCORR
                     ? array_dependencies_check(m, submit, a, e)
                     : dependency_state_now(m, a, &state, &started, &end, e);
        if (rc)
            return rc;
        n_never += state == DEPEND_NEVER;
        if (state == DEPEND_NEVER && !keeps && (!any || n_never == n))
            return err_set(e, ERR_CONFLICT,
                "%s can never be satisfied: %s %" PRId64 " has ended, %s", requested_text(a).s,
                a->of_task ? "that task of job" : "job", a->on, end_kind_names[end]);
    }
    return 0;
}

/* ---- limit per account ---- */

static int64_t count_requested(
    const struct model *m, const struct job_row *r, int64_t id, const struct event *submit)
{
    int64_t n = 0;
    bool by_name = false;
    for (size_t i = 0; i < submit->submit.n_depends; i++) {
        bool is_name = submit->submit.depends[i].kind == DEPEND_SINGLETON;
        by_name |= is_name;
        n += !is_name;
    }
    return n + (by_name ? namesakes_before(m, r, id) : 0);
}

static int check_limit(const struct account *a, int64_t more, struct err *e)
{
    if (more <= 0 || more <= DEPENDENCIES_OF_ACCOUNT_MAX - a->n_waits)
        return 0;
    return err_set(e, ERR_CONFLICT,
        "jobs of %s in team %s have %" PRId64 " open dependencies, and this would be %" PRId64
        " more than the %d allowed: wait for some to end, let one job collect a step's "
        "dependencies, or use an array with aftercorr",
        a->row.user, a->row.team, a->n_waits, more - (DEPENDENCIES_OF_ACCOUNT_MAX - a->n_waits),
        DEPENDENCIES_OF_ACCOUNT_MAX);
}

int dependencies_check_limit(
    const struct model *m, const struct account *a, const struct event *submit, struct err *e)
{
    return check_limit(
        a, count_requested(m, submit->submit.job, model_next_ids(m)->next_job, submit), e);
}

int dependencies_check_change(const struct model *m, const struct job *j, const struct account *to,
    const struct job_row *becomes, const struct event *replaced, struct err *e)
{
    int64_t had = job_side(j)->n_open, has = had;
    if (replaced)
        has = count_requested(m, becomes, j->row.id, replaced);
    else if (!str_eq(becomes->spec.name, j->row.spec.name) && job_waits_for_name(j))
        has += namesakes_before(m, becomes, j->row.id) - namesakes_waited_for(j);
    return check_limit(to, to == j->account ? has - had : has, e);
}

/* ---- attach and detach ---- */

/* Adds a dependency that the job does not have yet. */
void dependency_attach(struct model *m, struct job *j, const struct dependency_row *r)
{
    dependency_write(
        m, dependency_add(j, r, r->state == DEPEND_WAITS ? model_job(m, r->on) : NULL));
}

/* A user's list may name a job twice, also with different delays: the first counts. */
static bool is_repeated(const struct event *submit, size_t i)
{
    const struct depend_ask *all = submit->submit.depends, *a = &all[i];
    for (size_t k = 0; k < i; k++)
        if (all[k].on == a->on && all[k].kind == a->kind && all[k].of_task == a->of_task &&
            (!a->of_task || all[k].task == a->task))
            return true;
    return false;
}

void dependencies_attach(struct model *m, struct job *j, const struct event *submit)
{
    bool met_one = false;
    for (size_t i = 0; i < submit->submit.n_depends; i++) {
        const struct depend_ask *a = &submit->submit.depends[i];
        struct dependency_row r = {.job = j->row.id,
            .on = a->on,
            .kind = a->kind,
            .of_task = a->of_task,
            .task = a->of_task ? a->task : 0,
            .delay_ms = a->delay_ms};
        enum end_kind end;
        struct wall started = WALL_NONE;
        struct err seen; /* checked by dependencies_check */
        if (a->kind == DEPEND_SINGLETON && is_repeated(submit, i))
            continue;
        if (a->kind == DEPEND_SINGLETON) {
            namesakes_attach(m, j);
            met_one |= list_is_empty(&job_side(j)->depends);
            continue;
        }
        if (a->kind == DEPEND_AFTERCORR)
            r.state = array_dependencies_attach(m, j, a) ? DEPEND_WAITS : DEPEND_MET;
        else if (dependency_state_now(m, a, &r.state, &started, &end, &seen) != 0)
            continue;
        if (r.state != DEPEND_MET) {
            if (!is_repeated(submit, i))
                dependency_attach(m, j, &r);
            continue;
        }
        if (wall_is_set(started))
            delay_begin(j, started, a->delay_ms);
        met_one = true;
        *ADD_ROW(m, depends) = r;
    }
    if (met_one && j->row.spec.depends_any)
        drop_all(m, j);
    dependencies_note_unmeetable(m, j);
}

/* ---- removal ---- */

/* The job continues, or ends, without its open dependencies. */
static void drop_dependencies(struct model *m, struct job *j)
{
    namesakes_pass_on(m, j);
    drop_all(m, j);
}

void dependencies_no_more(struct model *m, struct job *j)
{
    clear_unmeetable(j);
    drop_dependencies(m, j);
}

void dependencies_detach(struct model *m, struct job *j)
{
    drop_dependencies(m, j);
    if (j->array)
        array_dependencies_prune(m, j);
}

void dependencies_ended(struct model *m, struct job *j, struct stamp now)
{
    dependencies_stop_waiting(m, j);
    clear_unmeetable(j);
    drop_dependencies(m, j);
    for (struct dependency *d; (d = first_dependent(j));)
        dependency_ends(m, d, dependencies_judge(d->row.kind, j->row.end), now);
    for (struct dependency *d; j->parent && (d = task_dependent(j->parent, j, false));)
        dependency_ends(m, d, dependencies_judge(d->row.kind, j->row.end), now);
    if (j->array)
        array_dependencies_over(m, j, now);
    namesakes_disown(m, j);
}

struct mono dependencies_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    struct link *l = list_first(&m->queue.unmeetable);
    if (l) {
        *ret_event = (struct event){.type = EV_UNMEETABLE,
            .unmeetable.job = LIST_ENTRY(l, struct job_side, unmeetable)->job->row.id};
        return now.mono;
    }
    struct tree_link *first = tree_first(&m->queue.by_begin);
    if (!first)
        return MONO_NONE;
    const struct job_side *s = TREE_ENTRY(first, struct job_side, by_begin);
    *ret_event = (struct event){.type = EV_ELIGIBLE, .eligible.job = s->job->row.id};
    return stamp_until(now, s->not_before);
}

/* ---- events ---- */

/* Describes the first unsatisfiable dependency. */
static void describe_never(const struct job *j, char *out, size_t size)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency_row *r = &LIST_ENTRY(l, struct dependency, of_job)->row;
        if (r->state == DEPEND_NEVER) {
            str_copy(out, size, depend_text(r->kind, r->on, r->of_task, r->task).s);
            return;
        }
    }
}

/* Ends the tasks that have not begun, so jobs that depend on one of them stop waiting. True: some
 * tasks had begun before this dependency was added; they continue, and the array ends with the last
 * of them. */
static bool give_up_array(struct model *m, struct job *j, const char *what, struct stamp now)
{
    struct err unused;
    array_drop(m, j, NULL, END_DEPENDENCY, now, &unused);
    if (j->array->n_tasks == 0)
        return false;
    history(m, now, "cancel", (struct history_of){.job = j},
        "its tasks that have not begun were given up: %s can never be satisfied", what);
    drop_dependencies(m, j);
    dependencies_note_unmeetable(m, j);
    array_advance(m, j, now);
    return true;
}

int apply_unmeetable(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = job_named(m, ev->unmeetable.job, e);
    char what[64] = "";
    if (!j)
        return ERR_NOT_FOUND;
    ret_outcome->id = j->row.id;
    if (!link_is_in(&job_side(j)->unmeetable))
        return err_set(e, ERR_CONFLICT, "job %s may still run", job_ref(&j->row).s);
    if (!is_unmeetable(j)) {
        array_give_up(m, j, ev->now);
        return 0;
    }
    describe_never(j, what, sizeof what);
    dependencies_withdraw(m, j);
    if (j->array && give_up_array(m, j, what, ev->now))
        return 0;
    j->row.end = END_DEPENDENCY;
    history(m, ev->now, "ended", (struct history_of){.job = j},
        "dependency: %s can never be satisfied", what);
    job_finish(m, j, ev->now);
    return 0;
}

/* ---- recovery ---- */

int model_load_dependency(struct model *m, const struct dependency_row *r, struct err *e)
{
    struct job *j = model_job(m, r->job), *on = model_job(m, r->on);
    if (!j || j->row.state != JOB_PENDING || r->state > DEPEND_NEVER || r->state == DEPEND_MET ||
        r->on >= r->job || (r->state == DEPEND_WAITS && !on) ||
        (r->of_task && on && !(on->array && ranges_has(&on->array->all, r->task))) ||
        (r->kind == DEPEND_AFTERCORR && !(on && on->array && j->array)))
        return err_set(e, ERR_CORRUPT,
            "stored dependency of job %" PRId64 " on job %" PRId64
            " is not open, or contradicts these jobs",
            r->job, r->on);
    dependency_add(j, r, r->state == DEPEND_WAITS ? on : NULL);
    dependencies_note_unmeetable(m, j);
    return 0;
}

void dependencies_destroy_all(struct model *m)
{
    struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;)
        for (struct link *l; j->side && (l = list_pop(&j->side->depends));)
            free(LIST_ENTRY(l, struct dependency, of_job));
    namesakes_destroy_all(m);
}
