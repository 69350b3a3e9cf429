/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/uv/rig.h"
#include "base/uv/timers.h"

struct fixture {
    uv_loop_t loop;
    struct timers *ts;
    struct timer t[4];
    int order[16];
    int n;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){0};
    assert_int_equal(uv_loop_init(&f->loop), 0);
    f->ts = uv_timers_create(&f->loop);
}

static void teardown(struct fixture *f)
{
    uv_timers_destroy(f->ts);
    uv_loop_finish(&f->loop);
}

static void note(struct timer *t, void *ctx)
{
    struct fixture *f = ctx;
    f->order[f->n++] = (int)(t - f->t);
}

static void init_all(struct fixture *f, timer_fn fn)
{
    for (int i = 0; i < 4; i++)
        timer_init(&f->t[i], fn, f);
}

static void run(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

static void timers_run_in_the_order_of_their_delays(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, note);
    timer_start(f.ts, &f.t[0], 30);
    timer_start(f.ts, &f.t[1], 10);
    timer_start(f.ts, &f.t[2], 20);
    timer_start(f.ts, &f.t[3], 0);
    assert_int_equal(f.n, 0);
    assert_true(timer_is_running(&f.t[3]));
    run(&f);
    const int want[] = {3, 1, 2, 0};
    assert_int_equal(f.n, 4);
    assert_memory_equal(f.order, want, sizeof(want));
    assert_false(timer_is_running(&f.t[0]));
    teardown(&f);
}

static void timers_without_delay_run_in_the_order_of_their_start(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, note);
    timer_start(f.ts, &f.t[2], 0);
    timer_start(f.ts, &f.t[0], 0);
    timer_start(f.ts, &f.t[3], 0);
    timer_start(f.ts, &f.t[0], 0); /* a restart goes to the end */
    run(&f);
    const int want[] = {2, 3, 0};
    assert_int_equal(f.n, 3);
    assert_memory_equal(f.order, want, sizeof(want));
    teardown(&f);
}

static void a_stopped_timer_does_not_run(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, note);
    struct timer zeroed = {0};
    timer_stop(f.ts, &zeroed);
    timer_start(f.ts, &f.t[0], 0);
    timer_start(f.ts, &f.t[1], 5);
    timer_stop(f.ts, &f.t[0]);
    timer_stop(f.ts, &f.t[1]);
    timer_stop(f.ts, &f.t[1]);
    run(&f);
    assert_int_equal(f.n, 0);
    teardown(&f);
}

static void stop_others(struct timer *t, void *ctx)
{
    struct fixture *f = ctx;
    note(t, ctx);
    for (int i = 0; i < 4; i++)
        timer_stop(f->ts, &f->t[i]);
}

static void a_callback_may_stop_timers_that_are_due_too(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, stop_others);
    for (int i = 0; i < 4; i++)
        timer_start(f.ts, &f.t[i], 0);
    run(&f);
    assert_int_equal(f.n, 1);
    teardown(&f);
}

static void restart_itself(struct timer *t, void *ctx)
{
    struct fixture *f = ctx;
    f->n++;
    timer_start(f->ts, t, 0);
}

/* With libuv's own timers of delay 0 the first would run forever within one iteration. */
static void a_timer_that_restarts_itself_lets_the_loop_turn(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, restart_itself);
    timer_start(f.ts, &f.t[0], 0);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(f.n, 1);
    uv_run(&f.loop, UV_RUN_NOWAIT);
    assert_int_equal(f.n, 2);
    timer_stop(f.ts, &f.t[0]);
    teardown(&f);
}

static void a_delay_counts_from_the_call_not_from_the_turn(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    init_all(&f, note);
    const struct clock *c = f.ts->clock;
    int64_t began = clock_mono(c).ms;
    while (clock_mono(c).ms - began < 30) /* the loop's own time does not advance meanwhile */
        continue;
    int64_t started = clock_mono(c).ms;
    timer_start(f.ts, &f.t[0], 20);
    run(&f);
    assert_int_equal(f.n, 1);
    assert_true(clock_mono(c).ms - started >= 19);
    teardown(&f);
}

static void destroy_all(struct timer *t, void *ctx)
{
    struct fixture *f = ctx;
    note(t, ctx);
    uv_timers_destroy(f->ts);
}

static void timers_may_be_destroyed_in_a_callback(void **state)
{
    (void)state;
    for (int delay = 0; delay < 2; delay++) {
        struct fixture f;
        setup(&f);
        init_all(&f, destroy_all);
        for (int i = 0; i < 4; i++)
            timer_start(f.ts, &f.t[i], delay);
        run(&f);
        assert_int_equal(f.n, 1);
        assert_false(timer_is_running(&f.t[3]));
        uv_loop_finish(&f.loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_run_in_the_order_of_their_delays),
        cmocka_unit_test(timers_without_delay_run_in_the_order_of_their_start),
        cmocka_unit_test(a_stopped_timer_does_not_run),
        cmocka_unit_test(a_callback_may_stop_timers_that_are_due_too),
        cmocka_unit_test(a_timer_that_restarts_itself_lets_the_loop_turn),
        cmocka_unit_test(a_delay_counts_from_the_call_not_from_the_turn),
        cmocka_unit_test(timers_may_be_destroyed_in_a_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
