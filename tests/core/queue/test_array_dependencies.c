/* SPDX-License-Identifier: Apache-2.0
 *
 * Task-by-task dependencies of arrays: with ends in any order, restarts, and tasks that fail, are
 * cancelled or never existed.
 */
#include "tests/core/shelf.h"
#include "scheduler/core/queue/arrays.h"

#include "base/prng.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};

static struct ranges parse(const char *text)
{
    struct ranges set;
    struct err e;
    assert_int_equal(ranges_parse(text, &set, &e), 0);
    return set;
}

static int64_t submit(struct lab *l, const char *tasks, int32_t at_once)
{
    struct job_row r = lab_job(1);
    const struct ranges set = parse(tasks);
    r.spec.retries.n[RETRY_FAILED] = RETRIES_NEVER;
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .tasks = &set, .at_once = at_once}});
}

static int try_after_tasks(struct lab *l, const char *tasks, const struct depend_ask *asks,
    size_t n, bool any, int64_t *ret_id)
{
    struct job_row r = lab_job(1);
    struct ranges set;
    if (tasks)
        set = parse(tasks);
    r.spec.retries.n[RETRY_FAILED] = RETRIES_NEVER;
    r.spec.depends_any = any;
    struct event ev = {.type = EV_SUBMIT,
        .submit = {.job = &r,
            .texts = &texts,
            .tasks = tasks ? &set : NULL,
            .depends = asks,
            .n_depends = n}};
    return lab_try(l, &ev, ret_id);
}

static int64_t submit_after_tasks(struct lab *l, const char *tasks, int64_t on)
{
    const struct depend_ask ask = {.kind = DEPEND_AFTERCORR, .on = on};
    int64_t id = CORE_ID_NONE;
    if (try_after_tasks(l, tasks, &ask, 1, false, &id) != 0)
        fail_msg("%s", l->e.text);
    return id;
}

static void end_task(struct lab *l, int64_t job, int32_t index, enum end_kind end)
{
    const struct job *t = lab_task(l, job, index);
    if (!t)
        fail_msg("task %" PRId32 " does not live", index);
    int64_t id = t->row.id;
    if (!wall_is_set(job_attempt(t)->row.started_at))
        lab_started(l, id);
    lab_ended(l, id, end, end == END_SUCCEEDED ? 0 : 3);
}

static const struct job_row *row_of(const struct lab *l, int64_t array, int32_t index)
{
    const struct job_row *r = NULL;
    for (size_t k = 0; k < l->c.n_jobs; k++)
        if (l->c.jobs[k].array == array && l->c.jobs[k].array_index == index)
            r = &l->c.jobs[k];
    return r;
}

static void each_task_begins_when_its_counterpart_has_succeeded(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 16);
    int64_t first = submit(&l, "0-7", 0), second = submit_after_tasks(&l, "0-5", first);
    assert_int_equal(lab_plan(&l), 8);
    assert_true(model_job(l.m, second)->is_waiting);
    assert_true(lab_has_reason(&l, second, "dependency", "6 of its tasks wait until those of job"));
    end_task(&l, first, 4, END_SUCCEEDED);
    end_task(&l, first, 2, END_SUCCEEDED);
    assert_int_equal(model_job(l.m, second)->width, 2);
    assert_int_equal(lab_plan(&l), 2);
    assert_true(lab_task(&l, second, 2) && lab_task(&l, second, 4));
    assert_true(lab_has_reason(&l, second, "dependency", "4 of its tasks wait until those of job"));
    lab_take(&l);
    assert_string_equal(l.c.arrays[l.c.n_arrays - 1].left, "0-1,3,5");
    end_task(&l, second, 2, END_SUCCEEDED);
    end_task(&l, first, 0, END_RECLAIMED); /* requeued, so not ended */
    lab_plan(&l);
    assert_null(lab_task(&l, second, 0));
    static const int32_t rest[] = {0, 1, 3, 5, 6, 7};
    for (size_t k = 0; k < sizeof rest / sizeof rest[0]; k++)
        end_task(&l, first, rest[k], END_SUCCEEDED);
    assert_null(model_job(l.m, first));
    assert_int_equal(lab_plan(&l), 4);
    assert_int_equal(model_job(l.m, second)->row.state, JOB_UNFOLDED);
    static const int32_t all[] = {0, 1, 3, 4, 5};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        end_task(&l, second, all[k], END_SUCCEEDED);
    lab_take(&l);
    assert_int_equal(lab_row(&l, second)->end, END_SUCCEEDED);
    assert_int_equal(l.c.depends[l.c.n_depends - 1].state, DEPEND_MET);
    lab_deinit(&l);
}

static void limits_of_both_hold(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 16);
    int64_t first = submit(&l, "0-9", 3);
    const struct depend_ask ask = {.kind = DEPEND_AFTERCORR, .on = first};
    const struct ranges tasks = parse("0-9");
    struct job_row r = lab_job(1);
    int64_t second = lab_apply(&l, (struct event){.type = EV_SUBMIT,
                                       .submit = {.job = &r,
                                           .texts = &texts,
                                           .tasks = &tasks,
                                           .at_once = 2,
                                           .depends = &ask,
                                           .n_depends = 1}});
    for (int32_t i = 0; i < 10; i++) {
        lab_plan(&l);
        assert_true(model_job(l.m, first)->array->n_tasks <= 3);
        end_task(&l, first, i, END_SUCCEEDED);
        if (i >= 4)
            end_task(&l, second, i - 4, END_SUCCEEDED);
        lab_plan(&l);
        assert_int_equal(model_job(l.m, second)->array->n_tasks, i == 0 ? 1 : 2);
    }
    lab_deinit(&l);
}

/* The others continue; dependents of the one given up are notified. */
static void only_the_task_whose_counterpart_failed_is_given_up(void **state)
{
    (void)state;
    struct lab l;
    char text[64];
    lab_init(&l);
    lab_join(&l, "n1", 16);
    int64_t first = submit(&l, "0-3", 0), second = submit_after_tasks(&l, "0-3", first),
            third = submit_after_tasks(&l, "0-3", second);
    const struct depend_ask of_task = {
        .kind = DEPEND_AFTERNOTOK, .on = second, .of_task = true, .task = 1};
    int64_t rescue = CORE_ID_NONE;
    assert_int_equal(try_after_tasks(&l, NULL, &of_task, 1, false, &rescue), 0);
    lab_plan(&l);
    end_task(&l, first, 1, END_FAILED);
    lab_take(&l);
    lab_plan(&l);
    lab_take(&l);
    assert_int_equal(row_of(&l, second, 1)->state, JOB_ENDED);
    assert_int_equal(row_of(&l, second, 1)->end, END_DEPENDENCY);
    assert_int_equal(row_of(&l, third, 1)->end, END_DEPENDENCY);
    assert_true(row_of(&l, second, 1)->id < row_of(&l, third, 1)->id);
    snprintf(
        text, sizeof text, "dependency: aftercorr:%" PRId64 "_1 can never be satisfied", second);
    assert_string_equal(lab_history(&l, "ended")->text, text);
    assert_int_equal(model_job(l.m, rescue)->row.state, JOB_RUNNING);
    assert_int_equal(model_job(l.m, second)->array->row.n_other, 1);
    lab_cancel(&l, first, "2");
    lab_cancel(&l, first, "3"); /* while they run */
    end_task(&l, first, 0, END_SUCCEEDED);
    end_task(&l, first, 2, END_CANCELLED);
    lab_plan(&l);
    end_task(&l, second, 0, END_SUCCEEDED);
    lab_plan(&l);
    end_task(&l, first, 3, END_CANCELLED);
    lab_plan(&l);
    assert_null(model_job(l.m, second));
    end_task(&l, third, 0, END_SUCCEEDED);
    assert_null(model_job(l.m, third));
    lab_take(&l);
    assert_int_equal(lab_row(&l, third)->end, END_DEPENDENCY);
    lab_deinit(&l);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct lab l;
    struct depend_ask asks[2] = {{.kind = DEPEND_AFTERCORR}, {.kind = DEPEND_AFTERANY}};
    lab_init(&l);
    int64_t array = submit(&l, "0-4", 0), single = lab_submit_cpus(&l, 1);
    asks[0].on = array;
    asks[1].on = single;
    assert_int_equal(try_after_tasks(&l, "0-9", asks, 1, false, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "has no task 5, so task 5 of this array could never begin (5 "
                                     "tasks of this array in all); the tasks of that job are 0-4"));
    assert_int_equal(try_after_tasks(&l, NULL, asks, 1, false, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "is for arrays"));
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 2, true, NULL), ERR_INVALID);
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, true, NULL), 0);
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 2, false, NULL), 0);
    asks[0].on = single;
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, false, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "is not an array"));
    asks[0].on = 99;
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, false, NULL), ERR_NOT_FOUND);
    asks[0].has_ended = true; /* and has no array row */
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, false, NULL), ERR_INVALID);
    asks[0] =
        (struct depend_ask){.kind = DEPEND_AFTERCORR, .on = array, .of_task = true, .task = 1};
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, false, NULL), ERR_INVALID);
    lab_cancel(&l, array, NULL);
    /* it has ended in this tick */
    asks[0] = (struct depend_ask){.kind = DEPEND_AFTERCORR, .on = array};
    assert_int_equal(try_after_tasks(&l, "0-4", asks, 1, false, NULL), ERR_CONFLICT);
    assert_non_null(strstr(l.e.text, "can never be satisfied: no task of job"));
    lab_deinit(&l);
}

/* Part of it, or all, has ended, in this tick or long ago. */
static void tasks_that_ended_before_the_submit_count(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        bool stored = how & 1, all = how & 2;
        struct lab l;
        struct shelf s = {0};
        lab_init(&l);
        lab_join(&l, "n1", 16);
        int64_t first = submit(&l, "0-3", 0);
        lab_plan(&l);
        end_task(&l, first, 0, END_SUCCEEDED);
        end_task(&l, first, 2, END_FAILED);
        if (all) {
            end_task(&l, first, 1, END_SUCCEEDED);
            end_task(&l, first, 3, END_FAILED);
        }
        if (stored) {
            lab_take(&l);
            shelf_put(&s, &l.c);
        }
        struct depend_ask ask = {.kind = DEPEND_AFTERCORR,
            .on = first,
            .has_ended = stored && all,
            .array = stored ? shelf_array_ends(&s, first) : NULL};
        int64_t second = CORE_ID_NONE, met = CORE_ID_NONE;
        assert_int_equal(try_after_tasks(&l, "0-3", &ask, 1, false, &second), 0);
        assert_int_equal(try_after_tasks(&l, "0", &ask, 1, false, &met), 0);
        assert_true(list_is_empty(&job_side(model_job(l.m, met))->depends));
        lab_take(&l);
        shelf_put(&s, &l.c);
        lab_plan(&l);
        lab_take(&l);
        shelf_put(&s, &l.c);
        assert_non_null(lab_task(&l, second, 0));
        assert_int_equal(row_of(&l, second, 2)->end, END_DEPENDENCY);
        assert_int_equal(lab_task(&l, second, 1) != NULL, all);
        assert_int_equal(row_of(&l, second, 3) != NULL, all);
        if (ask.array)
            bits_deinit(&ask.array->succeeded);
        free(ask.array);
        shelf_deinit(&s);
        lab_deinit(&l);
    }
}

/* ---- random order ---- */

enum { N = 90 };
enum fate { OPEN, GOOD, BAD };

struct run {
    struct lab l;
    struct shelf s;
    struct prng r;
    int64_t first, second;
    enum fate fate[N];         /* of the first array's tasks */
    bool begun[N], dropped[N]; /* of the second array's tasks */
};

/* Exactly the ready tasks of the second array run. */
static void check_ready_tasks(struct run *p)
{
    const struct job *j = model_job(p->l.m, p->second);
    for (int32_t i = 0; i < N; i++) {
        bool runs = lab_task(&p->l, p->second, i) != NULL;
        p->begun[i] |= runs;
        if (p->begun[i] != (p->fate[i] == GOOD && !p->dropped[i]))
            fail_msg("task %d %s begun", i, p->begun[i] ? "has" : "has not");
    }
    assert_true(!j || j->array->left.n <= RANGES_MAX);
}

static void turn(struct run *p)
{
    int32_t i = (int32_t)prng_below(&p->r, N);
    uint64_t what = prng_below(&p->r, 20);
    const struct job *second = model_job(p->l.m, p->second);
    char text[16];
    snprintf(text, sizeof text, "%d", (int)i);
    if (what == 0) {
        shelf_restart(&p->s, &p->l);
    } else if (what == 1 && second && array_has_left(second->array, i)) {
        lab_cancel(&p->l, p->second, text);
        p->dropped[i] = true;
    } else if (what == 2 && p->fate[i] == OPEN && model_job(p->l.m, p->first)) {
        lab_cancel(&p->l, p->first, text);
        if (lab_task(&p->l, p->first, i))
            end_task(&p->l, p->first, i, END_CANCELLED);
        p->fate[i] = BAD;
    } else if (what == 3 && p->fate[i] == OPEN) {
        end_task(&p->l, p->first, i, END_RECLAIMED);
    } else if (p->fate[i] == OPEN && lab_task(&p->l, p->first, i)) {
        p->fate[i] = what < 16 ? GOOD : BAD;
        end_task(&p->l, p->first, i, p->fate[i] == GOOD ? END_SUCCEEDED : END_FAILED);
    } else if (p->begun[i] && lab_task(&p->l, p->second, i)) {
        end_task(&p->l, p->second, i, END_SUCCEEDED);
    }
    lab_plan(&p->l);
    check_ready_tasks(p);
}

static void tasks_end_in_any_order(void **state)
{
    (void)state;
    size_t most = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct run p = {0};
        prng_init(&p.r, seed);
        lab_init(&p.l);
        lab_join(&p.l, "n1", 4 * N);
        p.first = submit(&p.l, "0-89", 0);
        p.second = submit_after_tasks(&p.l, "0-89", p.first);
        lab_plan(&p.l);
        for (int k = 0; k < 700; k++) {
            turn(&p);
            const struct job *j = model_job(p.l.m, p.second);
            most = j && (size_t)j->array->n_gone > most ? (size_t)j->array->n_gone : most;
        }
        for (int32_t i = 0; i < N; i++) {
            if (lab_task(&p.l, p.first, i)) {
                end_task(&p.l, p.first, i, END_SUCCEEDED);
                p.fate[i] = GOOD;
            }
        }
        lab_plan(&p.l);
        check_ready_tasks(&p);
        for (int32_t i = 0; i < N; i++)
            if (lab_task(&p.l, p.second, i))
                end_task(&p.l, p.second, i, END_SUCCEEDED);
        assert_null(model_job(p.l.m, p.first));
        assert_null(model_job(p.l.m, p.second));
        shelf_restart(&p.s, &p.l);
        shelf_deinit(&p.s);
        lab_deinit(&p.l);
    }
    assert_true(most > 0); /* it had more ranges than are stored */
}

/* ---- many ---- */

static void many_are_given_up_without_a_row_each(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t first = submit(&l, "0-99999", 0), second = submit_after_tasks(&l, "0-99999", first);
    lab_plan(&l);
    lab_take(&l);
    lab_cancel(&l, first, "100-99999");
    lab_plan(&l);
    lab_take(&l);
    assert_true(l.c.n_jobs < 10);
    assert_non_null(strstr(lab_history(&l, "cancel")->text, "99900 of its tasks were given up"));
    assert_string_equal(l.c.arrays[l.c.n_arrays - 1].left, "0-99");
    assert_int_equal(model_job(l.m, second)->array->row.n_other, 99900);
    lab_deinit(&l);
}

/* One after the other, as decisions, not as a recursion. */
static void a_long_chain_is_given_up(void **state)
{
    (void)state;
    struct lab l;
    enum { LINKS = 60 };
    int64_t chain[LINKS];
    lab_init(&l);
    chain[0] = submit(&l, "0-1", 0);
    for (int k = 1; k < LINKS; k++)
        chain[k] = submit_after_tasks(&l, "0-1", chain[k - 1]);
    lab_cancel(&l, chain[0], "1");
    lab_plan(&l);
    for (int k = 1; k < LINKS; k++)
        assert_string_equal(model_job(l.m, chain[k])->array->row.left, "0");
    lab_cancel(&l, chain[0], NULL);
    lab_plan(&l);
    for (int k = 0; k < LINKS; k++)
        assert_null(model_job(l.m, chain[k]));
    lab_deinit(&l);
}

static void other_dependencies_hold_too(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 8);
    int64_t first = submit(&l, "0-3", 0), another = submit(&l, "0-3", 0),
            single = lab_submit_cpus(&l, 1), second = CORE_ID_NONE;
    const struct depend_ask asks[] = {{.kind = DEPEND_AFTEROK, .on = single},
        {.kind = DEPEND_AFTERCORR, .on = first}, {.kind = DEPEND_AFTERCORR, .on = another},
        {.kind = DEPEND_AFTERCORR, .on = first}};
    assert_int_equal(try_after_tasks(&l, "0-3", asks, 4, false, &second), 0);
    lab_plan(&l);
    end_task(&l, first, 0, END_SUCCEEDED);
    end_task(&l, first, 1, END_SUCCEEDED);
    end_task(&l, another, 1, END_SUCCEEDED);
    end_task(&l, another, 2, END_SUCCEEDED);
    lab_plan(&l);
    assert_null(lab_task(&l, second, 1));
    lab_ended(&l, single, END_SUCCEEDED, 0);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = second, .by = "ann"}});
    lab_plan(&l);
    assert_null(lab_task(&l, second, 1));
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = second, .by = "ann"}});
    assert_int_equal(lab_plan(&l), 1);
    assert_non_null(lab_task(&l, second, 1)); /* both dependencies */
    end_task(&l, first, 2, END_FAILED);
    end_task(&l, another, 3, END_FAILED);
    end_task(&l, another, 0, END_SUCCEEDED);
    lab_plan(&l);
    assert_non_null(lab_task(&l, second, 0));
    assert_int_equal(model_job(l.m, second)->row.state, JOB_UNFOLDED);
    assert_int_equal(model_job(l.m, second)->array->row.n_other, 2);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_begins_when_its_counterpart_has_succeeded),
        cmocka_unit_test(limits_of_both_hold),
        cmocka_unit_test(only_the_task_whose_counterpart_failed_is_given_up),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(tasks_that_ended_before_the_submit_count),
        cmocka_unit_test(tasks_end_in_any_order),
        cmocka_unit_test(many_are_given_up_without_a_row_each),
        cmocka_unit_test(a_long_chain_is_given_up),
        cmocka_unit_test(other_dependencies_hold_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
