/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits.
 */
#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "tests/core/lab.h"

#include <string.h>

static struct reason reasons[EXPLAIN_REASONS_MAX];
static size_t n_reasons;

static void explain(const struct lab *l, int64_t job)
{
    n_reasons = core_explain(l->m, l->now, job, reasons, EXPLAIN_REASONS_MAX);
}

static const char *text_of(const char *code)
{
    for (size_t k = 0; k < n_reasons; k++)
        if (strcmp(reasons[k].code, code) == 0)
            return reasons[k].text;
    fail_msg("%s is not among the reasons", code);
    return NULL;
}

static void what_can_never_run_says_so_alone(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    explain(&l, lab_submit_pool(&l, 1, "", WISH_ANY));
    assert_int_equal(n_reasons, 1);
    assert_string_equal(text_of("no-node-fits"), "no node has joined and none can be launched");
    explain(&l, lab_submit_pool(&l, 1, "base", WISH_ANY));
    assert_string_equal(
        text_of("no-node-fits"), "no node has joined pool 'base' and none can be launched");
    explain(&l, lab_submit_pool(&l, 1, "gpus", WISH_ANY));
    assert_string_equal(text_of("no-pool"), "there is no pool 'gpus'");
    lab_join(&l, "n1", 4);
    explain(&l, lab_submit_pool(&l, 9, "", WISH_ANY));
    assert_int_equal(n_reasons, 1);
    assert_string_equal(text_of("too-large"),
        "it needs 9 cpus, 100.0 MiB; the largest machine has 4 cpus, 16.0 GiB");
    lab_elastic(&l, "burst", 3, "m5", 16);
    lab_offer(
        &l, "burst", "m5", MARKET_ON_DEMAND, OFFER_WITHDRAWN, (struct resources){16, 0, 9999}, 1);
    explain(&l, lab_submit_pool(&l, 9, "", WISH_ON_DEMAND));
    assert_int_equal(n_reasons, 1);
    assert_non_null(strstr(text_of("market"), "another market than on-demand"));
    lab_deinit(&l);
}

static void a_busy_cluster_names_what_is_ahead(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_join(&l, "n2", 4);
    int64_t drained = lab_join(&l, "n3", 4), noticed = lab_join(&l, "n4", 4),
            lost = lab_join(&l, "n5", 4);
    for (int k = 0; k < 2; k++)
        lab_submit_cpus(&l, 4);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = drained});
    lab_notice(&l, noticed, NOTICE_TYPE_RECLAIM, 60000);
    lab_apply(&l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    lab_plan(&l);
    lab_submit_cpus(&l, 2);
    lab_submit_cpus(&l, 3);
    int64_t job = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    explain(&l, job);
    assert_string_equal(text_of("nodes-busy"), "2 nodes are large enough but busy");
    assert_string_equal(text_of("nodes-draining"), "1 node is being emptied");
    assert_string_equal(text_of("nodes-noticed"), "1 node is being reclaimed");
    assert_string_equal(text_of("nodes-lost"), "1 node is lost: its agent does not report");
    assert_string_equal(text_of("queue-ahead"),
        "2 jobs wait before it; the first is job 3, 'train' of ann (has waited for longer), then "
        "job 4, 'train' of ann (has waited for "
        "longer)");
    explain(&l, 1);
    assert_string_equal(text_of("running"), "attempt 1 is assigned on n1");
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {1, "ann"}});
    explain(&l, 1);
    assert_string_equal(text_of("cancelling"), "attempt 1 on n1 is being stopped");
    explain(&l, 99);
    assert_int_equal(n_reasons, 0);
    lab_deinit(&l);
}

static void launches_and_refusals_are_explained(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 5000);
    explain(&l, job);
    assert_string_equal(text_of("launching"), "instance 1 (m5 spot in z1) was requested 5s ago");
    assert_string_equal(text_of("pool-full"), "pool burst has 1 of at most 1 nodes");
    lab_launched(&l, 1);
    lab_wait(&l, 1000);
    explain(&l, job);
    assert_string_equal(text_of("launching"), "instance 1 (m5 spot in z1) has been booting for 1s");
    lab_apply(
        &l, (struct event){.type = EV_INSTANCE_GONE, .gone = {1, true, WALL_NONE, "reclaimed"}});
    explain(&l, job);
    assert_string_equal(text_of("offer-refused"),
        "m5 spot in z1 provided no machine (1 in a row); tried again in 10s: reclaimed");
    lab_deinit(&l);
}

static void capacity_for_it_means_it_is_next(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    explain(&l, lab_submit_cpus(&l, 4));
    assert_int_equal(n_reasons, 1);
    assert_string_equal(text_of("ready"), "1 node has capacity for it: it is placed next");
    lab_deinit(&l);
}

static void no_more_reasons_than_asked_for(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 40, "m5", 4);
    int64_t job = 0;
    for (int k = 0; k < 40; k++)
        job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(core_explain(l.m, l.now, job, reasons, 5), 5);
    assert_string_equal(reasons[4].code, "launching");
    assert_int_equal(core_explain(l.m, l.now, job, reasons, 0), 0);
    lab_deinit(&l);
}

static void the_first_of_many_reasons_is_given_once_per_shape(void **state)
{
    (void)state;
    struct lab l;
    struct explain_memo memo = {0};
    struct reason first;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t head = lab_submit_cpus(&l, 3), second = lab_submit_cpus(&l, 3),
            third = lab_submit_cpus(&l, 3), large = lab_submit_cpus(&l, 9);
    lab_plan(&l);
    const int64_t jobs[] = {head, second, third, large, second};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        explain(&l, jobs[i]);
        assert_true(core_explain_first(l.m, l.now, jobs[i], &memo, &first));
        assert_string_equal(first.code, reasons[0].code);
        assert_string_equal(first.text, reasons[0].text);
    }
    assert_false(core_explain_first(l.m, l.now, 4711, &memo, &first));
    lab_deinit(&l);
}

static const char *remedy(const struct lab *l, int64_t job, const char *code)
{
    static struct reason found[REMEDIES_MAX];
    size_t n = core_remedies(l->m, l->now, job, found, REMEDIES_MAX);
    for (size_t k = 0; k < n; k++)
        if (strcmp(found[k].code, code) == 0)
            return found[k].text;
    return NULL;
}

static void jobs_ahead_are_named_with_the_reason(void **state)
{
    (void)state;
    struct lab l;
    struct ahead a;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    struct job_row r = lab_job(4), nice = lab_job(4);
    nice.spec.nice = 5;
    int64_t first = lab_submit(&l, &r), late = lab_submit(&l, &nice);
    lab_wait(&l, 10000);
    int64_t job = lab_submit(&l, &r), after = lab_submit_cpus(&l, 3);
    lab_plan(&l);
    assert_true(core_ahead(l.m, l.now, late, &a));
    assert_int_equal(a.n, 3);
    assert_true(a.exact);
    assert_int_equal(a.first[0].job, first);
    assert_string_equal(a.first[0].user, "ann");
    assert_string_equal(a.first[0].why, "its --nice is less");
    assert_int_equal(a.first[1].job, job);
    assert_int_equal(a.first[2].job, after);
    assert_true(core_ahead(l.m, l.now, first, &a));
    assert_int_equal(a.n, 0);
    assert_false(core_ahead(l.m, l.now, 1, &a));
    lab_deinit(&l);
}

/* Two nodes of four cpus: one is full for an hour, the other is half used. */
static void changes_that_work_are_found(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(4), half = lab_job(2), gang = lab_job(2), large = lab_job(8);
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_join(&l, "n2", 4);
    r.spec.time_limit_ms = half.spec.time_limit_ms = 3600000;
    lab_submit(&l, &r);
    lab_submit(&l, &half);
    lab_plan(&l);
    gang.spec.nodes = gang.spec.nodes_min = 2;
    r.spec.time_limit_ms = 4 * 3600000;
    int64_t wide = lab_submit(&l, &r), two = lab_submit(&l, &gang),
            too_large = lab_submit(&l, &large);
    lab_plan(&l);
    assert_string_equal(
        remedy(&l, wide, "cpus"), "with 2 cpus instead of 4 it would start now on n2");
    assert_null(remedy(&l, wide, "time"));
    assert_string_equal(
        remedy(&l, two, "nodes"), "with 1 node instead of 2 it would start now on n2");
    assert_string_equal(
        remedy(&l, too_large, "cpus"), "with 2 cpus instead of 8 it would start now on n2");
    lab_deinit(&l);
}

/* The rest of the node is reserved for an earlier job: a job that ends before that may use it. */
static void a_shorter_time_limit_is_found(void **state)
{
    (void)state;
    struct lab l;
    struct job_row runs = lab_job(2), wide = lab_job(4), tiny = lab_job(1), small = lab_job(1);
    lab_init(&l);
    lab_join(&l, "n1", 4);
    runs.spec.time_limit_ms = 2 * 3600000;
    tiny.spec.time_limit_ms = 60000;
    small.spec.time_limit_ms = 8 * 3600000;
    lab_submit(&l, &runs);
    lab_submit(&l, &wide);
    lab_submit(&l, &tiny);
    lab_plan(&l);
    int64_t job = lab_submit(&l, &small);
    small.spec.time_limit_ms = 0;
    int64_t endless = lab_submit(&l, &small);
    lab_plan(&l);
    assert_string_equal(
        remedy(&l, job, "time"), "with --time 2h00m instead of 8h00m it would start now on n1");
    assert_string_equal(remedy(&l, endless, "time"), "with --time 2h00m it would start now on n1");
    lab_deinit(&l);
}

static void what_it_could_do_without_is_found(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(1);
    lab_init(&l);
    lab_join_with(&l, "n1", 2, "avx512", "lego:1");
    lab_join_with(&l, "n2", 8, "sse4", "");
    lab_submit_asking(&l, &r, "constraint=avx512 resources=lego:1 licences=ansys:1");
    lab_plan(&l);
    struct job_row two = lab_job(2);
    int64_t featured = lab_submit_asking(&l, &two, "constraint=avx512"),
            bricks = lab_submit_asking(&l, &r, "resources=lego:1"),
            licensed = lab_submit_asking(&l, &r, "licences=ansys:1");
    lab_plan(&l);
    assert_string_equal(
        remedy(&l, featured, "constraint"), "without --constraint it would start now on n2");
    assert_string_equal(remedy(&l, bricks, "resources"),
        "without the named resources of --gres it would start now on n1");
    assert_string_equal(
        remedy(&l, licensed, "licences"), "without --licences it would start now on n1");
    lab_deinit(&l);
}

static void held_and_limited_jobs_are_explained_with_the_remedy(void **state)
{
    (void)state;
    struct lab l;
    struct policy_limits one = {.is_set[LIMIT_RUNNING] = true,
        .max = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE}};
    struct queue_policy policy = queue_policy_defaults;
    one.max[LIMIT_RUNNING] = 1;
    policy.each_user = one;
    lab_init_policy(&l, &policy);
    lab_join(&l, "n1", 8);
    struct job_row held = lab_job(1);
    held.hold = HOLD_USER;
    int64_t waits = lab_submit(&l, &held);
    lab_plan(&l);
    assert_string_equal(
        remedy(&l, waits, "release"), "released it would start now on n1: belay release 1");
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release.job = waits});
    lab_plan(&l);
    lab_ended(&l, waits, END_STORE, 0);
    assert_string_equal(remedy(&l, waits, "release"),
        "after its checkpoint store is usable again, released it "
        "would start now on n1: belay release 1");
    lab_submit_cpus(&l, 1);
    int64_t second = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_null(remedy(&l, waits, "release"));
    assert_string_equal(remedy(&l, second, "raise-limit"),
        "if max_running of ann were 2 instead of 1 it would start now on n1");
    lab_deinit(&l);
}

static void a_pool_that_is_full_or_not_asked_for_is_named_with_its_price(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    int64_t first = lab_submit_pool(&l, 4, "burst", WISH_ANY);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_started(&l, first);
    int64_t job = lab_submit_pool(&l, 4, "burst", WISH_ANY);
    lab_plan(&l);
    assert_string_equal(remedy(&l, job, "max-nodes"),
        "if max_nodes of pool burst were 2 instead of 1 a machine "
        "would be launched for it: from $1.00/h");
    lab_elastic(&l, "more", 1, "m5", 4);
    assert_string_equal(remedy(&l, job, "launch"),
        "in pool more instead of burst a machine would be launched for it: from $1.00/h");
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_never_run_says_so_alone),
        cmocka_unit_test(a_busy_cluster_names_what_is_ahead),
        cmocka_unit_test(launches_and_refusals_are_explained),
        cmocka_unit_test(capacity_for_it_means_it_is_next),
        cmocka_unit_test(no_more_reasons_than_asked_for),
        cmocka_unit_test(the_first_of_many_reasons_is_given_once_per_shape),
        cmocka_unit_test(jobs_ahead_are_named_with_the_reason),
        cmocka_unit_test(changes_that_work_are_found),
        cmocka_unit_test(a_shorter_time_limit_is_found),
        cmocka_unit_test(what_it_could_do_without_is_found),
        cmocka_unit_test(held_and_limited_jobs_are_explained_with_the_remedy),
        cmocka_unit_test(a_pool_that_is_full_or_not_asked_for_is_named_with_its_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
