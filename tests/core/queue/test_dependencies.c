/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that are not eligible: held, before their begin time, or with open dependencies.
 */
#include "tests/core/shelf.h"

#include "base/str.h"
#include "scheduler/core/queue/dependencies.h"
#include <inttypes.h>
#include <string.h>

static int try_after(
    struct lab *l, struct job_row r, const struct depend_ask *asks, size_t n, int64_t *ret_id)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct event ev = {
        .type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts, .depends = asks, .n_depends = n}};
    return lab_try(l, &ev, ret_id);
}

static int64_t after(struct lab *l, enum depend_kind kind, int64_t on)
{
    struct depend_ask ask = {.kind = kind, .on = on};
    int64_t id = 0;
    if (try_after(l, lab_job(1), &ask, 1, &id) != 0)
        fail_msg("%s:%" PRId64 ": %s", depend_kind_names[kind], on, l->e.text);
    return id;
}

static bool is_queued(const struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    return j && tree_has(&j->in_shape);
}

static bool is_waiting(const struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    return j && j->is_waiting;
}

static void run_to(struct lab *l, int64_t job, enum end_kind end)
{
    lab_plan(l);
    lab_started(l, job);
    lab_ended(l, job, end, end == END_FAILED ? 3 : 0);
    lab_plan(l);
}

static void hold(struct lab *l, enum event_type type, int64_t job, bool by_operator)
{
    lab_apply(l, (struct event){
                     .type = type, .hold = {.job = job, .by = "ann", .by_operator = by_operator}});
}

static bool has_reason(const struct lab *l, int64_t job, const char *code, const char *part)
{
    struct reason r[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l->m, l->now, job, r, EXPLAIN_REASONS_MAX);
    for (size_t k = 0; k < n; k++)
        if (str_eq(r[k].code, code) && strstr(r[k].text, part))
            return true;
    return false;
}

static void a_held_job_is_not_started_until_it_is_released(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    struct job_row r = lab_job(1);
    r.hold = HOLD_USER;
    int64_t born = lab_submit(&l, &r), other = lab_submit_cpus(&l, 1);
    hold(&l, EV_HOLD, other, false);
    hold(&l, EV_HOLD, other, false);
    assert_int_equal(lab_plan(&l), 0);
    assert_true(has_reason(&l, born, "held", "belay release 1"));
    lab_wait(&l, 5000);
    hold(&l, EV_RELEASE, born, false);
    assert_int_equal(model_job(l.m, born)->row.eligible_at.ms, l.now.wall.ms);
    assert_int_equal(lab_plan(&l), 1);
    assert_true(job_attempt(model_job(l.m, born)) != NULL);
    hold(&l, EV_RELEASE, born, false);
    lab_deinit(&l);
}

static void an_operators_hold_is_an_operators_to_release(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t job = lab_submit_cpus(&l, 1);
    hold(&l, EV_HOLD, job, false);
    hold(&l, EV_HOLD, job, true);
    struct event ev = {.type = EV_RELEASE, .release = {.job = job, .by = "ann"}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_DENIED);
    hold(&l, EV_HOLD, job, false); /* does not weaken it */
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_DENIED);
    hold(&l, EV_RELEASE, job, true);
    assert_true(is_queued(&l, job));
    lab_deinit(&l);
}

static void a_running_job_that_is_held_goes_on_and_is_not_started_again(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t job = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, job);
    hold(&l, EV_HOLD, job, false);
    assert_int_equal(model_job(l.m, job)->row.state, JOB_RUNNING);
    lab_ended(&l, job, END_RECLAIMED, 0);
    assert_int_equal(lab_plan(&l), 0);
    assert_true(is_waiting(&l, job));
    hold(&l, EV_RELEASE, job, false);
    assert_int_equal(lab_plan(&l), 1);
    lab_deinit(&l);
}

static void a_job_begins_at_its_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    struct job_row r = lab_job(1);
    r.spec.begin_at.ms = l.now.wall.ms + 60000;
    int64_t job = lab_submit(&l, &r);
    assert_int_equal(lab_plan(&l), 0);
    lab_check_wake(&l);
    assert_true(has_reason(&l, job, "begin", "1m"));
    lab_wait(&l, 59999);
    lab_heartbeats(&l);
    assert_int_equal(lab_plan(&l), 0);
    lab_wait(&l, 1);
    assert_int_equal(lab_plan(&l), 2); /* it is eligible and placed */
    assert_true(job_attempt(model_job(l.m, job)) != NULL);
    lab_deinit(&l);
}

static void each_kind_waits_for_its_end(void **state)
{
    (void)state;
    static const struct {
        enum depend_kind kind;
        enum end_kind end;
        bool runs;
    } all[] = {{DEPEND_AFTEROK, END_SUCCEEDED, true}, {DEPEND_AFTEROK, END_FAILED, false},
        {DEPEND_AFTERNOTOK, END_SUCCEEDED, false}, {DEPEND_AFTERNOTOK, END_FAILED, true},
        {DEPEND_AFTERANY, END_SUCCEEDED, true}, {DEPEND_AFTERANY, END_FAILED, true},
        {DEPEND_AFTERANY, END_TIMEOUT, true}, {DEPEND_AFTERNOTOK, END_TIMEOUT, true}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        struct lab l;
        lab_init(&l);
        lab_join(&l, "n1", 4);
        struct job_row r = lab_job(1);
        r.spec.retries.n[RETRY_FAILED] = 0;
        int64_t first = lab_submit(&l, &r), second = after(&l, all[k].kind, first);
        assert_true(is_waiting(&l, second));
        assert_true(has_reason(&l, second, "dependency", "job 1 'train' has not run yet"));
        lab_plan(&l);
        assert_true(is_waiting(&l, second));
        run_to(&l, first, all[k].end);
        assert_int_equal(model_job(l.m, second) != NULL, all[k].runs);
        lab_take(&l);
        if (!all[k].runs) {
            assert_int_equal(lab_row(&l, second)->end, END_DEPENDENCY);
            assert_non_null(strstr(lab_history(&l, "ended")->text, ":1 can never be satisfied"));
        } else {
            assert_non_null(job_attempt(model_job(l.m, second)));
        }
        lab_deinit(&l);
    }
}

static void a_chain_ends_with_its_first_link(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t job = lab_submit_cpus(&l, 1);
    for (int k = 0; k < 1000; k++)
        job = after(&l, DEPEND_AFTEROK, job);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {1, "ann"}});
    assert_int_equal(lab_plan(&l), 1000);
    assert_null(model_job(l.m, job));
    lab_deinit(&l);
}

static void after_waits_for_the_start_and_some_minutes(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t first = lab_submit_cpus(&l, 1), at_once = after(&l, DEPEND_AFTER, first), later = 0,
            too = 0;
    struct depend_ask ask = {.kind = DEPEND_AFTER, .on = first, .delay_ms = 60000};
    assert_int_equal(try_after(&l, lab_job(1), &ask, 1, &later), 0);
    lab_plan(&l);
    lab_started(&l, first);
    assert_true(is_queued(&l, at_once));
    assert_true(is_waiting(&l, later));
    lab_wait(&l, 30000);
    lab_heartbeats(&l);
    /* it runs already: 30 s are left */
    assert_int_equal(try_after(&l, lab_job(1), &ask, 1, &too), 0);
    lab_plan(&l);
    assert_true(is_waiting(&l, later) && is_waiting(&l, too));
    lab_wait(&l, 30000);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_false(is_waiting(&l, later) || is_waiting(&l, too));
    lab_deinit(&l);
}

static void all_or_any(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t a = lab_submit_cpus(&l, 1), b = lab_submit_cpus(&l, 1), all = 0, any = 0, none = 0;
    const struct depend_ask both[] = {{.kind = DEPEND_AFTEROK, .on = a},
        {.kind = DEPEND_AFTEROK, .on = b}, {.kind = DEPEND_AFTEROK, .on = b}};
    const struct depend_ask never[] = {
        {.kind = DEPEND_AFTERNOTOK, .on = a}, {.kind = DEPEND_AFTERNOTOK, .on = b}};
    struct job_row r = lab_job(1);
    assert_int_equal(try_after(&l, r, both, 3, &all), 0);
    r.spec.depends_any = true;
    assert_int_equal(try_after(&l, r, both, 2, &any), 0);
    assert_int_equal(try_after(&l, r, never, 2, &none), 0);
    lab_plan(&l);
    lab_started(&l, a);
    lab_ended(&l, a, END_SUCCEEDED, 0);
    assert_true(is_queued(&l, any));
    assert_true(is_waiting(&l, all) && is_waiting(&l, none));
    lab_started(&l, b);
    lab_ended(&l, b, END_SUCCEEDED, 0);
    assert_true(is_queued(&l, all));
    lab_plan(&l);
    assert_null(model_job(l.m, none));
    lab_deinit(&l);
}

static void what_can_never_come_true_is_refused_at_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    const struct depend_ask failed = {.kind = DEPEND_AFTEROK,
                                .on = 1,
                                .has_ended = true,
                                .end = END_FAILED},
                            unknown = {.kind = DEPEND_AFTERANY, .on = 99},
                            negative = {.kind = DEPEND_AFTER, .on = 1, .delay_ms = -1},
                            no_job = {.kind = DEPEND_AFTEROK};
    struct job_row r = lab_job(1);
    assert_int_equal(try_after(&l, r, &failed, 1, NULL), ERR_CONFLICT);
    assert_string_equal(l.e.text, "afterok:1 can never be satisfied: job 1 has ended, failed");
    assert_int_equal(try_after(&l, r, &unknown, 1, NULL), ERR_NOT_FOUND);
    assert_string_equal(l.e.text, "afterany:99: there is no job 99");
    assert_int_equal(try_after(&l, r, &negative, 1, NULL), ERR_INVALID);
    assert_int_equal(try_after(&l, r, &no_job, 1, NULL), ERR_INVALID);
    assert_int_equal(try_after(&l, r, &failed, DEPENDS_MAX + 1, NULL), ERR_INVALID);
    r.spec.depends_any = true;
    const struct depend_ask one_left[] = {
        failed, {.kind = DEPEND_AFTEROK, .on = 2, .has_ended = true, .end = END_SUCCEEDED}};
    int64_t id = 0;
    assert_int_equal(try_after(&l, r, one_left, 2, &id), 0);
    assert_true(is_queued(&l, id));
    lab_deinit(&l);
}

static void a_job_may_opt_to_wait_for_a_dependency_that_can_never_come_true(void **state)
{
    (void)state;
    struct lab l;
    struct reason why[8];
    lab_init(&l);
    lab_join(&l, "n1", 4);
    const struct depend_ask failed = {
        .kind = DEPEND_AFTEROK, .on = 99, .has_ended = true, .end = END_FAILED};
    struct job_row r = lab_job(1);
    int64_t at_once = 0, later = 0, first = lab_submit_cpus(&l, 1);
    const struct depend_ask on_first = {.kind = DEPEND_AFTERNOTOK, .on = first};
    r.spec.keep_unmeetable = true;
    assert_int_equal(try_after(&l, r, &failed, 1, &at_once), 0);
    assert_int_equal(try_after(&l, r, &on_first, 1, &later), 0);
    lab_plan(&l);
    lab_started(&l, first);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(is_waiting(&l, at_once) && is_waiting(&l, later));
    assert_true(core_explain(l.m, l.now, later, why, 8) > 0);
    assert_string_equal(why[0].code, "dependency-never");
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = later, .by = "ann"}});
    assert_null(model_job(l.m, later));
    lab_deinit(&l);
}

/* The submitter reads from disk, where it has not ended yet. */
static void a_job_that_ended_in_this_tick_is_known(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t first = lab_submit_cpus(&l, 1);
    lab_take(&l);
    lab_plan(&l);
    lab_started(&l, first);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    assert_true(is_queued(&l, after(&l, DEPEND_AFTEROK, first)));
    lab_deinit(&l);
}

static void singletons_run_one_after_the_other(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    struct job_row other = lab_job(1);
    STR_COPY(other.spec.name, "eval");
    int64_t first = lab_submit_cpus(&l, 1), second = after(&l, DEPEND_SINGLETON, CORE_ID_NONE),
            third = after(&l, DEPEND_SINGLETON, CORE_ID_NONE);
    struct depend_ask ask = {.kind = DEPEND_SINGLETON};
    int64_t eval = 0;
    assert_int_equal(try_after(&l, other, &ask, 1, &eval), 0);
    assert_true(is_queued(&l, eval));
    run_to(&l, first, END_SUCCEEDED);
    assert_non_null(job_attempt(model_job(l.m, second)));
    assert_true(is_waiting(&l, third));
    lab_started(&l, second);
    lab_ended(&l, second, END_TIMEOUT, 0);
    assert_true(is_queued(&l, third));
    lab_deinit(&l);
}

/* Any earlier one: each dependency is stored. */
static void a_users_jobs_wait_for_a_limited_number_of_others(void **state)
{
    (void)state;
    struct lab l;
    struct depend_ask ask = {.kind = DEPEND_SINGLETON};
    struct job_row r = lab_job(1);
    int64_t n = 0, sum = 0, id = 0, last = 0;
    lab_init(&l);
    lab_submit_cpus(&l, 1); /* never runs */
    r.spec.depends_any = true;
    for (; try_after(&l, r, &ask, 1, &id) == 0; last = id)
        sum += ++n;
    assert_int_equal(l.e.kind, ERR_CONFLICT);
    assert_in_range(sum, DEPENDENCIES_OF_ACCOUNT_MAX - n, DEPENDENCIES_OF_ACCOUNT_MAX);
    assert_non_null(strstr(l.e.text, "allowed"));
    STR_COPY(r.user, "somebody-else");
    assert_int_equal(try_after(&l, r, &ask, 1, &id), 0); /* does not count */
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = last});
    STR_COPY(r.user, lab_job(1).user);
    assert_int_equal(try_after(&l, r, &ask, 1, &id), 0);
    lab_deinit(&l);
}

static void dependencies_are_the_same_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    int64_t first = lab_submit_cpus(&l, 1), second = after(&l, DEPEND_AFTEROK, first),
            third = after(&l, DEPEND_AFTEROK, second);
    struct job_row r = lab_job(1);
    r.spec.begin_at.ms = l.now.wall.ms + 1000;
    int64_t timed = lab_submit(&l, &r), also = lab_submit(&l, &r);
    hold(&l, EV_HOLD, first, false);
    lab_take(&l);
    shelf_put(&s, &l.c);
    for (int k = 0; k < 2; k++) {
        model_destroy(l.m);
        lab_wait(&l, 5000);
        l.m = shelf_load(&s, l.now);
        assert_true(is_waiting(&l, first) == (k == 0) && is_waiting(&l, third));
        if (k == 0) {
            assert_true(is_waiting(&l, second) && is_waiting(&l, timed));
            lab_plan(&l);
            /* their time came while belayd was down */
            assert_true(is_queued(&l, timed) && is_queued(&l, also));
            lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {first, "ann"}});
            lab_take(&l); /* before the decision that ends the second */
            shelf_put(&s, &l.c);
        }
    }
    assert_int_equal(lab_plan(&l), 2);
    assert_null(model_job(l.m, third));
    shelf_deinit(&s);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_job_is_not_started_until_it_is_released),
        cmocka_unit_test(an_operators_hold_is_an_operators_to_release),
        cmocka_unit_test(a_running_job_that_is_held_goes_on_and_is_not_started_again),
        cmocka_unit_test(a_job_begins_at_its_time),
        cmocka_unit_test(each_kind_waits_for_its_end),
        cmocka_unit_test(a_chain_ends_with_its_first_link),
        cmocka_unit_test(after_waits_for_the_start_and_some_minutes),
        cmocka_unit_test(all_or_any),
        cmocka_unit_test(what_can_never_come_true_is_refused_at_once),
        cmocka_unit_test(a_job_may_opt_to_wait_for_a_dependency_that_can_never_come_true),
        cmocka_unit_test(a_job_that_ended_in_this_tick_is_known),
        cmocka_unit_test(singletons_run_one_after_the_other),
        cmocka_unit_test(a_users_jobs_wait_for_a_limited_number_of_others),
        cmocka_unit_test(dependencies_are_the_same_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
