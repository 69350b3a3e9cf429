/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider's token bucket for launches, in virtual time.
 */
#include "tests/base/tools.h"

#include "base/prng.h"
#include "base/vtimers.h"
#include "scheduler/engine/launch_pace.h"

#define TURNS 1000

static const struct cloud_driver_ops slow = {.provider = "slow",
                                         .launch_burst = 5,
                                         .launches_per_minute = 120},
                                     unlimited = {.provider = "unlimited"};

struct fixture {
    struct vtimers vt;
    struct launch_pace pace;
};

struct waiter {
    struct launch_turn turn; /* must be first */
    struct vtimers *vt;
    int64_t started_ms; /* -1: not yet */
};

static void on_turn(struct launch_turn *turn)
{
    struct waiter *w = (struct waiter *)turn;
    assert_false(launch_turn_is_waiting(turn));
    w->started_ms = clock_mono(&w->vt->clock).ms;
}

static void setup(struct fixture *f, const struct cloud_driver_ops *ops)
{
    vtimers_init(&f->vt, 1000000);
    launch_pace_init(&f->pace, &f->vt.timers, ops, "r");
}

static void teardown(struct fixture *f)
{
    launch_pace_deinit(&f->pace);
    vtimers_deinit(&f->vt);
}

/* All arrive now; returns how many start at once. */
static size_t come(struct fixture *f, struct waiter *w, size_t n)
{
    size_t at_once = 0;
    for (size_t i = 0; i < n; i++) {
        w[i] = (struct waiter){.turn.start = on_turn, .vt = &f->vt, .started_ms = -1};
        if (launch_pace_enter(&f->pace, &w[i].turn)) {
            w[i].started_ms = clock_mono(&f->vt.clock).ms;
            at_once++;
        }
    }
    return at_once;
}

static void a_burst_starts_at_once_and_the_rest_in_order_at_the_rate(void **state)
{
    struct fixture f;
    struct waiter w[TURNS];
    (void)state;
    setup(&f, &slow);
    assert_int_equal(come(&f, w, TURNS), 5);
    vtimers_advance(&f.vt, TURNS * 500);
    for (int i = 5; i < TURNS; i++)
        assert_int_equal(w[i].started_ms, (i - 4) * 500);
    teardown(&f);
}

/* For any arrivals: at most burst + t times the rate in any time t, and none waits while there is a
 * token. */
static void no_time_sees_more_than_the_bucket_gives(void **state)
{
    struct fixture f;
    static struct waiter w[TURNS];
    struct prng prng;
    (void)state;
    prng_init(&prng, 7);
    setup(&f, &slow);
    for (size_t n = 0; n < TURNS;) {
        size_t more = (size_t)prng_range(&prng, 1, 30);
        more = more < TURNS - n ? more : TURNS - n;
        come(&f, w + n, more);
        n += more;
        vtimers_advance(&f.vt, prng_range(&prng, 0, 12000));
    }
    vtimers_advance(&f.vt, TURNS * 500);
    for (int i = 0; i < TURNS; i++) {
        assert_true(w[i].started_ms >= 0);
        for (int k = i + 1; k < TURNS; k++)
            assert_true(k - i + 1 <= 5 + (w[k].started_ms - w[i].started_ms) / 500 + 1);
    }
    teardown(&f);
}

static void a_bucket_fills_to_its_burst_only(void **state)
{
    struct fixture f;
    struct waiter w[20];
    (void)state;
    setup(&f, &slow);
    vtimers_advance(&f.vt, INT64_C(400) * 86400 * 1000);
    assert_int_equal(come(&f, w, 20), 5);
    vtimers_advance(&f.vt, 7500);
    assert_int_equal(w[19].started_ms - w[0].started_ms, 7500);
    teardown(&f);
}

static void who_leaves_costs_nobody_a_turn(void **state)
{
    struct fixture f;
    struct waiter w[8];
    (void)state;
    setup(&f, &slow);
    assert_int_equal(come(&f, w, 8), 5);
    launch_turn_leave(&w[5].turn);
    launch_turn_leave(&w[5].turn);
    vtimers_advance(&f.vt, 1000);
    assert_int_equal(w[5].started_ms, -1);
    assert_int_equal(w[6].started_ms, 500);
    assert_int_equal(w[7].started_ms, 1000);
    teardown(&f);
}

static void repeated_calls_and_throttling_slow_the_others_down(void **state)
{
    struct fixture f;
    struct waiter w[2];
    (void)state;
    setup(&f, &slow);
    for (int i = 0; i < 7; i++)
        launch_pace_repeat(&f.pace); /* five tokens, two owed */
    assert_int_equal(come(&f, w, 1), 0);
    vtimers_advance(&f.vt, 10000);
    assert_int_equal(w[0].started_ms, 1500);
    launch_pace_throttled(&f.pace);
    assert_int_equal(come(&f, w, 1), 0);
    vtimers_advance(&f.vt, 500);
    assert_int_equal(w[0].started_ms, 10500);
    for (int i = 0; i < 100000; i++)
        launch_pace_repeat(&f.pace); /* the debt is bounded */
    assert_int_equal(come(&f, w, 1), 0);
    vtimers_advance(&f.vt, 31000);
    assert_true(w[0].started_ms > 0);
    teardown(&f);
}

static void a_pool_may_set_another_rate_and_those_who_wait_have_it_at_once(void **state)
{
    struct fixture f;
    struct waiter w[10];
    (void)state;
    setup(&f, &slow);
    assert_int_equal(come(&f, w, 10), 5);
    launch_pace_set_rate(&f.pace, 6000);
    vtimers_advance(&f.vt, 50);
    assert_int_equal(w[9].started_ms, 50);
    launch_pace_set_rate(&f.pace, 1);
    assert_int_equal(come(&f, w, 1), 0);
    launch_pace_set_rate(&f.pace, 0);
    vtimers_advance(&f.vt, 0);
    assert_int_equal(w[0].started_ms, 50);
    teardown(&f);
}

static void a_provider_without_a_limit_has_none(void **state)
{
    struct fixture f;
    struct waiter w[TURNS];
    (void)state;
    setup(&f, &unlimited);
    launch_pace_repeat(&f.pace);
    launch_pace_throttled(&f.pace);
    assert_int_equal(come(&f, w, TURNS), TURNS);
    launch_pace_set_rate(&f.pace, 60); /* set by a pool */
    assert_int_equal(come(&f, w, 3), 1);
    vtimers_advance(&f.vt, 2000);
    assert_int_equal(w[2].started_ms, 2000);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_starts_at_once_and_the_rest_in_order_at_the_rate),
        cmocka_unit_test(no_time_sees_more_than_the_bucket_gives),
        cmocka_unit_test(a_bucket_fills_to_its_burst_only),
        cmocka_unit_test(who_leaves_costs_nobody_a_turn),
        cmocka_unit_test(repeated_calls_and_throttling_slow_the_others_down),
        cmocka_unit_test(a_pool_may_set_another_rate_and_those_who_wait_have_it_at_once),
        cmocka_unit_test(a_provider_without_a_limit_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
