/* SPDX-License-Identifier: Apache-2.0
 *
 * How many machines to reserve, for loads computed by hand.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/prng.h"
#include "money/reserve.h"
#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-9)

static void the_base_is_the_largest_that_would_have_been_used(void **state)
{
    (void)state;
    /* 10 half of the time, 30 half of the time: of 10, all are used; of 20, three quarters; of 21,
     * less. */
    const double held[] = {10, 30, 10, 30};
    struct reserve_load l = {
        .held = held, .n = 4, .step_h = 1, .reserved_uusd_h = 3e6, .on_demand_uusd_h = 5e6};
    NEAR(reserve_mean(&l), 20);
    assert_int_equal(reserve_peak(&l), 30);
    NEAR(reserve_at(&l, 10).use, 1);
    NEAR(reserve_at(&l, 20).use, 0.75);
    assert_true(reserve_at(&l, 21).use < 0.75);
    assert_int_equal(reserve_size(&l), 20);
    NEAR(reserve_at(&l, 20).reserved_uusd, 20 * 4 * 3e6);
    NEAR(reserve_at(&l, 20).beyond_uusd, 2 * 10 * 5e6);
    /* Above 10, one is used half of the time: this does not pay at 3 of 5 dollars, but at 2 it
     * does, up to all 30. */
    assert_int_equal(reserve_cheapest(&l), 10);
    l.reserved_uusd_h = 2e6;
    assert_int_equal(reserve_cheapest(&l), 30);
    l.reserved_uusd_h = 0;
    assert_int_equal(reserve_cheapest(&l), -1);
}

static void where_nothing_is_held_nothing_is_reserved(void **state)
{
    (void)state;
    const double none[] = {0, 0, 0}, little[] = {1, 0, 0}, steady[] = {7.5, 7.5};
    struct reserve_load l = {.held = none, .n = 3, .step_h = 1};
    assert_int_equal(reserve_size(&l), 0);
    assert_int_equal(reserve_peak(&l), 0);
    l.held = little;
    assert_int_equal(reserve_size(&l), 0);
    l = (struct reserve_load){.held = steady, .n = 2, .step_h = 1};
    /* ten would also be used for 75 %, but nobody ever held ten */
    assert_int_equal(reserve_size(&l), 8);
    l.n = 0;
    assert_int_equal(reserve_size(&l), 0);
    NEAR(reserve_mean(&l), 0);
}

/* Compared with trying every number. */
static void halving_finds_what_trying_all_finds(void **state)
{
    (void)state;
    double held[50];
    struct prng p;
    prng_init(&p, 7);
    for (int round = 0; round < 200; round++) {
        struct reserve_load l = {.held = held,
            .n = 50,
            .step_h = 0.5,
            .on_demand_uusd_h = 5,
            .reserved_uusd_h = 1 + (double)prng_below(&p, 5)};
        int64_t best = 0, last = 0;
        for (int i = 0; i < 50; i++)
            held[i] = (double)prng_below(&p, 200) / 4;
        for (int64_t size = 0; size <= reserve_peak(&l); size++) {
            struct reserve_point at = reserve_at(&l, size), least = reserve_at(&l, best);
            if (at.reserved_uusd + at.beyond_uusd < least.reserved_uusd + least.beyond_uusd)
                best = size;
            if (at.use >= RESERVE_USE_MIN)
                last = size;
        }
        assert_int_equal(reserve_size(&l), last);
        assert_int_equal(reserve_cheapest(&l), best);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_is_the_largest_that_would_have_been_used),
        cmocka_unit_test(where_nothing_is_held_nothing_is_reserved),
        cmocka_unit_test(halving_finds_what_trying_all_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
