/* SPDX-License-Identifier: Apache-2.0
 *
 * Complete lives of jobs and machines, from submit to end.
 */
#include "tests/core/lab.h"

static void a_job_runs_on_an_owned_node_and_succeeds(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 2);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, job), node);
    lab_wait(&l, 1000);
    lab_started(&l, job);
    lab_wait(&l, 3600000);
    lab_take(&l);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    assert_null(model_job(l.m, job));
    lab_take(&l);
    const struct job_row *r = lab_row(&l, job);
    assert_int_equal(r->state, JOB_ENDED);
    assert_int_equal(r->end, END_SUCCEEDED);
    /* half of the node, $0.50/h, for an hour and a second */
    assert_int_equal(r->cost_uusd, 250069);
    lab_deinit(&l);
}

static void a_reclaimed_job_resumes_on_another_spot_machine(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 1); /* one launch */
    lab_launched(&l, 1);
    lab_wait(&l, 60000);
    int64_t node = lab_join_instance(&l, 1, 4);
    assert_int_equal(lab_plan(&l), 1); /* placed */
    lab_started(&l, job);
    lab_wait(&l, 20000);
    lab_heartbeats(&l);
    lab_notice(&l, node, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 1); /* the replacement, before the job is requeued */
    lab_saved(&l, job, 1, 1200);
    lab_ended(&l, job, END_RECLAIMED, 85);
    assert_int_equal(model_job(l.m, job)->row.state, JOB_PENDING);
    lab_launched(&l, 2);
    assert_int_equal(lab_plan(&l), 0);
    lab_wait(&l, 5000);                /* for the last of its output */
    assert_int_equal(lab_plan(&l), 1); /* the empty machine under notice is ended */
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    int64_t second = lab_join_instance(&l, 2, 4);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, job), second);
    lab_take(&l);
    lab_started(&l, job);
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "started")->text, "resumed at step 1200 from checkpoint 1.1");
    lab_wait(&l, 10000);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_row(&l, job)->reclaims, 1);
    assert_int_equal(lab_row(&l, job)->lost_steps, 0);
    lab_deinit(&l);
}

/* Ticks with many rows reuse the memory of earlier ones; the memory of a very large one is
 * released. */
static void rows_that_changed_have_their_memory_kept(void **state)
{
    enum { JOBS = 100, MANY = 20000 };
    struct changes c = {0};
    const void *before = NULL;
    struct lab l;
    (void)state;
    lab_init(&l);
    for (int turn = 0; turn < 3; turn++) {
        for (int k = 0; k < JOBS; k++)
            lab_submit_cpus(&l, 2);
        model_take_changes(l.m, &c);
        assert_int_equal(c.n_jobs, JOBS);
        assert_true(turn == 0 || c.jobs == before);
        before = c.jobs;
        model_return_changes(l.m, &c);
        assert_true(changes_is_empty(&c) && !c.jobs);
    }
    for (int k = 0; k < MANY; k++) { /* without the lab's checks after each */
        const struct job_row r = lab_job(2);
        assert_int_equal(
            core_apply(l.m, &(struct event){.type = EV_SUBMIT, .now = l.now, .submit.job = &r},
                NULL, &l.e),
            0);
    }
    model_take_changes(l.m, &c);
    assert_int_equal(c.n_jobs, MANY);
    assert_true(c.cap.jobs >= MANY);
    model_return_changes(l.m, &c);
    model_take_changes(l.m, &c); /* no changes: the memory is kept */
    assert_true(changes_is_empty(&c));
    assert_in_range(c.cap.jobs, 1000, MANY / 2);
    model_return_changes(l.m, &c);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_on_an_owned_node_and_succeeds),
        cmocka_unit_test(a_reclaimed_job_resumes_on_another_spot_machine),
        cmocka_unit_test(rows_that_changed_have_their_memory_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
