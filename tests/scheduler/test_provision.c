/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeated end requests, prices, and changes of pools during calls.
 */
#include "tests/scheduler/rig.h"

#include "base/mem.h"
#include <stdlib.h>

/* ---- ending ---- */

static void an_end_is_asked_for_after_its_commit_and_again_until_it_is_confirmed(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    rig_end(f, 1);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    rig_pass(f, 3 * BUSY_SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1); /* one at a time */
    f->by_hand[CALL_TERMINATE] = false;
    f->terminate_error = ERR_THROTTLED;
    rig_settle(f);
    rig_pass(f, 3 * BUSY_SWEEP_MS);
    assert_true(rig_count(f, CALL_TERMINATE) > 2);
    f->terminate_error = ERR_NONE;
    rig_pass(f, 2 * BUSY_SWEEP_MS);
    size_t n = rig_count(f, CALL_TERMINATE);
    assert_int_equal(f->machines[0].state, CLOUD_STOPPING);
    rig_pass(f, 5 * BUSY_SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_TERMINATE), n); /* in progress */
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_ENDING);
    f->machines[0].state = CLOUD_GONE;
    rig_pass(f, 2 * BUSY_SWEEP_MS);
    assert_null(rig_instance(f, 1));
}

static void after_a_crash_an_end_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    rig_end(f, 1);
    rig_restart(f);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 2);
}

/* Its disk is still billed. */
static void what_stopped_by_itself_is_terminated_too(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->machines[0].state = CLOUD_STOPPING;
    f->terminate_error = ERR_THROTTLED;
    rig_end(f, 1);
    rig_pass(f, 3 * BUSY_SWEEP_MS);
    assert_true(rig_count(f, CALL_TERMINATE) > 2);
}

static void who_ends_many_does_not_put_the_sweep_off(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    rig_end(f, 1);
    size_t before = rig_count(f, CALL_LIST);
    for (int i = 0; i < 10; i++) { /* with activity every second */
        rig_pass(f, 1000);
        provision_touch(f->lab->provision, 1);
    }
    assert_true(rig_count(f, CALL_LIST) > before);
}

/* ---- prices ---- */

static void prices_are_read_at_the_start_and_now_and_then(void **state)
{
    struct fixture *f = *state;
    struct cloud_price price = {.zone = "z", .type = "t", .market = CLOUD_SPOT, .uusd_h = 77};
    f->by_hand[CALL_PRICES] = true;
    assert_int_equal(rig_count(f, CALL_PRICES), 1);
    rig_pass(f, PRICE_MS);
    assert_int_equal(rig_count(f, CALL_PRICES), 2);
    rig_pass(f, 2 * PRICE_MS);
    assert_int_equal(rig_count(f, CALL_PRICES), 2); /* one at a time */
    struct call *c = rig_last(f, CALL_PRICES);
    c->answered = true;
    price.score = 8;
    c->prices(c->ctx, NULL, &price, 1);
    rig_settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->row.price_uusd_h, 77);
    assert_int_equal(model_offer(f->lab->model, 1)->score, 8);
    rig_pass(f, PRICE_MS);
    c = rig_last(f, CALL_PRICES);
    c->answered = true;
    price.score = 0;
    c->prices(c->ctx, NULL, &price, 1);
    rig_settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->score, OFFER_SCORE_NONE);
}

static void prices_that_cannot_be_read_leave_the_last_ones(void **state)
{
    struct fixture *f = *state;
    struct err e;
    f->by_hand[CALL_PRICES] = true;
    rig_pass(f, PRICE_MS);
    struct call *c = rig_last(f, CALL_PRICES);
    c->answered = true;
    err_set(&e, ERR_THROTTLED, "slow down");
    c->prices(c->ctx, &e, NULL, 0);
    rig_settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->row.price_uusd_h, 1);
    rig_pass(f, PRICE_MS);
    assert_int_equal(rig_count(f, CALL_PRICES), 3);
}

/* ---- pools that change ---- */

/* Another driver for the same provider, with its own record of calls. */
static struct fixture *other_driver(struct fixture *f)
{
    struct fixture *o = mem_alloc(sizeof(*o));
    o->lab = f->lab;
    o->driver.ops = &rig_ops;
    return o;
}

static void free_other(struct fixture *o)
{
    for (size_t i = 0; i < o->n_calls; i++)
        free(o->calls[i].user_data);
    free(o);
}

static void a_launch_stays_with_its_driver_which_is_released_when_its_last_call_ends(void **state)
{
    struct fixture *f = *state, *o = other_driver(f);
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    provision_add_pool(f->lab->provision,
        &(struct provision_pool){.name = "burst", .driver = &o->driver, .region = "r"});
    rig_settle(f);
    assert_int_equal(f->n_released, 0);
    assert_int_equal(rig_count(o, CALL_PRICES), 1); /* at once */
    size_t lists = rig_count(f, CALL_LIST);
    struct err e;
    err_set(&e, ERR_TIMEOUT, "scripted");
    rig_last(f, CALL_LAUNCH)->answered = true;
    rig_last(f, CALL_LAUNCH)->launched(rig_last(f, CALL_LAUNCH)->ctx, &e, NULL);
    rig_pass(f, 1000);
    /* the same call again, with the same parameters */
    assert_int_equal(rig_count(f, CALL_LAUNCH), 2);
    assert_int_equal(rig_count(o, CALL_LAUNCH), 0);
    f->by_hand[CALL_LAUNCH] = false;
    rig_settle(f);
    assert_int_equal(f->n_released, 1);
    assert_int_equal(rig_count(f, CALL_LIST), lists);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    rig_end(f, 1);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0); /* handled by the new driver now */
    assert_string_equal(rig_last(o, CALL_TERMINATE)->id, "i-1");
    assert_int_equal(f->n_released, 1);
    assert_int_equal(o->n_released, 0);
    provision_destroy(f->lab->provision);
    f->lab->provision = NULL;
    free_other(o);
}

static void a_pool_that_is_removed_is_listed_no_more(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    rig_pass(f, SWEEP_MS);
    size_t n = rig_count(f, CALL_LIST);
    provision_remove_pool(f->lab->provision, "burst");
    provision_remove_pool(f->lab->provision, "nothing");
    rig_settle(f);
    assert_int_equal(f->n_released, 0); /* its listing is in progress */
    f->by_hand[CALL_LIST] = false;
    rig_settle(f);
    assert_int_equal(f->n_released, 1);
    rig_pass(f, 3 * SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_LIST), n);
    provision_add_pool(f->lab->provision, &f->pool); /* again */
    rig_pass(f, SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_LIST), n + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_end_is_asked_for_after_its_commit_and_again_until_it_is_confirmed),
        TEST(after_a_crash_an_end_is_asked_for_again),
        TEST(what_stopped_by_itself_is_terminated_too),
        TEST(who_ends_many_does_not_put_the_sweep_off),
        TEST(prices_are_read_at_the_start_and_now_and_then),
        TEST(prices_that_cannot_be_read_leave_the_last_ones),
        TEST(a_launch_stays_with_its_driver_which_is_released_when_its_last_call_ends),
        TEST(a_pool_that_is_removed_is_listed_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
