/* SPDX-License-Identifier: Apache-2.0
 *
 * Decisions: order, packing, markets, launches, idleness, waking. lab_decision queries twice, and a
 * planner without memory too: all three must agree.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/planner.h"

/* ---- placing ---- */

static void the_oldest_job_is_placed_first(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_submit_cpus(&l, 2), b = lab_submit_cpus(&l, 1), c = lab_submit_cpus(&l, 2);
    lab_join(&l, "n1", 3);
    lab_plan(&l);
    assert_true(lab_node_of(&l, a) && lab_node_of(&l, b) && !lab_node_of(&l, c));
    lab_deinit(&l);
}

static void each_decision_says_which_kind_it_is(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    assert_null(plan_decider(l.p));
    lab_submit_cpus(&l, 2);
    lab_join(&l, "n1", 3);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_PLACE);
    assert_string_equal(plan_decider(l.p), "places");
    lab_plan(&l);
    l.now.mono.ms += LAB_LEASE_MS;
    l.now.wall.ms += LAB_LEASE_MS;
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_NODE_LOST);
    assert_string_equal(plan_decider(l.p), "lost nodes");
    lab_deinit(&l);
}

static void a_job_that_does_not_fit_lets_others_overtake(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t big = lab_submit_cpus(&l, 8), small = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_true(!lab_node_of(&l, big) && lab_node_of(&l, small));
    lab_join(&l, "n2", 8);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, big), 2);
    lab_deinit(&l);
}

static void jobs_are_packed_where_least_is_left(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t wide = lab_join(&l, "n1", 8), narrow = lab_join(&l, "n2", 4);
    int64_t a = lab_submit_cpus(&l, 2), b = lab_submit_cpus(&l, 2), c = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), narrow);
    assert_int_equal(lab_node_of(&l, b), narrow);
    assert_int_equal(lab_node_of(&l, c), wide);
    lab_deinit(&l);
}

static void equal_nodes_are_taken_by_id(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_join(&l, "n2", 4);
    int64_t a = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), 1);
    lab_deinit(&l);
}

static void jobs_without_gpus_stay_away_from_them(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct node_row gpu = {.name = "g", .key_hash = "g", .pool = "base", .total = {4, 2, 16384}};
    int64_t with = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &gpu}});
    int64_t without = lab_join(&l, "n", 32);
    int64_t plain = lab_submit_cpus(&l, 4);
    struct job_row r = lab_job(1);
    r.spec.need.gpus = 1;
    int64_t wants = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, plain), without);
    assert_int_equal(lab_node_of(&l, wants), with);
    lab_deinit(&l);
}

/* Many nodes with cpus but no memory left, and one with both. */
static void a_node_short_of_memory_is_passed_over(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    char name[16];
    for (int k = 0; k < 20; k++) {
        struct node_row r = {.pool = "base", .total = {2 + k % 4, 0, 100 + k}};
        str_copy(name, sizeof name, "n");
        name[1] = (char)('a' + k);
        name[2] = 0;
        STR_COPY(r.name, name);
        STR_COPY(r.key_hash, name);
        lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    }
    /* just enough */
    struct node_row large = {.name = "m", .key_hash = "m", .pool = "base", .total = {3, 0, 200}};
    int64_t id = lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &large}});
    struct job_row r = lab_job(2);
    r.spec.need.memory_mib = 200;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), id);
    lab_deinit(&l);
}

static void owned_nodes_come_before_spot_before_on_demand(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    lab_apply(&l, (struct event){.type = EV_LAUNCH, .launch.offer = 2}); /* on-demand */
    lab_apply(&l, (struct event){.type = EV_LAUNCH, .launch.offer = 1}); /* spot */
    int64_t on_demand = lab_bring_up(&l, 1, 4), spot = lab_bring_up(&l, 2, 4),
            owned = lab_join(&l, "n", 4);
    int64_t a = lab_submit_cpus(&l, 4), b = lab_submit_cpus(&l, 4), c = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), owned);
    assert_int_equal(lab_node_of(&l, b), spot);
    assert_int_equal(lab_node_of(&l, c), on_demand);
    lab_deinit(&l);
}

static void requested_markets_and_pools_are_respected(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 0, "m5", 4); /* may not grow: only launches made by hand */
    struct pool_row p = lab_pool(&l, "burst");
    p.max_nodes = 2;
    lab_set_pool(&l, p);
    lab_apply(&l, (struct event){.type = EV_LAUNCH, .launch.offer = 1});
    p.max_nodes = 0;
    lab_set_pool(&l, p);
    int64_t spot = lab_bring_up(&l, 1, 4), owned = lab_join(&l, "n", 4);
    int64_t on_demand = lab_submit_pool(&l, 1, "burst", WISH_ON_DEMAND),
            burst = lab_submit_pool(&l, 1, "burst", WISH_ANY);
    int64_t base = lab_submit_pool(&l, 1, "base", WISH_SPOT),
            absent = lab_submit_pool(&l, 1, "absent", WISH_ANY);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, on_demand), CORE_ID_NONE); /* the only burst node is spot */
    assert_int_equal(lab_node_of(&l, burst), spot);
    assert_int_equal(lab_node_of(&l, base), owned); /* markets only concern paid capacity */
    assert_int_equal(lab_node_of(&l, absent), CORE_ID_NONE);
    lab_deinit(&l);
}

static void capacity_that_becomes_free_is_used(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t a = lab_submit_cpus(&l, 4), b = lab_submit_cpus(&l, 4), c = lab_submit_cpus(&l, 3);
    lab_plan(&l);
    assert_int_equal(lab_plan(&l), 0);
    lab_ended(&l, a, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_node_of(&l, b) && !lab_node_of(&l, c));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {b, "ann"}});
    lab_ended(&l, b, END_CANCELLED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, c), 1);
    lab_deinit(&l);
}

/* ---- launching ---- */

static void one_machine_is_launched_for_jobs_that_fit_on_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    for (int k = 0; k < 9; k++)
        lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 3); /* nine jobs, four per machine */
    assert_int_equal(lab_plan(&l), 0);
    lab_submit_cpus(&l, 1);
    lab_submit_cpus(&l, 1);
    lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 0); /* they fit on the coming ones */
    lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 1);
    lab_deinit(&l);
}

static void different_jobs_share_a_machine_that_boots(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    lab_submit_cpus(&l, 3);
    lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 1);
    lab_submit_cpus(&l, 2);
    assert_int_equal(lab_plan(&l), 1);
    lab_deinit(&l);
}

static void nodes_that_are_up_are_used_before_anything_is_launched(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 4);
    lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 2); /* a place and a launch */
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

static void no_pool_grows_beyond_its_limit(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m5", 4);
    for (int k = 0; k < 20; k++)
        lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 2);
    lab_bring_up(&l, 1, 4);
    assert_int_equal(lab_plan(&l), 1); /* a place; the pool is full */
    lab_deinit(&l);
}

static void too_large_or_unwanted_is_not_launched(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    lab_submit_cpus(&l, 5);
    lab_submit_pool(&l, 1, "base", WISH_ANY);
    lab_submit_pool(&l, 1, "absent", WISH_ANY);
    assert_int_equal(lab_plan(&l), 0);
    assert_false(mono_is_set(plan_wake(l.p, l.m, l.now)));
    lab_submit_pool(&l, 1, "burst", WISH_ON_DEMAND);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_launches(&l, 2), 1);
    lab_deinit(&l);
}

static void rank_goes_before_price_and_price_before_the_first(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t cheap_but_second =
        lab_offer(&l, "burst", "c1", MARKET_ON_DEMAND, 1, (struct resources){4, 0, 9999}, 1);
    int64_t cheaper =
        lab_offer(&l, "burst", "c2", MARKET_SPOT, 0, (struct resources){4, 0, 9999}, 900000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, cheaper), 1);
    assert_int_equal(lab_launches(&l, cheap_but_second) + lab_launches(&l, 1), 0);
    lab_deinit(&l);
}

static void the_price_of_a_job_decides_not_that_of_a_machine(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4); /* $1 for 4 */
    int64_t big =
        lab_offer(&l, "burst", "m5x4", MARKET_SPOT, 0, (struct resources){16, 0, 65536}, 3000000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 0); /* one job: the small one is cheaper */
    for (int k = 0; k < 5; k++)
        lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, big), 1); /* $0.75 per job instead of $1 */
    assert_int_equal(lab_launches(&l, 1), 2);
    lab_deinit(&l);
}

static void a_withdrawn_offer_is_not_launched(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    lab_offer(&l, "burst", "m5", MARKET_SPOT, OFFER_WITHDRAWN, (struct resources){4, 0, 16384}, 1);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 0);
    assert_int_equal(lab_launches(&l, 2), 1);
    lab_deinit(&l);
}

static void a_full_pool_leaves_the_launch_to_the_other(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "one", 1, "m5", 4);
    lab_elastic(&l, "two", 3, "m5", 4);
    for (int k = 0; k < 5; k++)
        lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 4);
    assert_int_equal(model_pool(l.m, "one")->n_nodes, 1);
    assert_int_equal(model_pool(l.m, "two")->n_nodes, 3);
    lab_deinit(&l);
}

static void a_noticed_job_is_demand_only_if_nothing_free_can_take_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), node);
    lab_join(&l, "spare", 4);
    lab_notice(&l, node, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 0); /* the spare one suffices */
    lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 2); /* now it is used */
    lab_deinit(&l);
}

static void a_cancelled_job_on_a_noticed_node_is_no_demand(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    lab_notice(&l, node, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 0);
    lab_deinit(&l);
}

static void many_noticed_jobs_are_replaced_machine_by_machine(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    for (int k = 0; k < 8; k++)
        lab_submit_cpus(&l, 1);
    assert_int_equal(lab_plan(&l), 2);
    int64_t a = lab_bring_up(&l, 1, 4), b = lab_bring_up(&l, 2, 4);
    lab_plan(&l);
    lab_notice(&l, a, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 1);
    lab_notice(&l, b, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 1);
    for (int64_t job = 1; job <= 8; job++)
        lab_ended(&l, job, END_RECLAIMED, 0);
    assert_int_equal(lab_plan(&l), 0);
    lab_wait(&l, 5000); /* for the last of their output */
    /* the two empty machines are ended; no further launch */
    assert_int_equal(lab_plan(&l), 2);
    assert_int_equal(lab_launches(&l, 1), 4);
    lab_deinit(&l);
}

/* ---- ending ---- */

static void an_idle_machine_is_ended_after_its_time(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_wait(&l, 1000000);
    lab_heartbeats(&l);
    assert_int_equal(lab_plan(&l), 0); /* busy, not idle */
    lab_ended(&l, job, END_SUCCEEDED, 0);
    struct mono due = {l.now.mono.ms + LAB_IDLE_MS};
    lab_plan(&l);
    while (l.now.mono.ms + LAB_LEASE_MS / 2 < due.ms) {
        lab_wait(&l, LAB_LEASE_MS / 2);
        lab_heartbeats(&l);
        assert_int_equal(lab_plan(&l), 0);
    }
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, due.ms);
    lab_wait(&l, due.ms - l.now.mono.ms);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    assert_string_equal(ev.end_instance.text, "idle for 2m00s");
    lab_apply(&l, ev);
    assert_null(model_node(l.m, node)); /* its agent is no longer needed */
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(lab_plan(&l), 0);
    lab_deinit(&l);
}

static void a_job_that_fits_keeps_a_machine_from_being_idle(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t first = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {first, "ann"}});
    lab_wait(&l, LAB_IDLE_MS); /* at the moment of its end */
    lab_heartbeats(&l);
    int64_t job = lab_submit_cpus(&l, 2);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, job), node);
    lab_deinit(&l);
}

static void a_machine_that_just_booted_is_given_its_cooldown(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.idle_timeout_ms = 1000;
    p.cooldown_ms = 20000;
    lab_set_pool(&l, p);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    lab_wait(&l, 1000);
    lab_plan(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + 19000);
    lab_wait(&l, 19000);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    lab_deinit(&l);
}

/* The node idle for longest just booted; another one behind it is not protected. */
static void a_cooldown_protects_only_its_own_machine(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.idle_timeout_ms = 1000;
    p.cooldown_ms = 20000;
    lab_set_pool(&l, p);
    int64_t busy = lab_submit_cpus(&l, 4), other = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, busy), 1);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {other, "ann"}});
    lab_wait(&l, 20000);
    lab_bring_up(&l, 2, 4);
    lab_wait(&l, 500);
    lab_ended(&l, busy, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + 1000);
    lab_wait(&l, 1000);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    assert_int_equal(ev.end_instance.instance, 1);
    lab_deinit(&l);
}

static void a_drained_machine_is_ended_when_it_is_idle(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = node});
    lab_ended(&l, job, END_DRAINED, 0);
    assert_int_equal(lab_plan(&l), 1); /* another is launched for the job */
    lab_wait(&l, LAB_IDLE_MS);
    lab_heartbeats(&l);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    lab_deinit(&l);
}

static void a_lost_machine_is_ended_after_two_leases(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_wait(&l, LAB_LEASE_MS);
    assert_int_equal(lab_plan(&l), 2); /* lost; a replacement */
    lab_wait(&l, 2 * LAB_LEASE_MS - 1);
    assert_int_equal(lab_plan(&l), 0);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + 1);
    lab_wait(&l, 1);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_null(model_node(l.m, node));
    lab_deinit(&l);
}

static void owned_nodes_are_never_ended(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t idle = lab_join(&l, "n1", 4), noticed = lab_join(&l, "n2", 4);
    lab_notice(&l, noticed, NOTICE_TYPE_RECLAIM, 1000);
    assert_int_equal(lab_plan(&l), 0);
    lab_wait(&l, 100 * LAB_LEASE_MS);
    assert_int_equal(lab_plan(&l), 2); /* both are lost, and nothing else */
    lab_wait(&l, 100 * LAB_LEASE_MS);
    assert_int_equal(lab_plan(&l), 0);
    assert_false(mono_is_set(plan_wake(l.p, l.m, l.now)));
    assert_non_null(model_node(l.m, idle));
    lab_deinit(&l);
}

static void of_many_idle_machines_each_goes_in_its_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    for (int k = 0; k < 3; k++)
        lab_submit_cpus(&l, 4);
    lab_plan(&l);
    for (int64_t k = 1; k <= 3; k++)
        lab_bring_up(&l, k, 4);
    lab_plan(&l);
    int64_t first = 3 - 1; /* the second is free first, then the third, then the first */
    lab_wait(&l, 1000000);
    lab_heartbeats(&l);
    int64_t order[] = {first, 3, 1};
    for (int k = 0; k < 3; k++) {
        lab_ended(&l, order[k], END_SUCCEEDED, 0);
        lab_wait(&l, 1000);
    }
    lab_wait(&l, LAB_IDLE_MS - 3000);
    lab_heartbeats(&l);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(lab_plan(&l), 1);
        int64_t instance = order[k]; /* jobs, nodes and instances have equal numbers here */
        assert_int_equal(model_instance(l.m, instance)->row.state, INSTANCE_ENDING);
        lab_wait(&l, 1000);
    }
    lab_deinit(&l);
}

static void an_empty_world_needs_no_waking(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    assert_int_equal(lab_plan(&l), 0);
    assert_false(mono_is_set(plan_wake(l.p, l.m, l.now)));
    planner_destroy(NULL);
    model_destroy(NULL);
    lab_deinit(&l);
}

/* Each fits only on a machine of its own, and all demands differ. */
static void queue_many(struct lab *l, int shapes)
{
    struct job_row r = lab_job(4);
    for (int k = 0; k < shapes; k++) {
        r.spec.need.memory_mib = 1 + k;
        lab_submit(l, &r);
    }
}

static void where_no_machine_can_be_launched_the_queue_is_not_looked_through(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    int64_t first = lab_submit_cpus(&l, 2), second = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    lab_join_instance(&l, 1, 4);
    queue_many(&l, 50);
    struct job_row gang = lab_job(2);
    gang.spec.nodes = gang.spec.nodes_min = 2;
    lab_submit(&l, &gang);
    lab_plan(&l);
    assert_true(lab_node_of(&l, first) && lab_node_of(&l, second));
    int64_t before = l.p->n_gathered;
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(l.p->n_gathered, before);
    lab_deinit(&l);
}

/* No offer has machines for a while; then they are tried again. */
static void in_a_drought_the_queue_is_not_searched_either(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 2), node = lab_join(&l, "n", 2);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), node);
    queue_many(&l, 50);
    lab_plan(&l);
    for (struct link *i; (i = list_first(model_instances(l.m))) != NULL; lab_plan(&l))
        lab_apply(&l,
            (struct event){.type = EV_LAUNCH_REFUSED,
                .refused = {LIST_ENTRY(i, struct instance, in_all)->row.id, true, "no capacity"}});
    int64_t before = l.p->n_gathered;
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(l.p->n_gathered, before);
    struct mono wake = plan_wake(l.p, l.m, l.now);
    assert_true(mono_is_set(wake));
    lab_wait(&l, wake.ms - l.now.mono.ms);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_true(l.p->n_gathered > before);
    assert_false(list_is_empty(model_instances(l.m)));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_job_is_placed_first),
        cmocka_unit_test(each_decision_says_which_kind_it_is),
        cmocka_unit_test(a_job_that_does_not_fit_lets_others_overtake),
        cmocka_unit_test(jobs_are_packed_where_least_is_left),
        cmocka_unit_test(equal_nodes_are_taken_by_id),
        cmocka_unit_test(jobs_without_gpus_stay_away_from_them),
        cmocka_unit_test(a_node_short_of_memory_is_passed_over),
        cmocka_unit_test(owned_nodes_come_before_spot_before_on_demand),
        cmocka_unit_test(requested_markets_and_pools_are_respected),
        cmocka_unit_test(capacity_that_becomes_free_is_used),
        cmocka_unit_test(one_machine_is_launched_for_jobs_that_fit_on_it),
        cmocka_unit_test(different_jobs_share_a_machine_that_boots),
        cmocka_unit_test(nodes_that_are_up_are_used_before_anything_is_launched),
        cmocka_unit_test(no_pool_grows_beyond_its_limit),
        cmocka_unit_test(too_large_or_unwanted_is_not_launched),
        cmocka_unit_test(rank_goes_before_price_and_price_before_the_first),
        cmocka_unit_test(the_price_of_a_job_decides_not_that_of_a_machine),
        cmocka_unit_test(a_withdrawn_offer_is_not_launched),
        cmocka_unit_test(a_full_pool_leaves_the_launch_to_the_other),
        cmocka_unit_test(a_noticed_job_is_demand_only_if_nothing_free_can_take_it),
        cmocka_unit_test(a_cancelled_job_on_a_noticed_node_is_no_demand),
        cmocka_unit_test(many_noticed_jobs_are_replaced_machine_by_machine),
        cmocka_unit_test(an_idle_machine_is_ended_after_its_time),
        cmocka_unit_test(a_job_that_fits_keeps_a_machine_from_being_idle),
        cmocka_unit_test(a_machine_that_just_booted_is_given_its_cooldown),
        cmocka_unit_test(a_cooldown_protects_only_its_own_machine),
        cmocka_unit_test(a_drained_machine_is_ended_when_it_is_idle),
        cmocka_unit_test(a_lost_machine_is_ended_after_two_leases),
        cmocka_unit_test(owned_nodes_are_never_ended),
        cmocka_unit_test(of_many_idle_machines_each_goes_in_its_time),
        cmocka_unit_test(an_empty_world_needs_no_waking),
        cmocka_unit_test(where_no_machine_can_be_launched_the_queue_is_not_looked_through),
        cmocka_unit_test(in_a_drought_the_queue_is_not_searched_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
