/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves of jobs to machines that cost less, and launches with alternatives.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/supply/alternatives.h"
#include "scheduler/core/supply/offers.h"
#include "scheduler/core/supply/offer_avoid.h"
#include <stdio.h>

#define HOUR 3600000

/* ---- moves to lower cost ---- */

/* Spot is refused, so the job runs on-demand; it has saved. */
static void in_a_drought_asking(struct lab *l, int64_t return_ms, const char *constraints)
{
    struct job_row r = lab_job(4);
    lab_init(l);
    lab_elastic(l, "burst", 4, "m5", 4);
    struct pool_row p = lab_pool(l, "burst");
    p.return_ms = return_ms;
    lab_set_pool(l, p);
    lab_submit_asking(l, &r, constraints);
    lab_plan(l);
    lab_apply(l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {1, true, "no capacity"}});
    lab_plan(l);
    assert_int_equal(model_instance(l->m, 2)->row.market, MARKET_ON_DEMAND);
    lab_bring_up(l, 2, 4);
    lab_plan(l);
    lab_started(l, 1);
    lab_saved(l, 1, 1, 10);
}

static void in_a_drought(struct lab *l, int64_t return_ms)
{
    in_a_drought_asking(l, return_ms, "");
}

static void wait_with_heartbeats(struct lab *l, int64_t ms)
{
    for (; ms > 0; ms -= 10000) {
        lab_wait(l, 10000);
        lab_heartbeats(l);
    }
}

static void after_a_drought_a_job_returns_to_spot(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    wait_with_heartbeats(&l, 590000);
    assert_int_equal(lab_plan(&l), 0); /* spot is available again, but not yet allowed */
    lab_check_wake(&l);
    wait_with_heartbeats(&l, 10000);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(model_instance(l.m, 3)->row.market, MARKET_SPOT);
    /* it continues until there is a place */
    assert_int_equal(job_attempt(model_job(l.m, 1))->row.state, ATTEMPT_RUNNING);
    lab_bring_up(&l, 3, 4);
    assert_int_equal(lab_plan(&l), 1);
    const struct attempt *a = job_attempt(model_job(l.m, 1));
    assert_int_equal(a->row.state, ATTEMPT_STOPPING);
    assert_true(a->row.save_first);
    assert_int_equal(a->row.stop_reason, END_EVICTED);
    assert_int_equal(lab_plan(&l), 0); /* its place is reserved; no second machine */
    lab_saved(&l, 1, 2, 20);
    lab_ended(&l, 1, END_EVICTED, 0);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, 1), model_instance(l.m, 3)->node->row.id);
    lab_deinit(&l);
}

/* Its save takes longer than idle machines are kept. */
static void the_machine_that_a_job_moves_to_is_kept_for_it(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    wait_with_heartbeats(&l, 600000);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 3, 4);
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(job_attempt(model_job(l.m, 1))->row.state, ATTEMPT_STOPPING);
    wait_with_heartbeats(&l, 2 * (LAB_IDLE_MS + LAB_COOLDOWN_MS));
    assert_int_equal(lab_plan(&l), 0);
    lab_saved(&l, 1, 2, 20);
    lab_ended(&l, 1, END_EVICTED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), node);
    lab_deinit(&l);
}

static void a_drought_that_lasts_costs_no_work(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    int64_t next = 3, tries = 0;
    for (int k = 0; k < 360; k++) { /* an hour */
        wait_with_heartbeats(&l, 10000);
        lab_plan(&l);
        for (; model_instance(l.m, next); next++, tries++)
            lab_apply(&l,
                (struct event){.type = EV_LAUNCH_REFUSED, .refused = {next, true, "no capacity"}});
    }
    assert_int_equal(model_job(l.m, 1)->row.attempts, 1);
    assert_true(tries >= 4 && tries <= 12); /* at growing intervals */
    lab_deinit(&l);
}

static void a_job_that_has_not_saved_is_not_moved(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    job_attempt(model_job(l.m, 1))->save_failed = true;
    wait_with_heartbeats(&l, 1200000);
    assert_int_equal(lab_plan(&l), 0);
    lab_deinit(&l);
}

static void a_job_that_requires_on_demand_is_not_moved(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.return_ms = 60000;
    lab_set_pool(&l, p);
    struct job_row j = lab_job(4);
    j.spec.market = WISH_ON_DEMAND;
    lab_submit(&l, &j);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_started(&l, 1);
    lab_saved(&l, 1, 1, 10);
    wait_with_heartbeats(&l, 1200000);
    assert_int_equal(lab_plan(&l), 0);
    lab_deinit(&l);
}

static void a_small_saving_is_not_worth_a_move(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    lab_apply(
        &l, (struct event){.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 2900000}});
    wait_with_heartbeats(&l, 1200000);
    assert_int_equal(lab_plan(&l), 0);
    lab_deinit(&l);
}

/* On-demand at $3 is at the place of its input; with a spot node at $1 the input would be read
 * again for $12.60, or for 9 cents. */
static void a_move_to_where_its_input_is_far_has_to_pay_for_reading_it(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        bool moves;
    } cases[] = {
        {"input=aws/r1:150323855360", false}, {"input=aws/r1:1073741824", true}, {"", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab l;
        in_a_drought_asking(&l, 600000, cases[i].input);
        lab_apply(&l,
            (struct event){.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 2900000}});
        lab_elastic(&l, "far", 1, "n2", 4);
        struct pool_row far = lab_pool(&l, "far");
        STR_COPY(far.provider, "gcp");
        STR_COPY(far.region, "us-central1");
        far.idle_timeout_ms = 10 * 3600000;
        lab_set_pool(&l, far);
        int64_t other = lab_submit_pool(&l, 4, "far", WISH_ANY);
        lab_plan(&l);
        lab_bring_up(&l, 3, 4);
        lab_plan(&l);
        lab_started(&l, other);
        lab_ended(&l, other, END_SUCCEEDED, 0);
        wait_with_heartbeats(&l, 600000);
        lab_plan(&l);
        assert_int_equal(job_attempt(model_job(l.m, 1))->row.state,
            cases[i].moves ? ATTEMPT_STOPPING : ATTEMPT_RUNNING);
        lab_deinit(&l);
    }
}

static void an_owned_node_that_is_free_is_returned_to_at_once(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 600000);
    wait_with_heartbeats(&l, 600000);
    int64_t owned = lab_join(&l, "rack1", 4);
    assert_int_equal(lab_plan(&l), 1);
    lab_ended(&l, 1, END_EVICTED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), owned);
    lab_deinit(&l);
}

/* ---- launches with alternatives ---- */

static int64_t kind(
    struct lab *l, const char *zone, const char *type, struct resources total, int64_t uusd_h)
{
    struct offer_row r = {.pool = "burst",
        .market = MARKET_SPOT,
        .total = total,
        .price_uusd_h = uusd_h,
        .on_demand_uusd_h = 2 * uusd_h};
    STR_COPY(r.zone, zone);
    STR_COPY(r.type, type);
    return lab_apply(l, (struct event){.type = EV_OFFER, .offer = &r});
}

static void fleet(struct lab *l)
{
    lab_init(l);
    lab_elastic(l, "burst", 10, "m5", 4); /* offers 1 and 2, in z1, of 4 cpus */
    struct pool_row p = lab_pool(l, "burst");
    p.fleet = true;
    lab_set_pool(l, p);
}

static const struct resources SMALL = {.cpus = 2, .memory_mib = 8192},
                              LARGE = {.cpus = 8, .memory_mib = 65536},
                              GPU = {.cpus = 4, .gpus = 1, .memory_mib = 65536};

static void a_fleet_launch_names_its_alternatives_best_first(void **state)
{
    (void)state;
    struct lab l;
    fleet(&l);
    int64_t third = kind(&l, "z3", "m5", LARGE, 1300000),
            second = kind(&l, "z2", "m5", LARGE, 1100000);
    kind(&l, "z1", "small", SMALL, 1000001);
    kind(&l, "z1", "dear", LARGE, 1600000);
    int64_t avoided = kind(&l, "z1", "avoided", LARGE, 1050000);
    offer_avoid(l.m, model_offer(l.m, avoided), l.now, false, "no capacity");
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    const struct instance *i = model_instance(l.m, 1);
    const struct offer *list[INSTANCE_ALTERNATIVES_MAX];
    assert_int_equal(i->offer->row.id, 1);
    assert_int_equal(core_alternatives(l.m, i, list), 2);
    assert_int_equal(list[0]->row.id, second);
    assert_int_equal(list[1]->row.id, third);
    /* They stay, even if the offers change. */
    offer_avoid(l.m, model_offer(l.m, second), l.now, true, "no capacity");
    assert_int_equal(core_alternatives(l.m, i, list), 2);
    lab_deinit(&l);
}

static void without_fleet_there_is_no_alternative(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    kind(&l, "z2", "m5", LARGE, 1100000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_string_equal(model_instance(l.m, 1)->row.alternatives, "");
    lab_deinit(&l);
}

static void an_alternative_takes_no_more_of_a_limit(void **state)
{
    (void)state;
    struct lab l;
    const struct offer *list[2];
    fleet(&l);
    kind(&l, "z2", "m5", LARGE, 1100000);
    kind(&l, "z2", "gpu", GPU, 1000000);
    const struct offer *first = model_offer(l.m, 1);
    assert_int_equal(launch_alternatives(l.m, first, l.now, list, 2), 2);
    struct pool_row p = lab_pool(&l, "burst");
    p.max_gpus = 4;
    lab_set_pool(&l, p);
    assert_int_equal(launch_alternatives(l.m, first, l.now, list, 2), 1);
    p.max_uusd_h = 9000000;
    lab_set_pool(&l, p);
    assert_int_equal(launch_alternatives(l.m, first, l.now, list, 2), 0);
    lab_deinit(&l);
}

/* Only the best of many are named. */
static void alternatives_are_bounded(void **state)
{
    (void)state;
    struct lab l;
    const struct offer *list[3];
    fleet(&l);
    for (int k = 40; k > 0; k--) {
        char zone[32];
        snprintf(zone, sizeof zone, "y%d", k);
        kind(&l, zone, "m5", LARGE, 1000000 + k * 1000);
    }
    assert_int_equal(launch_alternatives(l.m, model_offer(l.m, 1), l.now, list, 3), 3);
    assert_string_equal(list[0]->row.zone, "y1");
    assert_string_equal(list[1]->row.zone, "y2");
    assert_string_equal(list[2]->row.zone, "y3");
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    const struct offer *all[INSTANCE_ALTERNATIVES_MAX];
    assert_int_equal(
        core_alternatives(l.m, model_instance(l.m, 1), all), INSTANCE_ALTERNATIVES_MAX);
    lab_deinit(&l);
}

static void answered(struct lab *l, const char *zone, const char *type)
{
    struct event ev = {.type = EV_LAUNCHED, .launched = {.instance = 1, .provider_id = "i-1"}};
    STR_COPY(ev.launched.zone, zone);
    STR_COPY(ev.launched.type, type);
    lab_apply(l, ev);
}

static void the_answer_names_the_chosen_offer(void **state)
{
    (void)state;
    struct lab l;
    fleet(&l);
    int64_t other = kind(&l, "z2", "m5", LARGE, 1100000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_wait(&l, 1000);
    answered(&l, "z2", "m5");
    const struct instance *i = model_instance(l.m, 1);
    const struct offer *o = model_offer(l.m, other);
    assert_ptr_equal(i->offer, o);
    assert_string_equal(i->row.zone, "z2");
    assert_int_equal(i->row.price_uusd_h, 1100000);
    assert_int_equal(i->row.on_demand_uusd_h, 2200000);
    assert_int_equal(model_used(l.m).uusd_h, 1100000);
    assert_int_equal(model_offer(l.m, 1)->n_live, 0);
    assert_int_equal(o->n_live, 1);
    assert_int_equal(lab_launches(&l, other), 1);
    /* Its whole life costs the new price, and observations count for its actual offer. */
    lab_join_instance(&l, 1, 8);
    assert_int_equal(o->row.boots, 1);
    lab_wait(&l, HOUR);
    assert_int_equal(core_instance_uusd(&i->row, l.now.wall), 1100000);
    answered(&l, "z2", "m5"); /* repeated: no effect */
    assert_int_equal(lab_launches(&l, other), 1);
    lab_deinit(&l);
}

static void an_answer_with_a_place_that_was_not_named_changes_nothing(void **state)
{
    (void)state;
    struct lab l;
    fleet(&l);
    int64_t late = kind(&l, "z2", "m5", LARGE, 5000000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    answered(&l, "z2", "m5");
    assert_int_equal(model_instance(l.m, 1)->offer->row.id, 1);
    assert_int_equal(lab_launches(&l, late), 0);
    assert_string_equal(model_instance(l.m, 1)->row.provider_id, "i-1");
    lab_deinit(&l);
}

/* The agent joined before the answer: the actual offer's price applies since the launch. */
static void a_late_answer_moves_a_running_machine(void **state)
{
    (void)state;
    struct lab l;
    fleet(&l);
    int64_t other = kind(&l, "z2", "m5", LARGE, 1200000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    int64_t node = lab_join_instance(&l, 1, 8);
    lab_wait(&l, HOUR);
    answered(&l, "z2", "");
    lab_wait(&l, HOUR);
    const struct instance *i = model_instance(l.m, 1);
    assert_int_equal(i->offer->row.id, other);
    assert_int_equal(i->row.state, INSTANCE_RUNNING);
    assert_int_equal(core_instance_uusd(&i->row, l.now.wall), 2 * 1200000);
    assert_int_equal(model_node(l.m, node)->row.price_uusd_h, 1200000);
    assert_int_equal(model_node(l.m, node)->row.on_demand_uusd_h, 2400000);
    lab_deinit(&l);
}

static void a_place_that_refused_is_avoided_even_if_the_launch_succeeded(void **state)
{
    (void)state;
    struct lab l;
    fleet(&l);
    int64_t other = kind(&l, "z2", "m5", LARGE, 1100000);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    struct event ev = {.type = EV_OFFER_REFUSED,
        .offer_refused = {
            .instance = 1, .zone = "z2", .type = "m5", .is_temporary = true, .text = "none left"}};
    lab_apply(&l, ev);
    lab_take(&l);
    const struct offer *o = model_offer(l.m, other);
    assert_int_equal(o->row.refusals, 1);
    assert_int_equal(o->row.avoid_until.ms, l.now.mono.ms + LAB_BACKOFF_MS);
    assert_string_equal(
        lab_history(&l, "offer-refused")->text, "m5 spot in z2: none left; avoided for 10s");
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_INTENDED);
    STR_COPY(ev.offer_refused.zone, "z9"); /* of no offer: ignored */
    lab_apply(&l, ev);
    ev.offer_refused.instance = 77;
    lab_apply(&l, ev);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_drought_a_job_returns_to_spot),
        cmocka_unit_test(the_machine_that_a_job_moves_to_is_kept_for_it),
        cmocka_unit_test(a_drought_that_lasts_costs_no_work),
        cmocka_unit_test(a_job_that_has_not_saved_is_not_moved),
        cmocka_unit_test(a_job_that_requires_on_demand_is_not_moved),
        cmocka_unit_test(a_small_saving_is_not_worth_a_move),
        cmocka_unit_test(a_move_to_where_its_input_is_far_has_to_pay_for_reading_it),
        cmocka_unit_test(an_owned_node_that_is_free_is_returned_to_at_once),
        cmocka_unit_test(a_fleet_launch_names_its_alternatives_best_first),
        cmocka_unit_test(without_fleet_there_is_no_alternative),
        cmocka_unit_test(an_alternative_takes_no_more_of_a_limit),
        cmocka_unit_test(alternatives_are_bounded),
        cmocka_unit_test(the_answer_names_the_chosen_offer),
        cmocka_unit_test(an_answer_with_a_place_that_was_not_named_changes_nothing),
        cmocka_unit_test(a_late_answer_moves_a_running_machine),
        cmocka_unit_test(a_place_that_refused_is_avoided_even_if_the_launch_succeeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
