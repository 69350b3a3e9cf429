/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one row until a task runs, the limit of running tasks, partial cancels, and the end of
 * the whole.
 */
#include "tests/core/shelf.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t submit(struct lab *l, const char *tasks, int32_t at_once)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct job_row r = lab_job(1);
    struct ranges set;
    r.spec.retries.n[RETRY_FAILED] = 0;
    assert_int_equal(ranges_parse(tasks, &set, &l->e), 0);
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .tasks = &set, .at_once = at_once}});
}

static const struct array *array_of(const struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    return j ? j->array : NULL;
}

static void end_task(struct lab *l, int64_t job, int32_t index, enum end_kind end, int32_t code)
{
    struct job *t = lab_task(l, job, index);
    if (!t)
        fail_msg("task %" PRId32 " does not live", index);
    lab_started(l, t->row.id);
    lab_ended(l, t->row.id, end, code);
}

static void a_task_becomes_a_job_when_it_is_placed(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t job = submit(&l, "3-999", 0);
    lab_take(&l);
    assert_int_equal(l.c.n_jobs, 1);
    assert_int_equal(l.c.n_arrays, 1);
    assert_string_equal(l.c.arrays[0].left, "3-999");
    lab_join(&l, "n1", 2);
    assert_int_equal(lab_plan(&l), 2);
    lab_take(&l);
    assert_string_equal(l.c.arrays[l.c.n_arrays - 1].left, "5-999");
    assert_int_equal(model_job(l.m, job)->row.state, JOB_PENDING);
    assert_int_equal(lab_task(&l, job, 3)->row.id, job + 1);
    assert_int_equal(lab_task(&l, job, 4)->row.array, job);
    assert_int_equal(lab_task(&l, job, 4)->row.state, JOB_RUNNING);
    struct reason r[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l.m, l.now, job, r, EXPLAIN_REASONS_MAX);
    assert_true(n > 1);
    assert_string_equal(r[0].code, "nodes-busy"); /* its progress is not a reason */
    assert_string_equal(
        r[n - 1].text, "995 of its tasks have not begun, 2 have begun and not ended");
    lab_deinit(&l);
}

static void no_more_tasks_run_than_the_limit(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 8);
    int64_t job = submit(&l, "0-9", 3), other = lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 4);
    assert_non_null(job_attempt(model_job(l.m, other)));
    assert_int_equal(array_of(&l, job)->n_tasks, 3);
    assert_true(model_job(l.m, job)->is_waiting);
    struct reason r[EXPLAIN_REASONS_MAX];
    assert_true(core_explain(l.m, l.now, job, r, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(r[0].code, "array-limit");
    end_task(&l, job, 1, END_SUCCEEDED, 0);
    assert_int_equal(lab_plan(&l), 1);
    assert_non_null(lab_task(&l, job, 3));
    end_task(&l, job, 0, END_RECLAIMED, 0); /* requeued: it is still one of the three */
    assert_int_equal(lab_plan(&l), 1);
    assert_null(lab_task(&l, job, 4));
    lab_deinit(&l);
}

static void the_whole_ends_with_its_last_task(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct lab l;
        lab_init(&l);
        lab_join(&l, "n1", 8);
        int64_t job = submit(&l, "0-2", 0);
        struct depend_ask ask = {.kind = DEPEND_AFTEROK, .on = job};
        struct job_row r = lab_job(1);
        const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
        int64_t next = lab_apply(
            &l, (struct event){.type = EV_SUBMIT,
                    .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = 1}});
        lab_plan(&l);
        assert_int_equal(model_job(l.m, job)->row.state, JOB_UNFOLDED);
        end_task(&l, job, 2, END_SUCCEEDED, 0);
        end_task(&l, job, 0, fails ? END_FAILED : END_SUCCEEDED, fails ? 7 : 0);
        end_task(&l, job, 1, END_SUCCEEDED, 0);
        assert_null(model_job(l.m, job));
        lab_take(&l);
        assert_int_equal(lab_row(&l, job)->end, fails ? END_FAILED : END_SUCCEEDED);
        assert_int_equal(lab_row(&l, job)->exit_code, fails ? 7 : 0);
        assert_string_equal(lab_history(&l, "ended")->text,
            fails ? "2 of its tasks succeeded, 1 did not" : "3 of its tasks succeeded, 0 did not");
        lab_plan(&l);
        assert_int_equal(model_job(l.m, next) != NULL, !fails);
        lab_deinit(&l);
    }
}

static int64_t after_task(struct lab *l, enum depend_kind kind, int64_t job, int32_t index)
{
    struct depend_ask ask = {.kind = kind, .on = job, .of_task = true, .task = index};
    struct job_row r = lab_job(1);
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = 1}});
}

static int try_after_task(struct lab *l, struct depend_ask ask)
{
    struct job_row r = lab_job(1);
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct event ev = {
        .type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = 1}};
    int64_t id;
    return lab_try(l, &ev, &id);
}

static bool is_queued(const struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    return j && tree_has(&j->in_shape);
}

static void a_job_waits_for_one_task(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t job = submit(&l, "0-5", 2);
    int64_t ok = after_task(&l, DEPEND_AFTEROK, job, 1),
            not_ok = after_task(&l, DEPEND_AFTERNOTOK, job, 1),
            any = after_task(&l, DEPEND_AFTERANY, job, 4),
            begun = after_task(&l, DEPEND_AFTER, job, 5),
            dropped = after_task(&l, DEPEND_AFTEROK, job, 5);
    struct reason r[EXPLAIN_REASONS_MAX];
    char text[128];
    core_explain(l.m, l.now, ok, r, EXPLAIN_REASONS_MAX);
    snprintf(text, sizeof(text),
        "afterok:%" PRId64 "_1: that task of job %" PRId64 " '%s' has not run yet", job, job,
        model_job(l.m, job)->row.spec.name);
    assert_string_equal(r[0].text, text);
    lab_plan(&l); /* 0 and 1 begin */
    assert_false(is_queued(&l, ok));
    lab_take(&l);
    shelf_put(&s, &l.c);
    model_destroy(l.m);
    l.m = shelf_load(&s, l.now);
    planner_destroy(l.p);
    l.p = planner_create();
    end_task(&l, job, 0, END_FAILED, 3); /* a second one */
    assert_false(is_queued(&l, ok) || is_queued(&l, not_ok));
    end_task(&l, job, 1, END_SUCCEEDED, 0);
    assert_true(is_queued(&l, ok));
    const struct ranges last = {1, {{4, 5, 1}}};
    lab_apply(
        &l, (struct event){.type = EV_CANCEL, .cancel = {.job = job, .by = "ann", .tasks = &last}});
    assert_true(is_queued(&l, any) && is_queued(&l, begun)); /* it ended before it began */
    lab_plan(&l);
    assert_null(model_job(l.m, not_ok));
    assert_null(model_job(l.m, dropped));
    lab_take(&l);
    snprintf(text, sizeof(text), "dependency: afterok:%" PRId64 "_5 can never be satisfied", job);
    assert_string_equal(lab_history(&l, "ended")->text, text);
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void tasks_of_an_array_that_can_never_begin_have_ended(void **state)
{
    (void)state;
    struct lab l;
    struct ranges set;
    struct job_row r = lab_job(1);
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t first = lab_submit_cpus(&l, 1);
    const struct depend_ask ask = {.kind = DEPEND_AFTEROK, .on = first};
    assert_int_equal(ranges_parse("0-3", &set, &l.e), 0);
    int64_t array = lab_apply(
        &l, (struct event){.type = EV_SUBMIT,
                .submit = {
                    .job = &r, .texts = &texts, .depends = &ask, .n_depends = 1, .tasks = &set}});
    int64_t ok = after_task(&l, DEPEND_AFTEROK, array, 2),
            any = after_task(&l, DEPEND_AFTERANY, array, 2);
    lab_cancel(&l, first, NULL);
    lab_plan(&l);
    assert_null(model_job(l.m, array));
    assert_null(model_job(l.m, ok));
    assert_int_equal(model_job(l.m, any)->row.state, JOB_RUNNING);
    lab_deinit(&l);
}

static void dependencies_on_missing_or_ended_tasks_are_decided_at_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 1);
    int64_t job = submit(&l, "0-3", 1), other = lab_submit_cpus(&l, 64);
    const struct depend_ask ask = {.kind = DEPEND_AFTEROK, .on = job, .of_task = true, .task = 7};
    assert_int_equal(try_after_task(&l, ask), ERR_NOT_FOUND);
    assert_non_null(strstr(l.e.text, "there is no task 7 of job"));
    struct depend_ask bad = ask;
    bad.on = other;
    assert_int_equal(try_after_task(&l, bad), ERR_NOT_FOUND);
    assert_non_null(strstr(l.e.text, "is not an array"));
    bad.on = 99;
    assert_int_equal(try_after_task(&l, bad), ERR_NOT_FOUND);
    bad.kind = DEPEND_SINGLETON;
    bad.on = CORE_ID_NONE;
    assert_int_equal(try_after_task(&l, bad), ERR_INVALID);
    lab_plan(&l);
    /* in this tick: the model still has it among the changes */
    end_task(&l, job, 0, END_FAILED, 3);
    struct depend_ask gone = ask;
    gone.task = 0;
    assert_int_equal(try_after_task(&l, gone), ERR_CONFLICT);
    assert_non_null(strstr(l.e.text, "_0 can never be satisfied: that task of job"));
    lab_take(&l); /* now the submitter has read it */
    gone.has_ended = true;
    gone.end = END_SUCCEEDED;
    assert_int_equal(try_after_task(&l, gone), 0);
    gone.end = END_FAILED;
    assert_int_equal(try_after_task(&l, gone), ERR_CONFLICT);
    const struct ranges third = {1, {{3, 3, 1}}};
    lab_apply(&l,
        (struct event){.type = EV_CANCEL, .cancel = {.job = job, .by = "ann", .tasks = &third}});
    gone = ask;
    gone.task = 3; /* it left no row */
    assert_int_equal(try_after_task(&l, gone), ERR_CONFLICT);
    gone.kind = DEPEND_AFTERNOTOK;
    assert_int_equal(try_after_task(&l, gone), 0);
    lab_deinit(&l);
}

static void some_or_all_tasks_are_cancelled(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 3);
    int64_t job = submit(&l, "0-9", 0);
    lab_plan(&l);
    struct ranges missing = {1, {{5, 12, 1}}}, ended = {1, {{5, 7, 1}}};
    struct event wrong = {.type = EV_CANCEL, .cancel = {.job = job, .tasks = &missing}};
    assert_int_equal(lab_try(&l, &wrong, NULL), ERR_NOT_FOUND);
    assert_string_equal(l.e.text, "array 1 has no task 10: its tasks are 0-9");
    lab_cancel(&l, job, "2,5-7");
    wrong.cancel.tasks = &ended;
    assert_int_equal(lab_try(&l, &wrong, NULL), ERR_CONFLICT);
    assert_string_equal(l.e.text, "these tasks of array 1 have ended: there is nothing to cancel");
    assert_int_equal(lab_task(&l, job, 2)->row.state, JOB_CANCELLING);
    assert_int_equal(lab_task(&l, job, 1)->row.state, JOB_RUNNING);
    lab_take(&l);
    assert_string_equal(l.c.arrays[l.c.n_arrays - 1].left, "3-4,8-9");
    end_task(&l, job, 0, END_RECLAIMED, 0); /* in the queue by itself */
    lab_cancel(&l, job, NULL);
    assert_null(lab_task(&l, job, 0));
    assert_int_equal(model_job(l.m, job)->row.state, JOB_UNFOLDED);
    end_task(&l, job, 1, END_FAILED, 143);
    end_task(&l, job, 2, END_FAILED, 143);
    assert_null(model_job(l.m, job));
    lab_take(&l);
    assert_int_equal(lab_row(&l, job)->end, END_CANCELLED);

    int64_t second = submit(&l, "0-9", 0);
    lab_cancel(&l, second, NULL); /* none has begun */
    assert_null(model_job(l.m, second));
    struct event ev = {
        .type = EV_CANCEL, .cancel = {.job = lab_submit_cpus(&l, 1), .tasks = &(struct ranges){0}}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void machines_are_launched_for_all_tasks_that_may_run(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 100, "c4", 4);
    submit(&l, "0-15", 0);
    assert_int_equal(lab_plan(&l), 4);
    submit(&l, "0-99", 8);
    assert_int_equal(lab_plan(&l), 2);
    lab_deinit(&l);
}

static void arrays_are_held_requeued_and_wait_like_any_job(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t job = submit(&l, "0-9", 0);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = job, .by = "ann"}});
    end_task(&l, job, 0, END_SUCCEEDED, 0);
    assert_int_equal(lab_plan(&l), 0);
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = job, .by = "ann"}});
    assert_int_equal(lab_plan(&l), 1);
    lab_started(&l, lab_task(&l, job, 1)->row.id);
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {.job = job, .by = "ann"}});
    assert_true(wall_is_set(job_attempt(lab_task(&l, job, 1))->row.requeue_asked_at));
    lab_saved(&l, lab_task(&l, job, 1)->row.id, 1, 1);
    assert_int_equal(job_attempt(lab_task(&l, job, 1))->row.state, ATTEMPT_STOPPING);
    lab_deinit(&l);
}

static void an_array_is_whole_again_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 8);
    int64_t limited = submit(&l, "0-9", 2), unfolded = submit(&l, "0-1", 0);
    lab_plan(&l);
    lab_take(&l);
    shelf_put(&s, &l.c);
    model_destroy(l.m);
    l.m = shelf_load(&s, l.now);
    assert_int_equal(array_of(&l, limited)->n_tasks, 2);
    assert_int_equal(ranges_count(&array_of(&l, limited)->left), 8);
    assert_int_equal(model_job(l.m, unfolded)->row.state, JOB_UNFOLDED);
    assert_int_equal(lab_plan(&l), 0);
    end_task(&l, limited, 0, END_SUCCEEDED, 0);
    assert_int_equal(lab_plan(&l), 1);
    shelf_deinit(&s);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_becomes_a_job_when_it_is_placed),
        cmocka_unit_test(no_more_tasks_run_than_the_limit),
        cmocka_unit_test(the_whole_ends_with_its_last_task),
        cmocka_unit_test(a_job_waits_for_one_task),
        cmocka_unit_test(tasks_of_an_array_that_can_never_begin_have_ended),
        cmocka_unit_test(dependencies_on_missing_or_ended_tasks_are_decided_at_once),
        cmocka_unit_test(some_or_all_tasks_are_cancelled),
        cmocka_unit_test(machines_are_launched_for_all_tasks_that_may_run),
        cmocka_unit_test(arrays_are_held_requeued_and_wait_like_any_job),
        cmocka_unit_test(an_array_is_whole_again_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
