/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: refusals, lost replies, crashes between intent and answer, alternative offers.
 */
#include "tests/scheduler/rig.h"

#include "base/str.h"
#include <string.h>

/* ---- launching ---- */

static void a_launch_leaves_after_its_intent_is_on_disk(void **state)
{
    struct fixture *f = *state;
    f->lab->by_hand = true;
    lab_submit(f->lab, 4, NULL);
    lab_tick(f->lab);
    assert_int_equal(f->lab->under_way->changes.n_instances, 1);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 0);
    lab_commit(f->lab, 0);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    f->lab->by_hand = false;
    const struct call *c = rig_last(f, CALL_LAUNCH);
    assert_string_equal(c->token, rig_instance(f, 1)->row.token);
    assert_string_equal(c->zone, "z");
    assert_int_equal(c->market, CLOUD_SPOT);
    assert_non_null(strstr(c->user_data, c->token));
    rig_settle(f);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_string_equal(rig_instance(f, 1)->row.provider_id, "i-1");
}

static void a_definite_refusal_ends_the_intent_and_nothing_else_does(void **state)
{
    static const struct {
        enum err_kind kind;
        bool definite;
    } kinds[] = {{ERR_NO_CAPACITY, true}, {ERR_QUOTA, true}, {ERR_DENIED, true}, {ERR_CONFIG, true},
        {ERR_UNSUPPORTED, true}, {ERR_CONFLICT, true}, {ERR_NO_CREDENTIALS, true},
        {ERR_TIMEOUT, false}, {ERR_IO, false}, {ERR_THROTTLED, false}, {ERR_UNAVAILABLE, false},
        {ERR_INVALID, false}, {ERR_NOT_FOUND, false}, {ERR_CORRUPT, false}, {ERR_INTERNAL, false}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct fixture *f = *state;
        f->launch_error = kinds[i].kind;
        rig_demand(f);
        rig_pass(f, 1000);
        assert_int_equal(rig_instance(f, 1) == NULL, kinds[i].definite);
        assert_int_equal(rig_stats(f).refusals > 0, kinds[i].definite);
        rig_teardown(state);
        rig_setup(state);
    }
}

static void lost_replies_are_repeated_under_the_same_token(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    rig_pass(f, 200000);
    size_t n = rig_count(f, CALL_LAUNCH);
    assert_true(n > 6); /* it continues after the tries of one launch */
    for (size_t i = 0; i < f->n_calls; i++)
        if (f->calls[i].kind == CALL_LAUNCH) {
            assert_string_equal(f->calls[i].token, rig_instance(f, 1)->row.token);
            assert_string_equal(f->calls[i].user_data, rig_last(f, CALL_LAUNCH)->user_data);
        }
    assert_int_equal(rig_stats(f).refusals, 0);
    f->launch_error = ERR_NONE;
    rig_pass(f, 60000);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(f->n_machines, 1);
}

static void a_machine_whose_reply_was_lost_is_found_by_its_token(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token); /* it was launched all the same */
    rig_pass(f, 2 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_string_equal(rig_instance(f, 1)->row.provider_id, "i-1");
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    assert_int_equal(rig_stats(f).strays, 0);
}

/* A machine for each of n jobs. */
static void demand(struct fixture *f, int n)
{
    for (int i = 0; i < n; i++)
        lab_submit(f->lab, 4, NULL);
    rig_settle(f);
}

static void set_rate(struct fixture *f, int64_t per_minute)
{
    f->pool.launches_per_minute = per_minute;
    provision_add_pool(f->lab->provision, &f->pool);
}

static void launches_leave_at_the_rate_of_the_pool(void **state)
{
    struct fixture *f = *state;
    set_rate(f, 60);
    demand(f, 4);
    for (size_t n = 1; n <= 4; n++) {
        assert_int_equal(rig_count(f, CALL_LAUNCH), n);
        rig_pass(f, 999);
        assert_int_equal(rig_count(f, CALL_LAUNCH), n);
        rig_pass(f, 1);
    }
    assert_int_equal(f->n_machines, 4);
}

static void a_pool_that_moves_takes_its_rate_along(void **state)
{
    struct fixture *f = *state;
    struct provision_pool moves = {
        .name = "moves", .driver = &f->driver, .region = "r", .launches_per_minute = 60};
    provision_add_pool(f->lab->provision, &moves);
    demand(f, 2);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1); /* the other pool of the region sets none */
    moves.region = "elsewhere";
    provision_add_pool(f->lab->provision, &moves);
    rig_pass(f, 1); /* the new rate applies at once to waiting launches */
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    demand(f, 2);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 4);
}

static void a_restart_does_not_launch_faster(void **state)
{
    struct fixture *f = *state;
    set_rate(f, 60);
    demand(f, 4);
    rig_restart(f);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2); /* the bucket, of one token, is full again */
    rig_pass(f, 3000);
    assert_int_equal(f->n_machines, 4);
    for (int64_t id = 1; id <= 4; id++)
        assert_int_equal(rig_instance(f, id)->row.state, INSTANCE_LAUNCHED);
}

static void what_is_ended_while_it_waits_for_its_turn_is_never_launched(void **state)
{
    struct fixture *f = *state;
    set_rate(f, 1);
    demand(f, 3);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    for (int64_t id = 1; id <= 3; id++)
        lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = id}}, NULL);
    for (int64_t id = 2; id <= 3; id++)
        lab_post(f->lab, (struct event){.type = EV_END_INSTANCE, .end_instance = {.instance = id}},
            NULL);
    rig_settle(f);
    rig_pass(f, 200000);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    assert_null(rig_instance(f, 2));
    assert_null(rig_instance(f, 3));
}

static void a_throttled_launch_slows_the_others_down(void **state)
{
    struct fixture *f = *state;
    set_rate(f, 6);
    f->launch_error = ERR_THROTTLED;
    rig_demand(f);
    size_t before = rig_count(f, CALL_LAUNCH);
    f->launch_error = ERR_NONE;
    rig_pass(f, 2000); /* repeated after its own backoff, owing a token */
    assert_int_equal(f->n_machines, 1);
    demand(f, 1);
    rig_pass(f, 9000);
    assert_int_equal(rig_count(f, CALL_LAUNCH), before + 1);
    rig_pass(f, 20000);
    assert_int_equal(f->n_machines, 2);
}

/* Missing permissions are refused regardless of existing machines. */
static void a_refusal_after_a_lost_reply_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    f->launch_error = ERR_DENIED;
    rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    rig_pass(f, 2 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    assert_int_equal(rig_stats(f).refusals, 0);
    assert_int_equal(rig_stats(f).strays, 0);
}

static void credentials_that_are_lost_after_a_lost_reply_settle_nothing(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    f->launch_error = ERR_NO_CREDENTIALS;
    rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    rig_pass(f, 2 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(rig_stats(f).refusals, 0);
    assert_int_equal(rig_stats(f).strays, 0);
}

/* As after a refusal for lack of capacity, and not for as long as after one for a wrong image. */
static void without_credentials_an_offer_is_avoided_for_a_while(void **state)
{
    struct fixture *f = *state;
    int64_t avoided_ms[2];
    for (int lasts = 0; lasts < 2; lasts++) {
        f->launch_error = lasts ? ERR_CONFIG : ERR_NO_CREDENTIALS;
        rig_demand(f);
        rig_pass(f, 1000);
        assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
        const struct offer *o = model_offer(f->lab->model, 1);
        avoided_ms[lasts] = o->row.avoid_until.ms - clock_mono(f->lab->vt.timers.clock).ms;
        assert_string_equal(o->why, "scripted");
        rig_teardown(state);
        rig_setup(state);
        f = *state;
    }
    assert_true(avoided_ms[0] > 0);
    assert_true(avoided_ms[1] > 50 * avoided_ms[0]);
}

static void listings_settle_a_refusal_that_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    f->launch_error = ERR_DENIED;
    rig_pass(f, SETTLE_MS - BUSY_SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    assert_int_equal(rig_stats(f).refusals, 0);
    rig_pass(f, 3 * BUSY_SWEEP_MS); /* none exists: asked again, and reported to the job */
    assert_null(rig_instance(f, 1));
    assert_true(rig_stats(f).refusals > 0);
}

static void a_shortage_after_a_lost_reply_is_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    rig_demand(f);
    f->launch_error = ERR_NO_CAPACITY;
    rig_pass(f, 1000);
    assert_null(rig_instance(f, 1));
}

static void after_a_crash_a_refusal_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    rig_restart(f);
    f->by_hand[CALL_LAUNCH] = false;
    f->launch_error = ERR_CONFLICT; /* the pool's file has changed by now */
    rig_pass(f, 2 * BUSY_SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(rig_stats(f).strays, 0);
}

static void after_a_crash_an_intent_is_launched_under_its_token_again(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    char token[CLOUD_TOKEN_MAX];
    STR_COPY(token, rig_last(f, CALL_LAUNCH)->token);
    rig_restart(f);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    assert_string_equal(rig_last(f, CALL_LAUNCH)->token, token);
    f->by_hand[CALL_LAUNCH] = false;
    rig_settle(f);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(f->n_machines, 1);
}

static void one_launch_an_instance_is_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    rig_pass(f, 10 * SWEEP_MS); /* sweeps do not list it and leave it alone */
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    f->by_hand[CALL_LAUNCH] = false;
    rig_settle(f);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
}

/* Some providers list a machine that they are about to refuse. */
static void a_machine_that_is_listed_before_the_answer_may_still_be_refused(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    rig_pass(f, 3 * BUSY_SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_INTENDED);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    f->launch_error = ERR_NO_CAPACITY;
    rig_answer(f, rig_last(f, CALL_LAUNCH));
    rig_settle(f);
    assert_null(rig_instance(f, 1));
    assert_int_equal(rig_stats(f).refusals, 1);
    /* the provider's message */
    assert_string_equal(model_offer(f->lab->model, 1)->why, "scripted");
}

/* For example by a price that is read meanwhile. */
static void a_row_that_changes_while_its_refusal_waits_for_a_commit_is_not_launched_again(
    void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    assert_non_null(f->lab->under_way);
    f->launch_error = ERR_NO_CAPACITY;
    rig_answer(f, rig_last(f, CALL_LAUNCH));
    lab_tick(f->lab);
    assert_int_equal(rig_stats(f).refusals, 1);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_INTENDED);
    provision_touch(f->lab->provision, 1);
    lab_tick(f->lab);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    f->lab->by_hand = false;
    lab_commit(f->lab, 0);
    rig_settle(f);
    assert_null(rig_instance(f, 1));
}

static void a_machine_that_ended_before_the_answer_is_gone(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    struct cloud_instance *m = rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    m->state = CLOUD_GONE;
    m->reclaimed = true;
    rig_answer(f, rig_last(f, CALL_LAUNCH));
    rig_settle(f);
    assert_null(rig_instance(f, 1));
}

static void an_intent_that_is_ended_while_its_launch_is_out_is_terminated_when_it_is_known(
    void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    rig_end(f, 1);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    rig_answer(f, rig_last(f, CALL_LAUNCH));
    rig_settle(f);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    assert_string_equal(rig_last(f, CALL_TERMINATE)->id, "i-1");
    f->machines[0].state = CLOUD_GONE;
    rig_pass(f, 2 * BUSY_SWEEP_MS);
    assert_null(rig_instance(f, 1));
}

/* ---- launches with alternatives ---- */

static void add_zones(struct fixture *f)
{
    struct pool_row pool = model_pool(f->lab->model, "burst")->row;
    struct offer_row offer = {.pool = "burst",
        .type = "t",
        .market = MARKET_SPOT,
        .total = {.cpus = 4, .memory_mib = 1024},
        .price_uusd_h = 1,
        .on_demand_uusd_h = 2,
        .avoid_until = MONO_NONE};
    pool.fleet = true;
    lab_post(f->lab, (struct event){.type = EV_POOL, .pool = &pool}, NULL);
    for (int k = 2; k <= 3; k++) {
        snprintf(offer.zone, sizeof offer.zone, "z%d", k);
        lab_post(f->lab, (struct event){.type = EV_OFFER, .offer = &offer}, NULL);
    }
    lab_tick(f->lab);
}

static void a_fleet_launch_goes_where_the_provider_says(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    struct call *c = rig_last(f, CALL_LAUNCH);
    assert_string_equal(c->zone, "z");
    assert_int_equal(c->n_others, 2);
    assert_string_equal(c->others[0].zone, "z2");
    assert_string_equal(c->others[1].zone, "z3");
    struct cloud_instance *m = rig_add_machine(f, c->token);
    struct cloud_target first = {"z", "t"};
    struct err e;
    STR_COPY(m->zone, "z3");
    STR_COPY(m->type, "t");
    err_set(&e, ERR_NO_CAPACITY, "none left");
    c->answered = true;
    c->refused(c->ctx, &first, &e);
    c->launched(c->ctx, NULL, m);
    rig_settle(f);
    assert_string_equal(rig_instance(f, 1)->row.zone, "z3");
    assert_int_equal(model_offer(f->lab->model, 1)->row.refusals, 1);
    assert_int_equal(model_offer(f->lab->model, 3)->row.refusals, 0);
    assert_int_equal(rig_stats(f).strays, 0);
    rig_pass(f, 2 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
}

static void a_repeated_fleet_launch_is_the_same_after_a_crash(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    struct event ev = {.type = EV_OFFER_REFUSED,
        .offer_refused = {.instance = 1, .zone = "z2", .type = "t", .is_temporary = true}};
    lab_post(f->lab, ev, NULL);
    lab_tick(f->lab);
    rig_restart(f);
    struct call *c = rig_last(f, CALL_LAUNCH);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    assert_int_equal(c->n_others, 2);
    assert_string_equal(c->others[0].zone, "z2");
    assert_string_equal(c->others[1].zone, "z3");
}

/* The answer was lost: the listing has its place. */
static void a_fleet_launch_whose_answer_was_lost_is_adopted_where_it_is(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    struct cloud_instance *m = rig_add_machine(f, rig_last(f, CALL_LAUNCH)->token);
    struct err e;
    STR_COPY(m->zone, "z2");
    STR_COPY(m->type, "t");
    err_set(&e, ERR_INVALID, "the reply was cut off");
    rig_last(f, CALL_LAUNCH)->answered = true;
    rig_last(f, CALL_LAUNCH)->launched(rig_last(f, CALL_LAUNCH)->ctx, &e, NULL);
    f->launch_error = ERR_INVALID;
    f->by_hand[CALL_LAUNCH] = false;
    rig_pass(f, 4 * SWEEP_MS);
    assert_string_equal(rig_instance(f, 1)->row.provider_id, m->id);
    assert_string_equal(rig_instance(f, 1)->row.zone, "z2");
    assert_int_equal(rig_instance(f, 1)->offer->row.id, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_leaves_after_its_intent_is_on_disk),
        TEST(a_definite_refusal_ends_the_intent_and_nothing_else_does),
        TEST(lost_replies_are_repeated_under_the_same_token),
        TEST(launches_leave_at_the_rate_of_the_pool),
        TEST(a_pool_that_moves_takes_its_rate_along),
        TEST(a_restart_does_not_launch_faster),
        TEST(what_is_ended_while_it_waits_for_its_turn_is_never_launched),
        TEST(a_throttled_launch_slows_the_others_down),
        TEST(a_refusal_after_a_lost_reply_is_not_believed),
        TEST(listings_settle_a_refusal_that_is_not_believed),
        TEST(credentials_that_are_lost_after_a_lost_reply_settle_nothing),
        TEST(without_credentials_an_offer_is_avoided_for_a_while),
        TEST(a_shortage_after_a_lost_reply_is_believed),
        TEST(after_a_crash_a_refusal_is_not_believed),
        TEST(a_machine_whose_reply_was_lost_is_found_by_its_token),
        TEST(after_a_crash_an_intent_is_launched_under_its_token_again),
        TEST(one_launch_an_instance_is_under_way),
        TEST(a_machine_that_is_listed_before_the_answer_may_still_be_refused),
        TEST(a_row_that_changes_while_its_refusal_waits_for_a_commit_is_not_launched_again),
        TEST(a_machine_that_ended_before_the_answer_is_gone),
        TEST(an_intent_that_is_ended_while_its_launch_is_out_is_terminated_when_it_is_known),
        TEST(a_fleet_launch_goes_where_the_provider_says),
        TEST(a_repeated_fleet_launch_is_the_same_after_a_crash),
        TEST(a_fleet_launch_whose_answer_was_lost_is_adopted_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
