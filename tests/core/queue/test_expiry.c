/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a deadline: waiting ones end when they could no longer meet it, running ones continue.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/queue/expiry.h"

#define MINUTE_MS 60000LL

static struct job_row job_by(const struct lab *l, int64_t limit_ms, int64_t in_ms)
{
    struct job_row r = lab_job(1);
    r.spec.begin_at = WALL_NONE;
    r.spec.time_limit_ms = limit_ms;
    r.spec.deadline_ms = l->now.wall.ms + in_ms;
    return r;
}

/* A heartbeat of the node. */
static void beat(struct lab *l, int64_t node)
{
    lab_apply(l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    lab_plan(l);
}

static void a_job_that_waits_too_long_ends(void **state)
{
    (void)state;
    struct lab l;
    struct reason why[16];
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 1);
    struct job_row r = job_by(&l, 10 * MINUTE_MS, 15 * MINUTE_MS),
                   without = job_by(&l, 0, 15 * MINUTE_MS);
    int64_t runs = lab_submit(&l, &r), waits = lab_submit(&l, &r),
            no_limit = lab_submit(&l, &without);
    lab_plan(&l);
    lab_started(&l, runs);
    size_t n = core_explain(l.m, l.now, waits, why, 16);
    assert_string_equal(why[n - 1].code, "deadline");
    assert_string_equal(why[n - 1].text,
        "it is given up if it does not start within 5m00s: with its "
        "time limit it could not end by its deadline");
    lab_wait(&l, 5 * MINUTE_MS);
    beat(&l, node);
    assert_non_null(model_job(l.m, waits)); /* it could still start now */
    lab_wait(&l, 1);
    lab_plan(&l);
    assert_null(model_job(l.m, waits));
    lab_take(&l);
    assert_int_equal(lab_row(&l, waits)->end, END_DEADLINE);
    assert_non_null(model_job(l.m, no_limit));
    lab_wait(&l, 10 * MINUTE_MS);
    beat(&l, node);
    lab_take(&l);
    assert_int_equal(lab_row(&l, no_limit)->end, END_DEADLINE);
    assert_non_null(job_attempt(model_job(l.m, runs)));
    /* when it would be requeued, it ends */
    lab_ended(&l, runs, END_NODE_LOST, 0);
    lab_plan(&l);
    lab_take(&l);
    assert_int_equal(lab_row(&l, runs)->end, END_DEADLINE);
    lab_deinit(&l);
}

static void of_an_array_only_tasks_that_have_not_begun_expire(void **state)
{
    (void)state;
    struct lab l;
    struct ranges tasks;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 2);
    struct job_row r = job_by(&l, MINUTE_MS, 3 * MINUTE_MS);
    assert_int_equal(ranges_parse("0-9", &tasks, &l.e), 0);
    int64_t array =
        lab_apply(&l, (struct event){.type = EV_SUBMIT, .submit = {.job = &r, .tasks = &tasks}});
    struct depend_ask ask = {.kind = DEPEND_AFTERANY, .on = array, .of_task = true, .task = 9};
    struct job_row next = lab_job(1);
    int64_t after = lab_apply(&l, (struct event){.type = EV_SUBMIT,
                                      .submit = {.job = &next, .depends = &ask, .n_depends = 1}});
    lab_plan(&l);
    const struct job *j = model_job(l.m, array);
    assert_int_equal(j->array->n_tasks, 2);
    lab_wait(&l, 2 * MINUTE_MS + 1);
    beat(&l, node);
    assert_int_equal(j->row.state, JOB_UNFOLDED);
    assert_int_equal(j->array->row.n_other, 8);
    assert_false(model_job(l.m, after)->is_waiting); /* the last task will never begin */
    int64_t last = LIST_ENTRY(list_last(&j->array->tasks), struct job_side, in_array)->job->row.id,
            first =
                LIST_ENTRY(list_first(&j->array->tasks), struct job_side, in_array)->job->row.id;
    for (int64_t task = first; task <= last; task += last - first) {
        lab_started(&l, task);
        lab_ended(&l, task, END_SUCCEEDED, 0);
    }
    assert_null(model_job(l.m, array));
    lab_take(&l);
    assert_int_equal(lab_row(&l, array)->end, END_DEADLINE);
    lab_deinit(&l);
}

static void what_could_never_be_in_time_is_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row r = job_by(&l, 10 * MINUTE_MS, 10 * MINUTE_MS - 1), over = job_by(&l, 0, -1),
                   late = job_by(&l, 5 * MINUTE_MS, 10 * MINUTE_MS);
    lab_refused(&l, &r, "with a time limit of 10m00s it cannot end by its deadline, in 9m59s");
    lab_refused(&l, &over, "its deadline has passed");
    late.spec.begin_at.ms = l.now.wall.ms + 6 * MINUTE_MS;
    lab_refused(&l, &late, "with a time limit of 5m00s and its begin time it cannot");
    r.spec.deadline_ms++;
    lab_submit(&l, &r);
    lab_deinit(&l);
}

static void a_held_job_expires_too(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row r = job_by(&l, MINUTE_MS, 3 * MINUTE_MS);
    r.hold = HOLD_USER;
    int64_t held = lab_submit(&l, &r);
    struct event unused;
    assert_int_equal(expiry_due(l.m, l.now, &unused).ms, l.now.mono.ms + 2 * MINUTE_MS + 1);
    lab_wait(&l, 3 * MINUTE_MS);
    lab_plan(&l);
    lab_take(&l);
    assert_int_equal(lab_row(&l, held)->end, END_DEADLINE);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_job_that_waits_too_long_ends),
        cmocka_unit_test(of_an_array_only_tasks_that_have_not_begun_expire),
        cmocka_unit_test(what_could_never_be_in_time_is_refused),
        cmocka_unit_test(a_held_job_expires_too)};
    return cmocka_run_group_tests_name("deadlines", tests, NULL, NULL);
}
