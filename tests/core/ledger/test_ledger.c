/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: use of every second, and exact sums.
 */
#include "tests/core/lab.h"

#define HOUR 3600000

static int64_t all_uusd(const struct lab *l)
{
    int64_t s = 0;
    for (size_t k = 0; k < l->c.n_ledger; k++)
        s += l->c.ledger[k].uusd;
    return s;
}

static void gone_at(struct lab *l, struct wall ended_at)
{
    lab_apply(
        l, (struct event){.type = EV_INSTANCE_GONE, .gone = {1, false, ended_at, "terminated"}});
}

static void gone(struct lab *l)
{
    gone_at(l, WALL_NONE);
}

static void a_success_is_useful_but_for_its_start_and_saves(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = 1, .attempt = 1, .node = 1, .restore_ms = 36000}});
    lab_wait(&l, HOUR / 2);
    lab_saved(&l, 1, 1, 5); /* 100 ms */
    lab_wait(&l, HOUR / 2);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).ms, 36000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).uusd, 10000);
    /* a first start is needed on-demand too */
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).on_demand_uusd, 30000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_RESTORE).ms, 0); /* nothing was restored */
    assert_int_equal(lab_ledger_sum(&l, LEDGER_SAVE).ms, 100);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, 0);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, HOUR - 36100);
    assert_int_equal(all_uusd(&l), 1000000);
    assert_int_equal(
        lab_ledger_sum(&l, LEDGER_USEFUL).on_demand_uusd, core_cost_uusd(HOUR - 36100, 3000000));
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 1000000);
    assert_int_equal(
        lab_row(&l, 1)->on_demand_uusd, lab_ledger_sum(&l, LEDGER_USEFUL).on_demand_uusd + 30000);
    lab_deinit(&l);
}

static void a_restore_would_not_have_been_paid_on_demand(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    lab_wait(&l, HOUR / 2);
    lab_saved(&l, 1, 1, 5);
    gone(&l);
    lab_plan(&l);
    lab_launched(&l, 2);
    lab_join_instance(&l, 2, 4);
    lab_plan(&l);
    lab_take(&l);
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = 1, .attempt = 2, .node = 2, .restore_ms = 36000}});
    lab_wait(&l, HOUR / 2);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_RESTORE).ms, 36000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_RESTORE).on_demand_uusd, 0);
    lab_deinit(&l);
}

static void a_running_attempt_shows_what_it_will_be_charged(void **state)
{
    (void)state;
    struct lab l;
    int64_t uusd, on_demand;
    lab_start_rented(&l, 2, 2);
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = 1, .attempt = 1, .node = 1, .restore_ms = 36000}});
    const struct attempt *a = job_attempt(model_job(l.m, 1));
    core_cost_so_far(a, a->row.assigned_at, &uusd, &on_demand);
    assert_int_equal(uusd, 0);
    assert_int_equal(on_demand, 0);
    core_cost_so_far(a, (struct wall){a->row.assigned_at.ms - HOUR}, &uusd, &on_demand);
    assert_int_equal(uusd, 0); /* the wall clock was set back */
    core_cost_so_far(a, (struct wall){a->row.assigned_at.ms + HOUR}, &uusd, &on_demand);
    assert_int_equal(uusd, 500000); /* half the machine */
    assert_int_equal(on_demand, core_cost_uusd(HOUR, 3000000) / 2);
    lab_wait(&l, HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, uusd);
    assert_int_equal(lab_row(&l, 1)->on_demand_uusd, on_demand);
    lab_deinit(&l);
}

static void what_was_not_saved_is_lost(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    lab_wait(&l, 600000);
    lab_saved(&l, 1, 1, 5);
    lab_wait(&l, 300000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, 300000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).on_demand_uusd, 0);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_SAVE).ms, 100);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, 600000 - 100);
    assert_int_equal(model_job(l.m, 1)->row.cost_uusd, 250000);
    lab_deinit(&l);
}

static void an_attempt_that_never_started_is_all_lost(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_wait(&l, 20000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, 20000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, 0);
    assert_int_equal(model_job(l.m, 1)->row.lost_ms, 0); /* but no work is repeated */
    lab_deinit(&l);
}

static void boot_and_idle_are_what_attempts_leave(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 2); /* half of the machine */
    lab_started(&l, 1);
    lab_wait(&l, 600000);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_wait(&l, 300000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).ms, 60000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).uusd, core_cost_uusd(60000, 1000000));
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, 600000);
    assert_int_equal(
        lab_ledger_sum(&l, LEDGER_USEFUL).uusd, 83333); /* half of 166667, rounded down */
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).ms, 300000 + 300000);
    assert_int_equal(all_uusd(&l), core_cost_uusd(960000, 1000000));
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).on_demand_uusd +
                         lab_ledger_sum(&l, LEDGER_IDLE).on_demand_uusd,
        0);
    lab_deinit(&l);
}

/* A job paid for an hour, then it takes 15 minutes until the end is noticed. Returns the idle
 * time. */
static int64_t idle_ms_when_gone_at(int64_t after_job_ms)
{
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    lab_wait(&l, HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    const struct wall over = l.now.wall;
    lab_wait(&l, HOUR / 4);
    gone_at(&l, (struct wall){over.ms + after_job_ms});
    lab_take(&l);
    int64_t idle_ms = lab_ledger_sum(&l, LEDGER_IDLE).ms;
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).uusd, 1000000);
    assert_int_equal(all_uusd(&l), core_cost_uusd(60000 + HOUR + idle_ms, 1000000));
    lab_deinit(&l);
    return idle_ms;
}

static void a_machine_is_paid_until_it_ended_not_until_that_was_seen(void **state)
{
    (void)state;
    assert_int_equal(idle_ms_when_gone_at(60000), 60000);
    assert_int_equal(idle_ms_when_gone_at(0), 0);
}

static void the_provider_is_believed_as_far_as_it_can_be_true(void **state)
{
    (void)state;
    /* a job ended later: its charge is corrected */
    assert_int_equal(idle_ms_when_gone_at(-60000), -60000);
    assert_int_equal(
        /* before the launch was decided: implausible */
        idle_ms_when_gone_at(-100 * (int64_t)HOUR), HOUR / 4);
    assert_int_equal(idle_ms_when_gone_at(HOUR), HOUR / 4); /* in the future */
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    lab_wait(&l, HOUR);
    /* as far as known, a job was running until now */
    gone_at(&l, (struct wall){l.now.wall.ms - HOUR / 2});
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, HOUR); /* of its time */
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).node_ms, HOUR / 2);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).uusd, 500000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).uusd, 0);
    lab_deinit(&l);
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 5000);
    lab_launched(&l, 1);
    lab_wait(&l, 90000);
    /* it never joined, and ended at once after its launch */
    gone_at(&l, (struct wall){l.now.wall.ms - 92000});
    lab_take(&l);
    assert_int_equal(all_uusd(&l), 0);
    lab_deinit(&l);
}

/* $1/h for half an hour, then $4/h: an attempt that spans both pays both, boot and idle at
 * theirs. */
static void every_stretch_costs_what_was_in_force(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 2);
    lab_started(&l, 1);
    lab_wait(&l, HOUR / 2);
    lab_apply(
        &l, (struct event){.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000}});
    assert_int_equal(model_node(l.m, 1)->row.price_uusd_h, 4000000);
    lab_wait(&l, HOUR / 2);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_wait(&l, HOUR / 4);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).uusd, 16667);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).uusd, (500000 + 2000000) / 2);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).uusd, (500000 + 2000000) / 2 + 1000000);
    lab_deinit(&l);
}

/* Work saved before the price rose is useful at the low price; work lost afterwards costs the high
 * one. */
static void each_part_of_an_attempt_costs_what_was_in_force_in_it(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_wait(&l, 36000); /* restoring, until it starts */
    lab_started(&l, 1);
    lab_wait(&l, HOUR - 36000);
    lab_saved(&l, 1, 1, 5);
    lab_apply(&l, (struct event){.type = EV_PRICE,
                      .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000, WALL_NONE}});
    lab_wait(&l, HOUR / 2);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).uusd, 10000);
    assert_int_equal(
        lab_ledger_sum(&l, LEDGER_USEFUL).uusd + lab_ledger_sum(&l, LEDGER_SAVE).uusd, 990000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).uusd, 2000000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, HOUR / 2);
    lab_deinit(&l);
}

/* It was launched before the report, and a price reported now has been in force for 15 minutes. */
static void a_late_report_counts_from_the_time_that_it_is_about(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 60000);
    struct event launched = {
        .type = EV_LAUNCHED, .launched = {.instance = 1, .provider_id = "i-1"}};
    launched.launched.launched_at.ms = l.now.wall.ms - 30000;
    lab_apply(&l, launched);
    lab_wait(&l, HOUR - 30000);
    struct wall since = {l.now.wall.ms - HOUR / 4};
    lab_apply(&l,
        (struct event){.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000, since}});
    lab_wait(&l, HOUR);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).ms, 2 * HOUR);
    assert_int_equal(all_uusd(&l), 750000 + 5000000);
    lab_deinit(&l);
}

/* Its agent was seen first, and its price had changed before the provider reported its launch
 * time. */
static void a_launch_reported_after_a_price_change_counts_at_the_price_before(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 60000);
    lab_join_instance(&l, 1, 4);
    struct event launched = {
        .type = EV_LAUNCHED, .launched = {.instance = 1, .provider_id = "i-1"}};
    launched.launched.launched_at.ms = l.now.wall.ms - 36000;
    lab_wait(&l, HOUR);
    lab_apply(&l, (struct event){.type = EV_PRICE,
                      .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000, WALL_NONE}});
    lab_wait(&l, HOUR);
    lab_apply(&l, launched);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).ms, 36000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).uusd, 10000);
    assert_int_equal(all_uusd(&l), 10000 + 1000000 + 4000000);
    lab_deinit(&l);
}

/* It was launched with alternatives, and is of another type than assumed when its agent joined: the
 * former type's cost does not apply. */
static void a_machine_that_is_another_never_had_the_prices_of_the_first(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    const struct resources total = model_offer(l.m, 1)->row.total;
    lab_offer(&l, "burst", "m6", MARKET_SPOT, 0, total, 1200000);
    struct pool_row p = lab_pool(&l, "burst");
    p.fleet = true;
    lab_set_pool(&l, p);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 60000);
    lab_join_instance(&l, 1, 4);
    struct event launched = {.type = EV_LAUNCHED,
        .launched = {.instance = 1, .provider_id = "i-1", .zone = "z1", .type = "m6"}};
    launched.launched.launched_at.ms = l.now.wall.ms - 36000;
    lab_wait(&l, HOUR);
    lab_apply(&l, (struct event){.type = EV_PRICE,
                      .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000, WALL_NONE}});
    lab_wait(&l, HOUR);
    lab_apply(&l, launched);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).uusd, 12000);
    assert_int_equal(all_uusd(&l), 12000 + 2400000);
    lab_deinit(&l);
}

/* The agent was seen, the provider reports the instance only at its end; and its price had changed
 * before the agent joined. */
static void what_only_the_agent_reported_is_corrected_at_the_end(void **state)
{
    (void)state;
    for (int has_price = 0; has_price < 2; has_price++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 1, "m5", 4);
        lab_submit_cpus(&l, 4);
        lab_plan(&l);
        struct wall launched = l.now.wall;
        lab_wait(&l, 36000);
        struct wall since = l.now.wall;
        lab_wait(&l, 36000);
        lab_join_instance(&l, 1, 4);
        if (has_price)
            lab_apply(&l, (struct event){.type = EV_PRICE,
                              .price = {"r1", "z1", "m5", MARKET_SPOT, 4000000, since}});
        lab_wait(&l, HOUR);
        assert_int_equal(core_instance_uusd(&model_instance(l.m, 1)->row, l.now.wall),
            has_price ? 4000000 : 1000000);
        lab_apply(&l, (struct event){.type = EV_INSTANCE_GONE,
                          .gone = {.instance = 1,
                              .launched_at = launched,
                              .ended_at = l.now.wall,
                              .text = "gone"}});
        lab_take(&l);
        assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).ms, 72000);
        assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).uusd, has_price ? 10000 + 40000 : 20000);
        assert_int_equal(all_uusd(&l), has_price ? 10000 + 40000 + 4000000 : 20000 + 1000000);
        lab_deinit(&l);
    }
}

/* The same, but the provider reports it while a job runs there, which pays only for its own
 * time. */
static void a_job_on_an_unreported_machine_pays_as_before_the_report(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    struct event launched = {.type = EV_LAUNCHED,
        .launched = {.instance = 1, .provider_id = "i-1", .launched_at = l.now.wall}};
    lab_wait(&l, 36000);
    lab_join_instance(&l, 1, 4);
    lab_plan(&l);
    lab_wait(&l, 36000);
    lab_started(&l, job);
    lab_apply(&l, launched);
    lab_wait(&l, HOUR);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).uusd, 10000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).uusd, 1000000);
    lab_deinit(&l);
}

/* Two of four nodes join a minute before the others, and one rank starts half a minute later. */
static void a_gang_waits_for_its_last_node_and_its_last_rank(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row gang = lab_job(4);
    gang.spec.nodes = 3;
    lab_join(&l, "n1", 4);
    lab_wait(&l, 10000); /* no job needs it yet */
    lab_submit(&l, &gang);
    lab_join(&l, "n2", 4);
    lab_plan(&l);
    lab_wait(&l, 60000);
    for (int64_t node = 1; node <= 2; node++)
        lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    lab_join(&l, "n3", 4);
    lab_plan(&l);
    lab_wait(&l, 1000);
    for (int64_t node = 1; node <= 3; node++) {
        lab_wait(&l, node == 3 ? 30000 : 0);
        lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                          .started = {.job = 1, .attempt = 1, .node = node}});
    }
    lab_wait(&l, HOUR);
    for (int64_t node = 1; node <= 3; node++)
        lab_apply(&l, (struct event){.type = EV_ATTEMPT_ENDED,
                          .ended = {.job = 1, .attempt = 1, .node = node, .end = END_SUCCEEDED}});
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_GANG_WAIT).ms, 2 * 60000 + 2 * 30000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_START).ms, 3 * 1000 + 30000);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, 3 * HOUR);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, all_uusd(&l));
    lab_deinit(&l);
}

/* A reserved node's idle time is written at a change of day, with or without a job, and when it is
 * removed. */
static void an_owned_node_is_idle_where_nobody_uses_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_wait(&l, 24 * HOUR);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).ms, 18 * HOUR); /* three quarters of it */
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).uusd, 9000000);
    lab_apply(&l, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = node});
    lab_wait(&l, HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).ms, 0);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).node_ms, 25 * HOUR / 4);
    lab_wait(&l, HOUR);
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = node});
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).ms, 3 * HOUR / 4 + HOUR);
    lab_deinit(&l);
}

static void a_machine_that_never_joined_was_only_boot(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_launched(&l, 1);
    lab_wait(&l, 90000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_BOOT).ms, 90000);
    assert_int_equal(all_uusd(&l), 25000);
    assert_int_equal(l.c.n_ledger, 1);
    lab_deinit(&l);
}

static void an_intent_that_came_to_nothing_costs_nothing(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 90000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(l.c.n_ledger, 0);
    lab_deinit(&l);
}

/* One uses all cpus but one, the other nearly all memory: their dominant shares add up to more than
 * one machine. */
static void jobs_together_never_pay_more_than_their_machine(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    struct job_row cpus = lab_job(3), memory = lab_job(1);
    memory.spec.need.memory_mib = 14000;
    lab_submit(&l, &cpus);
    lab_submit(&l, &memory);
    lab_plan(&l);
    lab_launched(&l, 1);
    lab_join_instance(&l, 1, 4);
    lab_plan(&l);
    lab_take(&l);
    lab_wait(&l, HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_ended(&l, 2, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 750000);
    /* the remainder of the dollar, not 854492 */
    assert_int_equal(lab_row(&l, 2)->cost_uusd, 250000);
    gone(&l);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_IDLE).uusd, 0);
    lab_deinit(&l);
}

static void a_clock_set_back_makes_no_negative_time(void **state)
{
    (void)state;
    struct lab l;
    lab_start_rented(&l, 1, 4);
    lab_started(&l, 1);
    lab_wait(&l, 600000);
    l.now.wall.ms -= 2 * HOUR;
    lab_ended(&l, 1, END_FAILED, 1);
    gone(&l);
    lab_take(&l);
    for (size_t k = 0; k < l.c.n_ledger; k++)
        assert_true(l.c.ledger[k].ms >= 0 && l.c.ledger[k].uusd >= 0);
    lab_deinit(&l);
}

static void an_owned_node_is_charged_to_its_jobs(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_wait(&l, 4 * HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_row(&l, 1)->cost_uusd, 500000); /* a quarter of $0.50/h, 4 hours */
    assert_int_equal(lab_row(&l, 1)->on_demand_uusd, 500000);
    lab_deinit(&l);
}

/* The newest checkpoint was damaged, and one of half an hour before was used: that half hour is
 * useful in the first attempt's rows. */
static void what_is_done_again_from_behind_is_lost(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_wait(&l, HOUR);
    lab_saved(&l, 1, 2, 5);
    lab_wait(&l, 1000);
    lab_ended(&l, 1, END_RECLAIMED, 0);
    lab_heartbeats(&l);
    lab_plan(&l);
    lab_take(&l);
    int64_t lost_ms = model_job(l.m, 1)->row.lost_ms;
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = 1,
                          .attempt = 2,
                          .node = lab_node_of(&l, 1),
                          .restored = {1, 1},
                          .restored_progress = 3,
                          .behind_ms = HOUR / 2}});
    assert_int_equal(model_job(l.m, 1)->row.lost_ms, lost_ms + HOUR / 2);
    lab_wait(&l, HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).ms, HOUR / 2);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_USEFUL).ms, HOUR / 2);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).uusd, lab_ledger_sum(&l, LEDGER_USEFUL).uusd);
    assert_int_equal(lab_ledger_sum(&l, LEDGER_LOST).on_demand_uusd, 0);
    lab_deinit(&l);
}

/* The attempt starts from scratch. behind_ms: useful time in the ledger by then; again: an earlier
 * attempt started in the same way. */
static void begin_anew(struct lab *l, int64_t attempt, int64_t behind_ms, bool again)
{
    lab_plan(l);
    lab_apply(l, (struct event){.type = EV_ATTEMPT_STARTED,
                     .started = {.job = 1,
                         .attempt = attempt,
                         .node = lab_node_of(l, 1),
                         .restored_progress = PROGRESS_NONE,
                         .behind_ms = behind_ms,
                         .behind_already_counted = again}});
}

/* Two hours were saved and discarded. The attempt that was to start over never starts, the next one
 * is lost after half an hour, and the third does all of the work. The job has lost the two hours
 * once, and the ledger's useful time is exactly the work. */
static void what_is_given_up_becomes_lost_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_wait(&l, 2 * HOUR);
    lab_saved(&l, 1, 1, 5);
    lab_ended(&l, 1, END_STORE, 0);
    lab_take(&l);
    const int64_t given_up = lab_ledger_sum(&l, LEDGER_USEFUL).ms;
    assert_true(given_up > HOUR);
    lab_apply(&l, (struct event){.type = EV_RELEASE,
                      .release = {.job = 1, .by = "ann", .from_scratch = true}});
    lab_heartbeats(&l);
    lab_plan(&l);
    lab_ended(&l, 1, END_RECLAIMED, 0);
    begin_anew(&l, 3, given_up, false);
    assert_int_equal(model_job(l.m, 1)->row.lost_ms, given_up);
    lab_wait(&l, HOUR / 2);
    lab_ended(&l, 1, END_RECLAIMED, 0);
    lab_heartbeats(&l);
    begin_anew(&l, 4, given_up, true);
    assert_int_equal(model_job(l.m, 1)->row.lost_ms, given_up + HOUR / 2);
    lab_wait(&l, 3 * HOUR);
    lab_ended(&l, 1, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(given_up + lab_ledger_sum(&l, LEDGER_USEFUL).ms, 3 * HOUR);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_is_useful_but_for_its_start_and_saves),
        cmocka_unit_test(a_restore_would_not_have_been_paid_on_demand),
        cmocka_unit_test(a_running_attempt_shows_what_it_will_be_charged),
        cmocka_unit_test(what_was_not_saved_is_lost),
        cmocka_unit_test(an_attempt_that_never_started_is_all_lost),
        cmocka_unit_test(boot_and_idle_are_what_attempts_leave),
        cmocka_unit_test(a_machine_is_paid_until_it_ended_not_until_that_was_seen),
        cmocka_unit_test(the_provider_is_believed_as_far_as_it_can_be_true),
        cmocka_unit_test(every_stretch_costs_what_was_in_force),
        cmocka_unit_test(each_part_of_an_attempt_costs_what_was_in_force_in_it),
        cmocka_unit_test(a_late_report_counts_from_the_time_that_it_is_about),
        cmocka_unit_test(a_launch_reported_after_a_price_change_counts_at_the_price_before),
        cmocka_unit_test(a_machine_that_is_another_never_had_the_prices_of_the_first),
        cmocka_unit_test(what_only_the_agent_reported_is_corrected_at_the_end),
        cmocka_unit_test(a_job_on_an_unreported_machine_pays_as_before_the_report),
        cmocka_unit_test(a_gang_waits_for_its_last_node_and_its_last_rank),
        cmocka_unit_test(an_owned_node_is_idle_where_nobody_uses_it),
        cmocka_unit_test(a_machine_that_never_joined_was_only_boot),
        cmocka_unit_test(an_intent_that_came_to_nothing_costs_nothing),
        cmocka_unit_test(jobs_together_never_pay_more_than_their_machine),
        cmocka_unit_test(a_clock_set_back_makes_no_negative_time),
        cmocka_unit_test(an_owned_node_is_charged_to_its_jobs),
        cmocka_unit_test(what_is_done_again_from_behind_is_lost),
        cmocka_unit_test(what_is_given_up_becomes_lost_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
