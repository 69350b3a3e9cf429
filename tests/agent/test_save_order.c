/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/save_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define WAITS -1
#define NEVER_SAVED -1
#define NEXT(v, now, deadline) save_order_next(v, sizeof(v) / sizeof((v)[0]), now, deadline)

static void the_shortest_that_fits_is_first(void **state)
{
    const struct save_order_entry v[] = {
        {20000, WAITS}, {NEVER_SAVED, WAITS}, {5000, WAITS}, {90000, WAITS}, {5000, WAITS}};
    const struct save_order_entry late[] = {{90000, WAITS}, {60000, WAITS}};

    (void)state;
    assert_int_equal(NEXT(v, 1000, 31000), 2);
    assert_int_equal(NEXT(v, 1000, 5000), 1); /* none fits; this one has no estimate */
    assert_int_equal(NEXT(late, 1000, 31000), 1);
    assert_int_equal(save_order_next(v, 0, 1000, 31000), 0);
}

static void one_at_a_time_unless_it_is_shorter_than_what_the_others_need(void **state)
{
    const struct save_order_entry long_one[] = {{20000, 1000}, {5000, WAITS}};
    const struct save_order_entry nearly_done[] = {{20000, 1000}, {5000, WAITS}};
    const struct save_order_entry overdue[] = {{20000, 1000}, {5000, WAITS}};
    const struct save_order_entry two[] = {{20000, 1000}, {3000, 1000}, {5000, WAITS}};
    const struct save_order_entry too_late[] = {{20000, 1000}, {90000, WAITS}};

    (void)state;
    assert_int_equal(NEXT(long_one, 2000, 31000), 1);
    assert_int_equal(NEXT(nearly_done, 17000, 31000), 2);
    assert_int_equal(NEXT(overdue, 22000, 31000), 1);
    assert_int_equal(NEXT(two, 2000, 31000), 3);
    assert_int_equal(NEXT(too_late, 2000, 31000), 2);
}

static void two_saves_without_an_estimate_run_together(void **state)
{
    const struct save_order_entry one[] = {
        {NEVER_SAVED, 1000}, {NEVER_SAVED, WAITS}, {NEVER_SAVED, WAITS}};
    const struct save_order_entry two[] = {
        {NEVER_SAVED, 1000}, {NEVER_SAVED, 1000}, {NEVER_SAVED, WAITS}};
    const struct save_order_entry known[] = {
        {NEVER_SAVED, 1000}, {NEVER_SAVED, 1000}, {5000, WAITS}};

    (void)state;
    assert_int_equal(NEXT(one, 2000, 31000), 1);
    assert_int_equal(NEXT(two, 2000, 31000), 3);
    assert_int_equal(NEXT(known, 2000, 31000), 2);
}

#define N 6
#define DEADLINE 30000

/* Returns how many of N finish in time if running saves share the path to the store equally, in
 * steps of 10 ms. */
static int play(const int64_t *need, bool ordered)
{
    struct save_order_entry v[N];
    int64_t left[N];
    int done = 0;

    for (int i = 0; i < N; i++) {
        v[i] = (struct save_order_entry){need[i], ordered ? WAITS : 0};
        left[i] = need[i];
    }
    for (int64_t now = 0; now < DEADLINE; now += 10) {
        struct save_order_entry open[N];
        size_t index[N], n = 0, next, under_way = 0;

        for (size_t i = 0; i < N; i++)
            if (left[i] > 0) {
                index[n] = i;
                open[n++] = v[i];
            }
        while ((next = save_order_next(open, n, now, DEADLINE)) < n)
            v[index[next]].started_ms = open[next].started_ms = now;
        for (size_t i = 0; i < n; i++)
            under_way += open[i].started_ms >= 0;
        for (size_t i = 0; i < n; i++)
            if (open[i].started_ms >= 0 && (left[index[i]] -= 10 / (int64_t)under_way) <= 0)
                done++;
    }
    return done;
}

static void saves_in_order_finish_more_than_saves_in_parallel(void **state)
{
    const int64_t needs[][N] = {{10000, 10000, 10000, 10000, 10000, 10000},
        {2000, 4000, 8000, 10000, 20000, 40000}, {28000, 1000, 1000, 1000, 28000, 28000}};
    const int expected[] = {2, 4, 3};

    (void)state;
    for (int i = 0; i < 3; i++) {
        int in_order = play(needs[i], true), together = play(needs[i], false);

        assert_true(in_order >= together);
        assert_true(in_order >= expected[i]);
    }
}

static void an_older_save_gives_way_if_only_the_newer_can_be_in_time(void **state)
{
    (void)state;
    assert_false(save_order_gives_way(5000, 9000, 20000));  /* both finish */
    assert_false(save_order_gives_way(5000, 15000, 20000)); /* both just finish */
    assert_true(save_order_gives_way(5001, 15000, 20000));  /* only the newer finishes */
    assert_true(save_order_gives_way(60000, 20000, 20000)); /* the newer just finishes */
    assert_false(save_order_gives_way(5000, 20001, 20000)); /* only the older finishes */
    /* neither finishes: the running one is nearer to its end */
    assert_false(save_order_gives_way(30000, 40000, 20000));
    assert_true(save_order_gives_way(-1, 40000, 20000));      /* nothing of it is stored yet */
    assert_false(save_order_gives_way(-1, 40000, INT64_MAX)); /* there is enough time */
    assert_false(save_order_gives_way(5000, 1000, INT64_MAX));
    assert_false(save_order_gives_way(0, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_save_gives_way_if_only_the_newer_can_be_in_time),
        cmocka_unit_test(the_shortest_that_fits_is_first),
        cmocka_unit_test(one_at_a_time_unless_it_is_shorter_than_what_the_others_need),
        cmocka_unit_test(two_saves_without_an_estimate_run_together),
        cmocka_unit_test(saves_in_order_finish_more_than_saves_in_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
