/* SPDX-License-Identifier: Apache-2.0
 *
 * The trend of a demand over weeks, and its forecast.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "money/trend.h"
#include <math.h>

#define HOURS ((size_t)TREND_HOURS_A_WEEK)

static void assert_near(double is, double expected, double by)
{
    if (!(fabs(is - expected) <= by))
        fail_msg("%f is not %f", is, expected);
}

static void a_line_is_continued(void **state)
{
    const double weeks[] = {10, 12, 14, 16, 18, 20};
    struct trend t;
    (void)state;
    assert_true(trend_of(weeks, 6, &t));
    assert_near(t.slope, 2, 1e-9);
    assert_near(t.next, 25, 1e-9);
    assert_near(t.low, 25, 1e-9);
    assert_near(t.high, 25, 1e-9);
}

static void an_odd_week_hardly_changes_it(void **state)
{
    const double weeks[] = {10, 10, 10, 90, 10, 10, 10, 10, 0, 10};
    struct trend t;
    (void)state;
    assert_true(trend_of(weeks, 10, &t));
    assert_near(t.slope, 0, 1e-9);
    assert_near(t.next, 10, 1e-9);
    assert_true(t.low <= 10 && t.high >= 10);
}

/* n = 10, 45 pairs: c = 1.645 * sqrt(10 * 9 * 25 / 18) = 18.39; ranks 13 and 33. */
static void the_range_is_between_the_ranks_of_sen(void **state)
{
    const double weeks[] = {1, 5, 2, 6, 4, 9, 5, 11, 8, 10};
    struct trend t;
    (void)state;
    assert_true(trend_of(weeks, 10, &t));
    assert_near(t.slope, 1, 1e-9);
    assert_near(t.next, 12.5, 1e-9); /* by the median of weeks[k] - k */
    assert_true(t.low < t.next && t.next < t.high);
}

static void a_falling_demand_is_not_negative(void **state)
{
    const double weeks[] = {9, 6, 3, 0};
    struct trend t;
    (void)state;
    assert_true(trend_of(weeks, 4, &t));
    assert_near(t.slope, -3, 1e-9);
    assert_near(t.next, 0, 1e-9);
}

static void below_four_weeks_there_is_too_little_history(void **state)
{
    const double weeks[] = {1, 2, 3};
    struct trend t;
    (void)state;
    assert_false(trend_of(weeks, 3, &t));
}

static void weeks_end_with_the_last_hour(void **state)
{
    double hours[4 * 168 + 5], means[TREND_WEEKS_MAX];
    (void)state;
    for (size_t i = 0; i < 4 * HOURS + 5; i++)
        hours[i] = i < 5 ? 1000 : (double)((i - 5) / HOURS);
    assert_int_equal(trend_weeks(hours, 4 * HOURS + 5, 0, means), 4);
    for (size_t k = 0; k < 4; k++)
        assert_near(means[k], (double)k, 1e-9);
    assert_int_equal(trend_weeks(&hours[7], 4 * HOURS - 2, 0, means), 3);
    assert_near(means[0], 1, 1e-9);
    assert_int_equal(trend_weeks(&hours[7], 4 * HOURS - 2, 2, means), 4);
    assert_near(means[0], 0, 1e-9);
    assert_near(means[3], 3, 1e-9);
    assert_int_equal(trend_weeks(hours, 3, 2, means), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_continued),
        cmocka_unit_test(an_odd_week_hardly_changes_it),
        cmocka_unit_test(the_range_is_between_the_ranks_of_sen),
        cmocka_unit_test(a_falling_demand_is_not_negative),
        cmocka_unit_test(below_four_weeks_there_is_too_little_history),
        cmocka_unit_test(weeks_end_with_the_last_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
