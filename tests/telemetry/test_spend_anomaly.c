/* SPDX-License-Identifier: Apache-2.0
 *
 * What counts as usual spending, and from which amount on a day is an anomaly.
 */
#include "telemetry/spend_anomaly.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define USD INT64_C(1000000)

static const struct spend_limits usual = {.weeks = SPEND_WEEKS_DEFAULT,
    .deviations = SPEND_DEVIATIONS_DEFAULT,
    .at_least_uusd = SPEND_AT_LEAST_UUSD_DEFAULT};

static struct spend_usual of(const int64_t *usd, size_t n, const struct spend_limits *limits)
{
    struct spend_usual u = {0};
    int64_t days[SPEND_WEEKS_MAX];
    for (size_t i = 0; i < n; i++)
        days[i] = usd[i] * USD;
    assert_true(spend_usual(days, n, limits, &u));
    return u;
}

static void few_weeks_say_nothing(void **state)
{
    const int64_t days[SPEND_WEEKS_MIN] = {0};
    struct spend_usual u = {.median_uusd = -1};
    (void)state;
    for (size_t n = 0; n < SPEND_WEEKS_MIN; n++)
        assert_false(spend_usual(days, n, &usual, &u));
    assert_int_equal(u.median_uusd, -1);
    assert_true(spend_usual(days, SPEND_WEEKS_MIN, &usual, &u));
}

/* The example of the MAD: median 200, deviations 0 0 10 10 20 30 40 100, MAD 15. */
static void the_limit_is_the_median_and_some_deviations(void **state)
{
    const int64_t days[] = {200, 190, 230, 200, 160, 210, 300, 180};
    (void)state;
    struct spend_usual u = of(days, 8, &usual);
    assert_int_equal(u.median_uusd, 200 * USD);
    /* 4 x 1.4826 x 15 = 88.956131 */
    assert_int_equal(u.limit_uusd, 288956133);
}

/* The mean would have risen to 1,425 and the standard deviation to 3,241. */
static void one_expensive_day_before_hides_nothing(void **state)
{
    const int64_t days[] = {200, 190, 230, 200, 160, 10000, 240, 180};
    (void)state;
    struct spend_usual u = of(days, 8, &usual);
    assert_int_equal(u.median_uusd, 200 * USD);
    assert_true(u.limit_uusd < 400 * USD);
}

static void equal_days_have_a_limit(void **state)
{
    const int64_t equal[] = {100, 100, 100, 100, 100}, one[] = {0, 0, 0, 0, 0, 0, 0, 80},
                  large[] = {10000, 10000, 10001, 10000};
    (void)state;
    /* at_least is more than a tenth of the median, four times */
    assert_int_equal(of(equal, 5, &usual).limit_uusd, 150 * USD);
    /* the MAD is 0; the mean deviation is 10: 4 x 1.2533 x 10 = 50.13 */
    assert_int_equal(of(one, 8, &usual).median_uusd, 0);
    assert_int_equal(of(one, 8, &usual).limit_uusd, 50132565);
    /* a dollar of 10,000 is noise */
    assert_int_equal(of(large, 4, &usual).limit_uusd, 14000 * USD);
}

static void limits_are_as_configured(void **state)
{
    const int64_t days[] = {10, 12, 8, 11};
    (void)state;
    struct spend_limits l = usual;
    assert_int_equal(of(days, 4, &l).limit_uusd, 60500000);
    l.at_least_uusd = 0;
    l.deviations = 10;
    /* median 10.5, MAD 1: 10 x 1.4826 */
    assert_int_equal(of(days, 4, &l).limit_uusd, 25326022);
}

static void amounts_of_any_size_do_not_overflow(void **state)
{
    const int64_t days[] = {INT64_MAX, INT64_MAX, 0, INT64_MAX};
    struct spend_usual u;
    (void)state;
    assert_true(spend_usual(days, 4, &usual, &u));
    assert_true(u.limit_uusd > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_weeks_say_nothing),
        cmocka_unit_test(the_limit_is_the_median_and_some_deviations),
        cmocka_unit_test(one_expensive_day_before_hides_nothing),
        cmocka_unit_test(equal_days_have_a_limit),
        cmocka_unit_test(limits_are_as_configured),
        cmocka_unit_test(amounts_of_any_size_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
