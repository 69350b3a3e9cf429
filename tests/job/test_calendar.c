/* SPDX-License-Identifier: Apache-2.0
 *
 * Days of calendars, their text, and the day that a time is on.
 */
#include "tests/base/tools.h"

#include "base/str.h"
#include "job/calendar.h"

static void days_and_ranges_are_read_and_contain_their_ends(void **state)
{
    struct calendar_days days[2];
    struct calendar c = {.n = 2, .days = days};
    char text[CALENDAR_TEXT_MAX];
    struct err e;
    (void)state;
    assert_int_equal(calendar_parse("2024-02-29", &days[0], &e), 0);
    assert_int_equal(days[0].first, 19782);
    calendar_format(days[0].first, text);
    assert_string_equal(text, "2024-02-29");
    assert_int_equal(calendar_parse("2026-12-24..2027-01-02", &days[1], &e), 0);
    assert_int_equal(days[1].last - days[1].first, 9);
    assert_true(calendar_has(&c, days[0].first));
    assert_false(calendar_has(&c, days[0].first + 1));
    assert_false(calendar_has(&c, days[1].first - 1));
    assert_true(calendar_has(&c, days[1].first));
    assert_true(calendar_has(&c, days[1].last));
    assert_false(calendar_has(&c, days[1].last + 1));
}

static void each_day_of_two_centuries_is_read_as_it_is_written(void **state)
{
    struct calendar_days d;
    char text[CALENDAR_TEXT_MAX];
    struct err e;
    (void)state;
    for (int32_t day = 0; day < 84006; day++) { /* 2199-12-31 is the last */
        calendar_format(day, text);
        assert_int_equal(calendar_parse(text, &d, &e), 0);
        assert_int_equal(d.first, day);
        assert_int_equal(d.last, day);
    }
}

static void malformed_days_are_refused(void **state)
{
    static const char *const bad[] = {"", "2026", "2026-12", "2026-1-2", "2026-13-01", "2026-00-10",
        "2026-02-29", "2026-04-31", "2026-12-25 ", " 2026-12-25", "1969-12-31", "2200-01-01",
        "20261225", "2026/12/25", "2026-12-25..", "..2026-12-25", "2026-12-25..2026-12-24",
        "2026-12-25...2026-12-26", "2026-12-25..2026-12-26..2026-12-27", "2026-12-2x", "-026-12-25",
        "christmas"};
    struct calendar_days d;
    struct err e;
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (calendar_parse(bad[k], &d, &e) != ERR_INVALID)
            fail_msg("%s was read", bad[k]);
    assert_non_null(strstr(e.text, "such as 2026-12-25"));
}

static void the_zone_decides_which_day_it_is(void **state)
{
    struct zone_span east = {INT64_MIN, 11 * 3600}, west = {INT64_MIN, -8 * 3600};
    const struct time_zone sydney = {.n = 1, .spans = &east}, la = {.n = 1, .spans = &west};
    struct wall at = {1700006400000}; /* 2023-11-15T00:00:00Z */
    char text[CALENDAR_TEXT_MAX];
    (void)state;
    calendar_format(calendar_day(&sydney, at), text);
    assert_string_equal(text, "2023-11-15");
    calendar_format(calendar_day(&la, at), text);
    assert_string_equal(text, "2023-11-14");
    assert_int_equal(
        calendar_begin(&sydney, calendar_day(&sydney, at)).ms, at.ms - 11 * 3600 * 1000);
    assert_int_equal(calendar_day(&la, (struct wall){0}), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_ranges_are_read_and_contain_their_ends),
        cmocka_unit_test(each_day_of_two_centuries_is_read_as_it_is_written),
        cmocka_unit_test(malformed_days_are_refused),
        cmocka_unit_test(the_zone_decides_which_day_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
