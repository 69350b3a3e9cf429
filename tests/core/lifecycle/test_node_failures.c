/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes on which jobs fail at once are drained, and the jobs do not pay for it.
 */
#include "tests/core/lab.h"
#include "tests/core/shelf.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

static const struct node_failures_options options = {
    .jobs = 3, .users = 2, .within_ms = 600000, .quick_ms = 60000};

static void init(struct lab *l)
{
    lab_init_failures(l, &options);
}

static int64_t submit(struct lab *l, const char *user, int32_t retries)
{
    struct job_row r = lab_job(4);
    STR_COPY(r.user, user);
    r.spec.retries.n[RETRY_FAILED] = retries;
    r.spec.retries.n[RETRY_DRAINED] = RETRIES_UNLIMITED;
    return lab_submit(l, &r);
}

/* Starts on the only free node and ends after ms. */
static void run(struct lab *l, int64_t job, int64_t ms, enum end_kind end)
{
    lab_plan(l);
    assert_true(lab_runs(l, job));
    lab_started(l, job);
    lab_wait(l, ms);
    lab_heartbeats(l);
    lab_ended(l, job, end, end == END_FAILED ? 1 : 0);
}

static int64_t fail_one(struct lab *l, const char *user)
{
    int64_t job = submit(l, user, 0);
    run(l, job, 1000, END_FAILED);
    return job;
}

static bool is_drained(const struct lab *l, int64_t node)
{
    return model_node(l->m, node)->row.drain;
}

static void a_node_that_fails_all_jobs_is_drained(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    fail_one(&l, "ann");
    int64_t again = submit(&l, "bob", 1);
    run(&l, again, 1000, END_FAILED);
    assert_int_equal(model_job(l.m, again)->row.used[RETRY_FAILED], 1);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = again, .by = "bob"}});
    assert_false(is_drained(&l, node));
    int64_t last = submit(&l, "ann", 0);
    lab_take(&l);
    run(&l, last, 1000, END_FAILED);
    lab_take(&l);
    assert_true(is_drained(&l, node));
    assert_string_equal(lab_history(&l, "auto-drain")->text,
        "n1 is being emptied: 3 jobs of 2 users failed there at once: jobs 1, 2, 3");
    assert_string_equal(model_node(l.m, node)->row.drain_text,
        "3 jobs of 2 users failed there at once: jobs 1, 2, 3");
    assert_int_equal(l.c.n_outbox, 1);
    const struct outbox_row *row = &l.c.outbox[0];
    assert_int_equal(row->kind, NOTIFY_NODE_DRAINED);
    assert_string_equal(row->target, "hook:ops");
    assert_string_equal(row->node, "n1");
    assert_string_equal(row->pool, "base");
    assert_string_equal(row->jobs, "1,2,3");
    assert_string_equal(row->text, model_node(l.m, node)->row.drain_text);
    assert_int_equal(row->pct, 0); /* there is no machine to end */
    const struct job *j = model_job(l.m, last);
    assert_non_null(j); /* although it has no retry */
    assert_int_equal(j->row.state, JOB_PENDING);
    assert_int_equal(j->row.end, END_DRAINED);
    assert_int_equal(j->row.used[RETRY_FAILED] + j->row.used[RETRY_DRAINED], 0);
    assert_int_equal(model_job(l.m, again)->row.used[RETRY_FAILED], 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, last), CORE_ID_NONE);
    assert_true(lab_has_reason(&l, last, "nodes-draining", "n1 (3 jobs of 2 users failed"));
    int64_t other = lab_join(&l, "n2", 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, last), other);
    lab_deinit(&l);
}

static void what_else_runs_there_saves_and_moves(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 8), other = submit(&l, "cho", 0);
    lab_plan(&l);
    lab_started(&l, other);
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    fail_one(&l, "ann");
    assert_true(is_drained(&l, node));
    const struct attempt *a = job_attempt(model_job(l.m, other));
    assert_int_equal(a->row.state, ATTEMPT_STOPPING);
    assert_int_equal(a->row.stop_reason, END_DRAINED);
    assert_true(a->row.save_first);
    lab_deinit(&l);
}

static void a_restart_forgets_no_failure(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {.failing = &options};
    init(&l);
    int64_t node = lab_join(&l, "n1", 4), other = lab_join(&l, "n2", 1);
    int64_t first = submit(&l, "ann", 2);
    run(&l, first, 1000, END_FAILED);
    shelf_restart(&s, &l);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = first, .by = "ann"}});
    fail_one(&l, "bob");
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, 2);
    assert_int_equal(model_job(l.m, first)->row.used[RETRY_FAILED], 1);
    assert_false(is_drained(&l, node));
    fail_one(&l, "ann");
    assert_true(is_drained(&l, node));
    assert_int_equal(model_job(l.m, first)->row.used[RETRY_FAILED], 0);
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, 0); /* the count is over */
    assert_true(is_drained(&l, node));
    assert_false(is_drained(&l, other));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void what_is_over_is_stored_no_more(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {.failing = &options};
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    for (int k = 0; k < NODE_FAILURES_MAX + 2; k++)
        fail_one(&l, "ann");
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, NODE_FAILURES_MAX);
    lab_wait(&l, 600001);
    lab_heartbeats(&l);
    fail_one(&l, "ann"); /* the others are too long ago */
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, 1);
    run(&l, submit(&l, "cho", 0), 1000, END_SUCCEEDED);
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, 0);
    fail_one(&l, "ann");
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete = {.node = node}});
    shelf_restart(&s, &l);
    assert_int_equal(s.n_node_failures, 0);
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void contradictory_failures_are_refused(void **state)
{
    (void)state;
    struct lab l;
    struct err e;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    const struct node_failure_row good = {
        .node = node, .of = 7, .job = 7, .user = "ann", .at = {1000}};
    struct node_failure_row bad[] = {good, good, good, good, good, good, good};
    bad[0].node = 99;
    bad[1].place = 1;
    bad[2].of = 0;
    bad[3].job = 0;
    bad[4].retries = -1;
    bad[5].user[0] = '\0';
    bad[6].at = WALL_NONE;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        assert_int_equal(model_load_node_failure(l.m, &bad[k], &e), ERR_CORRUPT);
        assert_non_null(strstr(e.text, "contradicts other rows"));
    }
    assert_int_equal(model_load_node_failure(l.m, &good, &e), 0);
    assert_int_equal(model_load_node_failure(l.m, &good, &e), ERR_CORRUPT); /* twice */
    lab_deinit(&l);
}

static void the_jobs_of_one_user_drain_nothing(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    for (int k = 0; k < 2 * NODE_FAILURES_MAX; k++)
        fail_one(&l, "ann");
    assert_false(is_drained(&l, node));
    fail_one(&l, "bob");
    assert_true(is_drained(&l, node));
    lab_deinit(&l);
}

static void one_job_that_fails_again_and_again_counts_once(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    fail_one(&l, "ann");
    int64_t job = submit(&l, "bob", 5);
    for (int k = 0; k < 4; k++) {
        run(&l, job, 1000, END_FAILED);
        lab_wait(&l, 60000);
        lab_heartbeats(&l);
    }
    assert_false(is_drained(&l, node));
    assert_int_equal(model_job(l.m, job)->row.used[RETRY_FAILED], 4);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = job, .by = "bob"}});
    fail_one(&l, "ann");
    assert_true(is_drained(&l, node));
    assert_int_equal(model_job(l.m, job)->row.used[RETRY_FAILED], 0);
    lab_deinit(&l);
}

static void tasks_of_an_array_count_once_and_are_named_by_it(void **state)
{
    (void)state;
    struct lab l;
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct job_row r = lab_job(4);
    struct ranges set;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    r.spec.retries.n[RETRY_FAILED] = 0;
    assert_int_equal(ranges_parse("5-8", &set, &l.e), 0);
    int64_t array = lab_apply(&l,
        (struct event){.type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts, .tasks = &set}});
    for (int k = 5; k <= 8; k++) {
        lab_plan(&l);
        int64_t task = lab_task(&l, array, k)->row.id;
        lab_started(&l, task);
        lab_ended(&l, task, END_FAILED, 1);
    }
    assert_false(is_drained(&l, node)); /* one faulty script */
    int64_t second = fail_one(&l, "bob"), third = fail_one(&l, "cho");
    char expected[128];
    snprintf(expected, sizeof expected, "3 jobs of 3 users failed there at once: jobs %d, %d, %d",
        (int)array, (int)second, (int)third);
    assert_string_equal(model_node(l.m, node)->row.drain_text, expected);
    lab_deinit(&l);
}

static void a_node_on_which_something_works_is_not_drained(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    run(&l, submit(&l, "cho", 0), 1000, END_SUCCEEDED);
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    run(&l, submit(&l, "cho", 0), 60000, END_FAILED); /* but it ran */
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    lab_wait(&l, 600001);
    lab_heartbeats(&l);
    fail_one(&l, "cho"); /* the others are too long ago */
    assert_false(is_drained(&l, node));
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    assert_true(is_drained(&l, node));
    lab_deinit(&l);
}

/* The agent refuses the job before it begins. */
static void refuse_user(struct lab *l, const char *user)
{
    int64_t job = submit(l, user, 0);
    lab_plan(l);
    assert_true(lab_runs(l, job));
    lab_apply(l, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = job,
                         .attempt = 1,
                         .node = lab_node_of(l, job),
                         .end = END_FAILED,
                         .exit_code = 126,
                         .user_refused = true}});
    lab_take(l);
    assert_int_equal(lab_row(l, job)->end, END_FAILED);
}

static void users_without_an_account_there_drain_nothing(void **state)
{
    (void)state;
    static const char *const users[] = {"ann", "bob", "cho", "dee"};
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    for (size_t k = 0; k < sizeof users / sizeof users[0]; k++)
        refuse_user(&l, users[k]);
    assert_false(is_drained(&l, node));
    fail_one(&l, "cho"); /* the refusals between neither count nor show that the node works */
    assert_true(is_drained(&l, node));
    lab_deinit(&l);
}

static void most_of_a_pool_is_never_drained(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t first = lab_join(&l, "n1", 4), second;
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    int64_t last = fail_one(&l, "cho");
    assert_true(is_drained(&l, first));
    lab_cancel(&l, last, NULL);
    second = lab_join(&l, "n2", 4);
    for (int k = 0; k < 3; k++) {
        fail_one(&l, "ann");
        fail_one(&l, "bob");
    }
    assert_false(is_drained(&l, second)); /* one of two already is */
    lab_apply(&l, (struct event){.type = EV_UNDRAIN, .undrain = {.node = first}});
    assert_string_equal(model_node(l.m, first)->row.drain_text, "");
    lab_deinit(&l);
}

static void a_job_that_must_not_run_twice_ends(void **state)
{
    (void)state;
    struct lab l;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    fail_one(&l, "ann");
    fail_one(&l, "bob");
    struct job_row r = lab_job(4);
    for (int k = 0; k < RETRY_KINDS; k++)
        r.spec.retries.n[k] = RETRIES_NEVER;
    int64_t job = lab_submit(&l, &r);
    run(&l, job, 1000, END_FAILED);
    lab_take(&l);
    assert_true(is_drained(&l, node));
    assert_null(model_job(l.m, job));
    assert_int_equal(lab_row(&l, job)->end, END_FAILED);
    lab_deinit(&l);
}

static void nothing_is_drained_unless_configured(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    for (int k = 0; k < 10; k++)
        fail_one(&l, k % 2 ? "ann" : "bob");
    assert_false(is_drained(&l, node));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_fails_all_jobs_is_drained),
        cmocka_unit_test(what_else_runs_there_saves_and_moves),
        cmocka_unit_test(a_restart_forgets_no_failure),
        cmocka_unit_test(what_is_over_is_stored_no_more),
        cmocka_unit_test(contradictory_failures_are_refused),
        cmocka_unit_test(the_jobs_of_one_user_drain_nothing),
        cmocka_unit_test(one_job_that_fails_again_and_again_counts_once),
        cmocka_unit_test(tasks_of_an_array_count_once_and_are_named_by_it),
        cmocka_unit_test(a_node_on_which_something_works_is_not_drained),
        cmocka_unit_test(users_without_an_account_there_drain_nothing),
        cmocka_unit_test(most_of_a_pool_is_never_drained),
        cmocka_unit_test(a_job_that_must_not_run_twice_ends),
        cmocka_unit_test(nothing_is_drained_unless_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
