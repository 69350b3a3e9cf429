/* SPDX-License-Identifier: Apache-2.0
 *
 * Sweeps: lagging listings, unknown machines, machines that stop by themselves, and conclusions
 * that must not be drawn.
 */
#include "tests/scheduler/rig.h"

#include "base/str.h"

/* ---- sweeps ---- */

static void a_machine_without_a_row_is_ended(void **state)
{
    struct fixture *f = *state;
    rig_add_machine(f, "belay-somebody-7");
    rig_pass(f, SWEEP_MS + 1000);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    assert_string_equal(rig_last(f, CALL_TERMINATE)->id, "i-1");
    assert_int_equal(rig_stats(f).strays, 1);
    f->machines[0].state = CLOUD_GONE;
    rig_pass(f, 3 * SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
}

static void a_stray_that_stands_still_is_ended_and_a_reclaimed_one_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    rig_add_machine(f, "")->state = CLOUD_STOPPING;
    struct cloud_instance *reclaimed = rig_add_machine(f, "");
    reclaimed->state = CLOUD_STOPPING;
    reclaimed->reclaimed = true;
    rig_pass(f, SWEEP_MS + 1000);
    assert_true(rig_count(f, CALL_TERMINATE) >= 1);
    for (size_t i = 0; i < f->n_calls; i++)
        assert_true(f->calls[i].kind != CALL_TERMINATE || str_eq(f->calls[i].id, "i-1"));
}

static void a_second_machine_under_one_token_is_ended(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    rig_add_machine(f, rig_instance(f, 1)->row.token);
    rig_pass(f, SWEEP_MS + 1000);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    assert_string_equal(rig_last(f, CALL_TERMINATE)->id, "i-2");
    assert_string_equal(rig_instance(f, 1)->row.provider_id, "i-1");
}

static void a_stray_that_cannot_be_ended_is_tried_again(void **state)
{
    struct fixture *f = *state;
    f->terminate_error = ERR_UNAVAILABLE;
    rig_add_machine(f, "");
    rig_pass(f, SWEEP_MS + 4 * BUSY_SWEEP_MS);
    assert_true(rig_count(f, CALL_TERMINATE) >= 3);
}

static void a_machine_that_is_gone_ends_its_row(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->machines[0].state = CLOUD_GONE;
    f->machines[0].reclaimed = true;
    f->launch_error = ERR_NO_CAPACITY; /* no replacement */
    rig_pass(f, SWEEP_MS + 1000);
    assert_null(rig_instance(f, 1));
}

static int see_end(void *ctx, const struct instance_row *row)
{
    *(int64_t *)ctx = row->ended_at.ms;
    return 0;
}

/* Stored end time of the only instance. */
static int64_t stored_end_ms(struct fixture *f)
{
    struct err e;
    int64_t ms = TIME_NONE_MS;
    assert_int_equal(db_read_instances(f->lab->reader, false, see_end, &ms, &e), 0);
    return ms;
}

static void a_machine_is_paid_until_the_provider_says_it_ended(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    rig_pass(f, 1000); /* the listing comes after the end */
    const struct wall ended = clock_wall(&f->lab->vt.clock);
    f->machines[0].ended_at = ended;
    f->machines[0].state = CLOUD_GONE;
    f->launch_error = ERR_NO_CAPACITY;
    rig_pass(f, SWEEP_MS + 1000);
    assert_null(rig_instance(f, 1));
    assert_int_equal(stored_end_ms(f), ended.ms);
}

/* ---- machines that wait in a queue of the provider's ---- */

/* Instance 1 is accepted, and waits. */
static struct cloud_instance *launch_queued(struct fixture *f)
{
    f->by_hand[CALL_LAUNCH] = true;
    rig_demand(f);
    struct call *c = rig_last(f, CALL_LAUNCH);
    struct cloud_instance *m = rig_add_machine(f, c->token);
    m->state = CLOUD_QUEUED;
    rig_answer(f, c);
    rig_settle(f);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_QUEUED);
    return m;
}

static void a_queued_machine_is_launched_when_a_listing_shows_its_start(void **state)
{
    struct fixture *f = *state;
    struct cloud_instance *m = launch_queued(f);
    rig_pass(f, SETTLE_MS + 3 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_QUEUED);
    assert_int_equal(rig_count(f, CALL_LAUNCH), 1);
    m->state = CLOUD_PENDING; /* it boots, and the provider does not say since when */
    rig_pass(f, SWEEP_MS + 1000);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_true(wall_is_set(rig_instance(f, 1)->row.launched_at));
}

static void a_queued_machine_that_was_cancelled_or_lost_ends_its_row(void **state)
{
    struct fixture *f = *state;
    struct cloud_instance *m = launch_queued(f);
    m->state = CLOUD_GONE;
    rig_pass(f, SWEEP_MS + 1000);
    assert_null(rig_instance(f, 1));
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    assert_int_equal(model_pool(f->lab->model, "burst")->row.boots.failed, 0);
}

static void a_queue_is_left_after_the_patience_across_a_restart(void **state)
{
    struct fixture *f = *state;
    struct pool_row r = model_pool(f->lab->model, "burst")->row;
    r.queue_patience_ms = 10 * SWEEP_MS + 1000;
    lab_post(f->lab, (struct event){.type = EV_POOL, .pool = &r}, NULL);
    launch_queued(f);
    rig_pass(f, 6 * SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    rig_restart(f);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_QUEUED);
    rig_pass(f, 5 * SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    assert_string_equal(rig_last(f, CALL_TERMINATE)->id, "i-1");
}

static void a_list_that_lags_ends_nothing_and_two_misses_after_the_settling_time_do(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->n_machines = 0; /* not listed (yet) */
    f->launch_error = ERR_NO_CAPACITY;
    rig_pass(f, SETTLE_MS - 1000);
    provision_touch(f->lab->provision, 1);
    assert_non_null(rig_instance(f, 1));
    rig_pass(f, SWEEP_MS);
    assert_non_null(rig_instance(f, 1)); /* one missing listing is never sufficient */
    rig_pass(f, SWEEP_MS);
    assert_null(rig_instance(f, 1));
}

static void what_a_listing_could_not_see_is_not_missed(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->n_machines = 0;
    f->is_hiding = true;
    f->launch_error = ERR_NO_CAPACITY;
    rig_pass(f, SETTLE_MS + 5 * SWEEP_MS);
    assert_non_null(rig_instance(f, 1));
    f->is_hiding = false;
    rig_pass(f, 3 * SWEEP_MS);
    assert_null(rig_instance(f, 1));
}

static void a_listing_that_began_before_the_launch_was_answered_concludes_nothing(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    rig_pass(f, SWEEP_MS); /* a listing is in progress */
    rig_demand(f);         /* launched and answered meanwhile */
    for (int i = 0; i < 3; i++) {
        struct call *c = rig_last(f, CALL_LIST);
        c->answered = true;
        c->listed(c->ctx, NULL, NULL, 0); /* from before */
        lab_tick(f->lab);
        assert_non_null(rig_instance(f, 1));
        rig_pass(f, 1000);
    }
}

static void a_listing_that_fails_concludes_nothing_and_is_repeated(void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->list_error = ERR_THROTTLED;
    rig_pass(f, 5 * SWEEP_MS);
    assert_non_null(rig_instance(f, 1));
    assert_true(rig_stats(f).list_errors >= 4);
    f->list_error = ERR_NONE;
    f->machines[0].state = CLOUD_GONE;
    f->launch_error = ERR_NO_CAPACITY;
    rig_pass(f, SWEEP_MS + 1000);
    assert_null(rig_instance(f, 1));
}

static void one_listing_a_place_is_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    size_t before = rig_count(f, CALL_LIST);
    rig_pass(f, 5 * SWEEP_MS);
    assert_int_equal(rig_count(f, CALL_LIST), before + 1);
}

/* A listing is acted on at once, so the model must be durable. */
static void a_listing_waits_for_the_commit_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    rig_pass(f, SWEEP_MS);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    assert_non_null(f->lab->under_way);
    rig_add_machine(f, "stray");
    rig_answer(f, rig_last(f, CALL_LIST));
    lab_tick(f->lab);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
    lab_commit(f->lab, 0);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 1);
    f->lab->by_hand = false;
    if (f->lab->under_way)
        lab_commit(f->lab, 0);
}

static void machines_of_a_pool_that_is_not_configured_any_more_are_left_alone_and_complained_of(
    void **state)
{
    struct fixture *f = *state;
    rig_demand(f);
    f->pool.name = NULL;
    size_t launches = rig_count(f, CALL_LAUNCH);
    rig_restart(f);
    rig_end(f, 1);
    rig_pass(f, 2 * SWEEP_MS);
    assert_int_equal(rig_instance(f, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(rig_count(f, CALL_LAUNCH), launches);
    assert_int_equal(rig_count(f, CALL_TERMINATE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_machine_without_a_row_is_ended),
        TEST(a_stray_that_stands_still_is_ended_and_a_reclaimed_one_ends_by_itself),
        TEST(a_second_machine_under_one_token_is_ended),
        TEST(a_stray_that_cannot_be_ended_is_tried_again),
        TEST(a_machine_that_is_gone_ends_its_row),
        TEST(a_machine_is_paid_until_the_provider_says_it_ended),
        TEST(a_queued_machine_is_launched_when_a_listing_shows_its_start),
        TEST(a_queued_machine_that_was_cancelled_or_lost_ends_its_row),
        TEST(a_queue_is_left_after_the_patience_across_a_restart),
        TEST(a_list_that_lags_ends_nothing_and_two_misses_after_the_settling_time_do),
        TEST(what_a_listing_could_not_see_is_not_missed),
        TEST(a_listing_that_began_before_the_launch_was_answered_concludes_nothing),
        TEST(a_listing_that_fails_concludes_nothing_and_is_repeated),
        TEST(one_listing_a_place_is_under_way),
        TEST(a_listing_waits_for_the_commit_under_way),
        TEST(machines_of_a_pool_that_is_not_configured_any_more_are_left_alone_and_complained_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
