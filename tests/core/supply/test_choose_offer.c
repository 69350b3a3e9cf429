/* SPDX-License-Identifier: Apache-2.0
 *
 * A mixed queue: when jobs of several shapes share a large machine, and when several small ones are
 * launched. The small offer has 4 cpus for $1 on spot (1) and $3 on-demand (2).
 */
#include "tests/core/lab.h"

#include <stdlib.h>

static const struct resources BIG = {.cpus = 8, .memory_mib = 32768},
                              GPU_SMALL = {.cpus = 4, .gpus = 1, .memory_mib = 16384},
                              GPU_BIG = {.cpus = 16, .gpus = 1, .memory_mib = 65536};

static int64_t init(struct lab *l, struct resources big, int64_t uusd_h)
{
    lab_init(l);
    lab_elastic(l, "burst", 10, "small", 4);
    return lab_offer(l, "burst", "big", MARKET_SPOT, 0, big, uusd_h);
}

static void submit(struct lab *l, int32_t cpus, int32_t gpus, int64_t memory_mib)
{
    struct job_row r = lab_job(cpus);
    r.spec.need.gpus = gpus;
    r.spec.need.memory_mib = memory_mib;
    lab_submit(l, &r);
}

static void a_big_machine_is_shared_when_that_costs_less(void **state)
{
    (void)state;
    const int64_t prices[] = {1500000, 2000000, 2100000};
    for (size_t k = 0; k < 3; k++) {
        struct lab l;
        int64_t big = init(&l, BIG, prices[k]);
        lab_submit_cpus(&l, 4);
        lab_submit_cpus(&l, 2);
        lab_plan(&l);
        /* small ones if the cost is equal */
        assert_int_equal(lab_launches(&l, big), k == 0);
        assert_int_equal(lab_launches(&l, 1), k == 0 ? 0 : 2);
        lab_deinit(&l);
    }
}

/* The oldest job alone would get a small one, and the next does not fit next to it. */
static void the_order_in_the_queue_does_not_hide_it(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 1700000);
    lab_submit_cpus(&l, 1);
    lab_submit_cpus(&l, 4);
    lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 1);
    assert_int_equal(lab_launches(&l, 1), 0);
    lab_deinit(&l);
}

static void jobs_left_after_sharing_get_a_small_machine(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 1500000);
    for (int k = 0; k < 4; k++) {
        lab_submit_cpus(&l, 4);
        lab_submit_cpus(&l, 3);
    }
    for (int k = 0; k < 3; k++)
        lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 4); /* 4 + 4 twice, 3 + 3 + 2 twice */
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

/* Memory is exhausted before cpus: six jobs fill three small ones, or one with large memory. */
static void every_resource_counts(void **state)
{
    (void)state;
    struct lab l;
    int64_t wide = init(&l, (struct resources){.cpus = 6, .memory_mib = 49152}, 2500000);
    for (int k = 0; k < 6; k++)
        submit(&l, 1, 0, 8000 + k);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, wide), 1);
    assert_int_equal(lab_launches(&l, 1), 0);
    lab_deinit(&l);
}

static void jobs_without_gpus_share_a_gpu_machine_that_is_needed(void **state)
{
    (void)state;
    for (int cpu_jobs = 0; cpu_jobs <= 6; cpu_jobs += 3) {
        struct lab l;
        int64_t big = init(&l, GPU_BIG, 4500000);
        int64_t small = lab_offer(&l, "burst", "gpu", MARKET_SPOT, 0, GPU_SMALL, 3000000);
        for (int k = 0; k < cpu_jobs; k++)
            lab_submit_cpus(&l, 2);
        submit(&l, 4, 1, 8192);
        lab_plan(&l);
        /* $4.50 for $3 and two or three times $1 */
        assert_int_equal(lab_launches(&l, big), cpu_jobs > 0);
        assert_int_equal(lab_launches(&l, small), cpu_jobs == 0);
        assert_int_equal(lab_launches(&l, 1), 0);
        lab_deinit(&l);
    }
}

/* ---- limits ---- */

static void no_limit_is_exceeded_for_it(void **state)
{
    (void)state;
    const struct {
        struct capacity limit;
        int64_t big, small;
    } cases[] = {
        {{.nodes = 10}, 2, 0},
        {{.nodes = 10, .gpus = 2}, 1, 2}, /* a large one has two */
        {{.nodes = 10, .gpus = 1}, 0, 4},
        {{.nodes = 10, .uusd_h = 2600000}, 1, 0}, /* leaves too little for a small one */
        {{.nodes = 1}, 1, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct lab l;
        int64_t big =
            init(&l, (struct resources){.cpus = 8, .gpus = 2, .memory_mib = 32768}, 1700000);
        struct pool_row p = lab_pool(&l, "burst");
        p.max_nodes = (int32_t)cases[k].limit.nodes;
        p.max_gpus = cases[k].limit.gpus;
        p.max_uusd_h = cases[k].limit.uusd_h;
        lab_set_pool(&l, p);
        for (int64_t mib = 100; mib <= 400; mib += 100)
            submit(&l, 4, 0, mib);
        lab_plan(&l);
        assert_int_equal(lab_launches(&l, big), cases[k].big);
        assert_int_equal(lab_launches(&l, 1), cases[k].small);
        lab_deinit(&l);
    }
}

/* The oldest job gets the only machine allowed, though the others would be cheaper to serve. */
static void the_oldest_job_is_not_passed_over(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 9000000);
    struct pool_row p = lab_pool(&l, "burst");
    p.max_nodes = 1;
    lab_set_pool(&l, p);
    lab_submit_cpus(&l, 8);
    for (int k = 0; k < 4; k++)
        lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 1);
    lab_deinit(&l);
}

/* ---- requested markets and ranks ---- */

static void jobs_that_the_pool_excludes_do_not_count(void **state)
{
    (void)state;
    const char *const pools[] = {"burst", "other"};
    for (int k = 0; k < 2; k++) {
        struct lab l;
        int64_t big = init(&l, BIG, 1500000);
        lab_elastic(&l, "other", 10, "small", 4);
        lab_submit_pool(&l, 4, "burst", WISH_SPOT);
        lab_submit_pool(&l, 2, pools[k], k == 0 ? WISH_ON_DEMAND : WISH_SPOT);
        lab_plan(&l);
        assert_int_equal(lab_launches(&l, big), 0);
        assert_int_equal(lab_launches(&l, 1), 1);
        lab_deinit(&l);
    }
}

/* A job that accepts spot is no reason to launch more on-demand, but may use what is launched. */
static void the_rank_of_markets_comes_before_sharing(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "small", 4);
    int64_t big = lab_offer(&l, "burst", "big", MARKET_ON_DEMAND, 1, BIG, 3100000);
    lab_submit_pool(&l, 3, "burst", WISH_ON_DEMAND);
    lab_submit_pool(&l, 4, "burst", WISH_ANY);
    lab_submit_pool(&l, 1, "burst", WISH_ANY);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 0);
    assert_int_equal(lab_launches(&l, 2), 1); /* with the one cpu in it */
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

/* ---- coming machines ---- */

static void a_launch_in_flight_counts_with_the_capacity_it_has(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 1500000);
    lab_submit_cpus(&l, 3);
    lab_submit_cpus(&l, 2);
    assert_int_equal(lab_plan(&l), 1);
    lab_submit_cpus(&l, 1);
    submit(&l, 2, 0, 20000);
    assert_int_equal(lab_plan(&l), 0); /* all four fit on the requested one */
    submit(&l, 1, 0, 50);
    /* no capacity is left there, and for one job a small one suffices */
    assert_int_equal(lab_plan(&l), 1);
    lab_launched(&l, 1);
    assert_int_equal(lab_plan(&l), 0);
    assert_int_equal(lab_launches(&l, big), 1);
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

/* A recount after each launch, forced by any change, gives the same launches. */
static void a_recount_half_way_gives_the_same_choice(void **state)
{
    (void)state;
    int64_t launches[2][4] = {{0}};
    for (int again = 0; again < 2; again++) {
        struct lab l;
        struct event ev;
        int64_t big = init(&l, BIG, 1600000),
                gpu = lab_offer(&l, "burst", "gpu", MARKET_SPOT, 0, GPU_BIG, 4000000);
        for (int k = 0; k < 32; k++)
            submit(&l, 1 + k % 4, k % 20 == 0, 1000 + 1700 * (k % 3));
        while (lab_decision(&l, &ev)) {
            lab_apply(&l, ev);
            if (again)
                lab_submit_pool(&l, 1, "absent", WISH_ANY); /* demand that cannot be met */
        }
        launches[again][0] = lab_launches(&l, 1);
        launches[again][1] = lab_launches(&l, 2);
        launches[again][2] = lab_launches(&l, big);
        launches[again][3] = lab_launches(&l, gpu);
        lab_deinit(&l);
    }
    assert_memory_equal(launches[0], launches[1], sizeof launches[0]);
    assert_true(launches[0][2] > 1 && launches[0][3] > 1);
}

/* The plan is realised: every job runs on the machines that were launched for all of them. */
static void packed_jobs_are_placed_as_packed(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 1500000);
    const int32_t cpus[] = {3, 4, 1, 2, 3, 1};
    for (int k = 0; k < 6; k++)
        lab_submit_cpus(&l, cpus[k]);
    int64_t n = lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), n);
    for (int64_t i = 1; i <= n; i++)
        lab_bring_up(&l, i, 8);
    assert_int_equal(lab_plan(&l), 6); /* places, and no launch */
    for (int64_t job = 1; job <= 6; job++)
        assert_true(lab_node_of(&l, job) != CORE_ID_NONE);
    lab_deinit(&l);
}

/* A job that must move shares the machine with a waiting one. */
static void a_replacement_is_shared_too(void **state)
{
    (void)state;
    struct lab l;
    int64_t big = init(&l, BIG, 1500000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_notice(&l, 1, NOTICE_TYPE_RECLAIM, 120000);
    lab_submit_cpus(&l, 3);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 1);
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_big_machine_is_shared_when_that_costs_less),
        cmocka_unit_test(the_order_in_the_queue_does_not_hide_it),
        cmocka_unit_test(jobs_left_after_sharing_get_a_small_machine),
        cmocka_unit_test(every_resource_counts),
        cmocka_unit_test(jobs_without_gpus_share_a_gpu_machine_that_is_needed),
        cmocka_unit_test(no_limit_is_exceeded_for_it),
        cmocka_unit_test(the_oldest_job_is_not_passed_over),
        cmocka_unit_test(jobs_that_the_pool_excludes_do_not_count),
        cmocka_unit_test(the_rank_of_markets_comes_before_sharing),
        cmocka_unit_test(a_launch_in_flight_counts_with_the_capacity_it_has),
        cmocka_unit_test(a_recount_half_way_gives_the_same_choice),
        cmocka_unit_test(packed_jobs_are_placed_as_packed),
        cmocka_unit_test(a_replacement_is_shared_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
