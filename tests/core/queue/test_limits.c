/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of users and teams: jobs that exceed one do not run, do not hold up others, and run as
 * soon as they may. lab.c checks after each placement that no limit is exceeded.
 */
#include "base/str.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/core/queue/queue.h"
#include "tests/core/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOUR_MS 3600000LL

static struct policy_limits limit(enum limit_kind kind, int64_t most)
{
    struct policy_limits l = {0};
    l.is_set[kind] = true;
    l.max[kind] = most;
    return l;
}

static struct queue_policy each(enum limit_kind kind, int64_t most)
{
    struct queue_policy o = queue_policy_defaults;
    o.each_user = limit(kind, most);
    return o;
}

static struct job_row job_of(const char *user, int32_t cpus)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.user, user);
    return r;
}

static int64_t submit(struct lab *l, const char *user, int32_t cpus)
{
    struct job_row r = job_of(user, cpus);
    return lab_submit(l, &r);
}

static int64_t join_gpus(struct lab *l, const char *name, int32_t cpus, int32_t gpus)
{
    struct node_row r = {.pool = "base", .total = {cpus, gpus, 1 << 20}};
    STR_COPY(r.name, name);
    snprintf(r.key_hash, sizeof r.key_hash, "key-%s", name);
    return lab_apply(l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
}

static int64_t n_running(const struct lab *l, const int64_t *jobs, size_t n)
{
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += model_job(l->m, jobs[k]) && lab_runs(l, jobs[k]);
    return sum;
}

static void a_user_runs_as_many_jobs_as_allowed_and_others_overtake(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_RUNNING, 2);
    int64_t anns[5];
    lab_init_for_days(&l, &o, 0);
    lab_join(&l, "a", 8);
    for (int k = 0; k < 5; k++)
        anns[k] = submit(&l, "ann", 1);
    int64_t bob = submit(&l, "bob", 1);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 5), 2);
    assert_true(lab_runs(&l, bob));
    assert_true(lab_has_reason(&l, anns[2], "max-running", "ann has 2 running jobs, of at most 2"));
    assert_ptr_equal(
        model_job(l.m, anns[2])->shape->throttled_by, &model_job(l.m, anns[2])->account->allowance);
    lab_ended(&l, anns[0], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, anns[2]));
    assert_int_equal(n_running(&l, anns, 5), 2);
    lab_check_wake(&l);
    lab_deinit(&l);
}

/* The most specific limit applies, and the team's own in addition. */
static void limits_of_user_and_team_both_hold(void **state)
{
    (void)state;
    struct policy_user users[] = {{.name = "ann", .shares = 1, .limits = limit(LIMIT_RUNNING, 3)},
        {.name = "bob", .shares = 1},
        {.name = "cho", .shares = 1, .limits = limit(LIMIT_RUNNING, LIMIT_NONE)}};
    struct policy_team red = {.name = "red",
        .shares = 1,
        .users = users,
        .n_users = 3,
        .limits = limit(LIMIT_RUNNING, 6),
        .each_user = limit(LIMIT_RUNNING, 2)};
    struct queue_policy o = each(LIMIT_RUNNING, 1);
    struct lab l;
    int64_t anns[8], bobs[8], chos[8], dees[8];
    o.teams = &red;
    o.n_teams = 1;
    assert_int_equal(policy_limit(&o, "red", "ann", LIMIT_RUNNING), 3);
    assert_int_equal(policy_limit(&o, "red", "bob", LIMIT_RUNNING), 2);
    assert_int_equal(policy_limit(&o, "red", "cho", LIMIT_RUNNING), LIMIT_NONE);
    assert_int_equal(policy_limit(&o, "dee", "dee", LIMIT_RUNNING), 1);
    assert_int_equal(policy_limit(&o, "red", NULL, LIMIT_RUNNING), 6);
    assert_int_equal(policy_limit(&o, "red", "ann", LIMIT_GPUS), LIMIT_NONE);
    lab_init_for_days(&l, &o, 0);
    lab_join(&l, "a", 64);
    for (int k = 0; k < 8; k++) {
        anns[k] = submit(&l, "ann", 1);
        bobs[k] = submit(&l, "bob", 1);
        dees[k] = submit(&l, "dee", 1);
    }
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 3);
    assert_int_equal(n_running(&l, bobs, 8), 2);
    assert_int_equal(n_running(&l, dees, 8), 1);
    for (int k = 0; k < 8; k++)
        chos[k] = submit(&l, "cho", 1);
    lab_plan(&l);
    assert_int_equal(n_running(&l, chos, 8), 1); /* the team's sixth */
    assert_true(
        lab_has_reason(&l, chos[7], "max-running", "team red has 6 running jobs, of at most 6"));
    lab_ended(&l, bobs[0], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8) + n_running(&l, bobs, 8) + n_running(&l, chos, 8), 6);
    assert_int_equal(n_running(&l, anns, 8), 3);
    lab_deinit(&l);
}

static void a_gpu_limit_lets_jobs_without_gpus_run(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_GPUS, 3);
    struct job_row two = job_of("ann", 1), one = job_of("ann", 1);
    lab_init_for_days(&l, &o, 0);
    join_gpus(&l, "a", 16, 8);
    two.spec.need.gpus = 2;
    one.spec.need.gpus = 1;
    int64_t first = lab_submit(&l, &two), second = lab_submit(&l, &two),
            third = lab_submit(&l, &one);
    int64_t without = submit(&l, "ann", 1);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && !lab_runs(&l, second) && lab_runs(&l, third) &&
                lab_runs(&l, without));
    assert_true(
        lab_has_reason(&l, second, "max-gpus", "it needs 2 GPUs; ann uses 3, of at most 3"));
    lab_ended(&l, third, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, second)); /* one is free, it needs two */
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

/* Each rank has the job's demand. */
static void a_gang_takes_the_nodes_that_its_limit_allows(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_GPUS, 5);
    struct job_row gang = job_of("ann", 1), fixed = job_of("ann", 1);
    lab_init_for_days(&l, &o, 0);
    for (int k = 0; k < 4; k++)
        join_gpus(&l, (const char *[]){"a", "b", "c", "d"}[k], 8, 4);
    gang.spec.need.gpus = fixed.spec.need.gpus = 2;
    gang.spec.nodes = 4;
    gang.spec.nodes_min = 1;
    fixed.spec.nodes = fixed.spec.nodes_min = 3;
    int64_t never = lab_submit(&l, &fixed), some = lab_submit(&l, &gang);
    lab_plan(&l);
    assert_false(lab_runs(&l, never));
    assert_true(lab_runs(&l, some));
    assert_int_equal(model_job(l.m, some)->row.ranks, 2);
    assert_true(lab_has_reason(&l, never, "max-gpus", "it needs 6 GPUs; ann uses 4, of at most 5"));
    lab_deinit(&l);
}

static void running_jobs_cost_no_more_per_hour_than_allowed(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_UUSD_H, 1200000);
    lab_init_for_days(&l, &o, 1000000);
    lab_join(&l, "a", 4);
    lab_join(&l, "b", 4);
    int64_t whole = submit(&l, "ann", 4), half = submit(&l, "ann", 2), one = submit(&l, "ann", 1);
    int64_t bobs = submit(&l, "bob", 1);
    lab_plan(&l);
    assert_true(
        lab_runs(&l, whole) && !lab_runs(&l, half) && !lab_runs(&l, one) && lab_runs(&l, bobs));
    assert_true(lab_has_reason(&l, one, "too-dear",
        "1 machine it could run on costs more than the $0.20 an hour that ann may still pay"));
    /* Machines without cost are available to all. */
    struct pool_row own = {.name = "own"};
    lab_set_pool(&l, own);
    struct node_row r = {.name = "c", .pool = "own", .key_hash = "c", .total = {1, 0, 4096}};
    lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    lab_plan(&l);
    assert_false(lab_runs(&l, half));
    assert_true(lab_runs(&l, one));
    lab_ended(&l, whole, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, half));
    lab_deinit(&l);
}

/* A rising price stops no running job, and a falling one admits others. */
static void prices_count_as_they_are_in_force(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_UUSD_H, 2000000);
    lab_init_for_days(&l, &o, 0);
    struct pool_row base = lab_pool(&l, "base");
    base.usd_per_hour_uusd = 1000000;
    lab_set_pool(&l, base);
    lab_join(&l, "a", 4);
    lab_join(&l, "b", 4);
    int64_t first = submit(&l, "ann", 4);
    lab_plan(&l);
    base.usd_per_hour_uusd = 3000000;
    lab_set_pool(&l, base);
    int64_t second = submit(&l, "ann", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && !lab_runs(&l, second));
    assert_true(lab_has_reason(&l, second, "max-usd-per-hour",
        "the running jobs of ann cost $3.00 an hour, of at most $2.00"));
    base.usd_per_hour_uusd = 1000000;
    lab_set_pool(&l, base);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

/* Machines are launched for jobs that may run, not for all that wait. */
static void no_machine_is_launched_for_jobs_beyond_a_limit(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = each(LIMIT_RUNNING, 3);
    lab_init_for_days(&l, &o, 0);
    lab_elastic(&l, "burst", 50, "m5", 4);
    for (int k = 0; k < 40; k++)
        submit(&l, "ann", 4);
    assert_int_equal(lab_plan(&l), 3);
    lab_deinit(&l);

    o = each(LIMIT_UUSD_H, 2500000); /* two and a half at the spot price */
    lab_init_for_days(&l, &o, 1000000);
    lab_elastic(&l, "burst", 50, "m5", 4);
    for (int k = 0; k < 40; k++)
        submit(&l, "ann", 4);
    assert_int_equal(lab_plan(&l), 2);
    for (int64_t i = 1; i <= 2; i++)
        lab_bring_up(&l, i, 4);
    lab_plan(&l);
    struct model_counts c;
    model_counts(l.m, &c);
    assert_int_equal(c.running, 2);
    assert_int_equal(c.instances, 2);
    lab_deinit(&l);

    o = each(LIMIT_UUSD_H, 2500000);
    lab_init_for_days(&l, &o, 1000000);
    lab_elastic(&l, "burst", 50, "m5", 4);
    struct job_row gang = job_of("ann", 4);
    gang.spec.nodes = gang.spec.nodes_min = 3;
    int64_t dear = lab_submit(&l, &gang);
    gang.spec.nodes = gang.spec.nodes_min = 2;
    lab_submit(&l, &gang);
    assert_int_equal(lab_plan(&l), 2);
    assert_true(lab_has_reason(
        &l, dear, "too-dear", "machines it could run on cost more than the $2.50 an hour"));
    lab_deinit(&l);
}

static void a_submit_beyond_the_limit_is_refused_with_what_to_do(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_SUBMITTED, 5);
    struct job_row r = job_of("ann", 1);
    struct ranges four, two;
    struct event array = {.type = EV_SUBMIT, .submit = {.job = &r, .tasks = &four}};
    lab_init_for_days(&l, &o, 0);
    lab_join(&l, "a", 2);
    ranges_parse("0-3", &four, &l.e);
    ranges_parse("0-1", &two, &l.e);
    int64_t tasks = lab_apply(&l, array);
    array.submit.tasks = &two;
    assert_int_equal(lab_try(&l, &array, NULL), ERR_CONFLICT);
    assert_non_null(strstr(l.e.text,
        "ann may have 5 jobs that have not ended (max_submitted) and has 4; this would be 2 more"));
    assert_non_null(strstr(l.e.text, "cancel some"));
    int64_t last = lab_submit(&l, &r);
    assert_int_equal(
        lab_try(&l, &(struct event){.type = EV_SUBMIT, .submit.job = &r}, NULL), ERR_CONFLICT);
    submit(&l, "bob", 1);
    lab_plan(&l); /* a task that has begun counts as before */
    assert_int_equal(
        lab_try(&l, &(struct event){.type = EV_SUBMIT, .submit.job = &r}, NULL), ERR_CONFLICT);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = last});
    lab_submit(&l, &r);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = tasks});
    struct ranges some;
    ranges_parse("0-1", &some, &l.e);
    array.submit.tasks = &some;
    lab_apply(&l, array); /* two of the four still run, the other two are gone */
    lab_deinit(&l);
}

/* More throttled shapes than return at once: each has its turn, although the first of them fit
 * nowhere. */
static void all_throttled_jobs_are_tried_again(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_RUNNING, 1);
    int64_t last = 0;
    lab_init_for_days(&l, &o, 0);
    lab_join(&l, "a", 4);
    int64_t first = submit(&l, "ann", 1);
    lab_plan(&l);
    for (int k = 0; k < 50; k++)
        last = submit(&l, "ann", 10 + k); /* too large */
    last = submit(&l, "ann", 2);
    lab_plan(&l);
    assert_false(lab_runs(&l, last));
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, last));
    lab_deinit(&l);
}

/* Throttled jobs have no reservations, and can be held, released and cancelled like others. */
static void a_throttled_job_can_be_held_released_and_cancelled(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = each(LIMIT_RUNNING, 1);
    lab_init_for_days(&l, &o, 0);
    lab_join(&l, "a", 4);
    int64_t first = submit(&l, "ann", 1), second = submit(&l, "ann", 4),
            third = submit(&l, "ann", 2);
    int64_t bob = submit(&l, "bob", 3);
    lab_plan(&l);
    assert_true(lab_runs(&l, bob)); /* nothing is reserved for the second */
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = second, .by = "ann"}});
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = second, .by = "ann"}});
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = third});
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_ended(&l, bob, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

/* Places and ends one of bob's jobs n times, with or without ann's waiting jobs; without checks. */
static double turns(int64_t anns, int n)
{
    struct lab l;
    const struct queue_policy o = each(LIMIT_RUNNING, 10);
    struct job_row ann = job_of("ann", 1), bob = job_of("bob", 1);
    struct event ev;
    lab_init_for_days(&l, &o, 0);
    for (int k = 0; k < 20; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(&l, name, 16);
    }
    for (int64_t k = 0; k < anns; k++) {
        ann.spec.need.memory_mib = 1 + k % 5000;
        ev = (struct event){.type = EV_SUBMIT, .now = l.now, .submit.job = &ann};
        assert_int_equal(core_apply(l.m, &ev, NULL, &l.e), 0);
    }
    for (; plan_next(l.p, l.m, l.now, &ev);)
        assert_int_equal(core_apply(l.m, &ev, NULL, &l.e), 0);
    double from = lab_cpu_s();
    for (int k = 0; k < n; k++) {
        struct outcome out;
        ev = (struct event){.type = EV_SUBMIT, .now = l.now, .submit.job = &bob};
        assert_int_equal(core_apply(l.m, &ev, &out, &l.e), 0);
        for (; plan_next(l.p, l.m, l.now, &ev);)
            assert_int_equal(core_apply(l.m, &ev, NULL, &l.e), 0);
        const struct attempt *a = job_attempt(model_job(l.m, out.id));
        assert_non_null(a);
        ev = (struct event){.type = EV_ATTEMPT_ENDED,
            .now = l.now,
            .ended = {.job = out.id, .attempt = 1, .node = a->row.node, .end = END_SUCCEEDED}};
        assert_int_equal(core_apply(l.m, &ev, NULL, &l.e), 0);
        for (; plan_next(l.p, l.m, l.now, &ev);)
            assert_int_equal(core_apply(l.m, &ev, NULL, &l.e), 0);
    }
    double took = (lab_cpu_s() - from) / n;
    lab_deinit(&l);
    return took;
}

static void a_hundred_thousand_throttled_jobs_cost_others_nothing(void **state)
{
    (void)state;
    double alone = turns(10, 2000), beside = turns(100000, 2000);
    print_message("a job of another user: %.1f us, and %.1f us beside 100,000 of 5,000 kinds that "
                  "may not run\n",
        alone * 1e6, beside * 1e6);
    assert_true(beside < 3 * alone + 20e-6);
}

static void set_policy(struct lab *l, const struct queue_policy *o)
{
    const struct model_settings s = {.lease_ms = LAB_LEASE_MS, .policy = o};
    lab_apply(l, (struct event){.type = EV_SETTINGS, .settings = &s});
}

static void other_limits_apply_at_once_and_running_jobs_go_on(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy two = each(LIMIT_RUNNING, 2), four = each(LIMIT_RUNNING, 4),
                              one = each(LIMIT_RUNNING, 1), none = queue_policy_defaults;
    int64_t anns[8];
    lab_init_for_days(&l, &two, 0);
    lab_join(&l, "a", 6);
    for (int k = 0; k < 8; k++)
        anns[k] = submit(&l, "ann", 1);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 2);
    set_policy(&l, &four);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 4);
    set_policy(&l, &one);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 4);
    for (int k = 0; k < 3; k++)
        lab_ended(&l, anns[k], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 1);
    assert_true(lab_has_reason(&l, anns[4], "max-running", "ann has 1 running jobs, of at most 1"));
    set_policy(&l, &none);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 8), 5);
    lab_check_wake(&l);
    lab_deinit(&l);
}

/* Other classes: a quota makes a class of its own, a limit of cost one for each account. */
static void quotas_shares_and_limits_of_cost_come_and_go(void **state)
{
    (void)state;
    struct policy_user ann = {.name = "ann", .shares = 1},
                       rich = {.name = "ann", .shares = 9, .limits = limit(LIMIT_UUSD_H, 2000000)};
    struct policy_team red = {.name = "red", .shares = 1, .users = &ann, .n_users = 1},
                       owed = {.name = "red",
                           .shares = 7,
                           .users = &rich,
                           .n_users = 1,
                           .quota_mcpu = 4000};
    struct queue_policy before = queue_policy_defaults, after = queue_policy_defaults;
    struct lab l;
    int64_t anns[6], bobs[6];
    before.teams = &red;
    after.teams = &owed;
    before.n_teams = after.n_teams = 1;
    lab_init_for_days(&l, &before, 8000000); /* a dollar an hour for each cpu */
    lab_join(&l, "a", 8);
    for (int k = 0; k < 6; k++)
        bobs[k] = submit(&l, "bob", 4);
    for (int k = 0; k < 6; k++)
        anns[k] = submit(&l, "ann", 1);
    lab_plan(&l);
    assert_int_equal(n_running(&l, bobs, 6), 2);
    set_policy(&l, &after);
    const struct account *a = model_job(l.m, anns[0])->account;
    assert_int_equal(a->shares, 9);
    assert_int_equal(a->team->shares, 7);
    assert_int_equal(a->team->quota_mcpu, 4000);
    assert_ptr_equal(model_job(l.m, anns[0])->shape->demand_class->team, a->team);
    lab_ended(&l, bobs[0], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(n_running(&l, anns, 6), 2); /* two dollars an hour */
    set_policy(&l, &before);
    assert_null(model_job(l.m, anns[0])->shape->demand_class->team);
    assert_int_equal(a->team->quota_mcpu, 0);
    assert_int_equal(n_running(&l, anns, 6), 2);
    lab_plan(&l);
    lab_check_wake(&l);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_runs_as_many_jobs_as_allowed_and_others_overtake),
        cmocka_unit_test(limits_of_user_and_team_both_hold),
        cmocka_unit_test(a_gpu_limit_lets_jobs_without_gpus_run),
        cmocka_unit_test(a_gang_takes_the_nodes_that_its_limit_allows),
        cmocka_unit_test(running_jobs_cost_no_more_per_hour_than_allowed),
        cmocka_unit_test(prices_count_as_they_are_in_force),
        cmocka_unit_test(no_machine_is_launched_for_jobs_beyond_a_limit),
        cmocka_unit_test(a_submit_beyond_the_limit_is_refused_with_what_to_do),
        cmocka_unit_test(all_throttled_jobs_are_tried_again),
        cmocka_unit_test(a_throttled_job_can_be_held_released_and_cancelled),
        cmocka_unit_test(a_hundred_thousand_throttled_jobs_cost_others_nothing),
        cmocka_unit_test(other_limits_apply_at_once_and_running_jobs_go_on),
        cmocka_unit_test(quotas_shares_and_limits_of_cost_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
