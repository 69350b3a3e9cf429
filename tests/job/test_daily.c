/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "job/daily.h"

#define HOUR_MS ((int64_t)3600000)

static struct daily parsed(const char *text)
{
    struct daily d;
    struct err e;
    assert_int_equal(daily_parse(text, &d, &e), 0);
    return d;
}

static void check_text(const char *given, const char *expected)
{
    char text[DAILY_TEXT_MAX];
    struct daily d = parsed(given);
    daily_format(&d, text);
    assert_string_equal(text, expected);
}

static void a_list_is_sorted_without_duplicates(void **state)
{
    (void)state;
    check_text("", "");
    check_text("00:00", "00:00");
    check_text("18:30,06:05,18:30,23:59", "06:05,18:30,23:59");
    check_text("07:00,06:00,05:00,04:00,03:00,02:00,01:00,00:00",
        "00:00,01:00,02:00,03:00,04:00,05:00,06:00,07:00");
    check_text("00:00,01:00,02:00,03:00,04:00,05:00,06:00,07:00,00:00",
        "00:00,01:00,02:00,03:00,04:00,05:00,06:00,07:00");
}

static void a_malformed_list_is_refused_and_quoted(void **state)
{
    static const char *const texts[] = {",", "06:00,", ",06:00", "6:00", "06:0", "06:000", "24:00",
        "06:60", "-1:00", "06.00", "06:00 18:00", "06:00Z", "+6:00", "aa:bb", " 06:00",
        "06:00,,18:00"};
    struct daily d = {.n = 7};
    struct err e;
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        assert_int_equal(daily_parse(texts[k], &d, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, texts[k]));
    }
    assert_int_equal(
        daily_parse("00:00,00:01,00:02,00:03,00:04,00:05,00:06,00:07,00:08", &d, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most 8"));
    assert_int_equal(d.n, 7);
}

static void the_next_time_is_the_first_later_one(void **state)
{
    struct daily d = parsed("06:00,18:00"), none = {0};
    int64_t day = 20000 * DAY_MS;
    (void)state;
    assert_int_equal(daily_next(&d, (struct wall){day}).ms, day + 6 * HOUR_MS);
    assert_int_equal(daily_next(&d, (struct wall){day + 6 * HOUR_MS - 1}).ms, day + 6 * HOUR_MS);
    assert_int_equal(daily_next(&d, (struct wall){day + 6 * HOUR_MS}).ms, day + 18 * HOUR_MS);
    assert_int_equal(daily_next(&d, (struct wall){day + 18 * HOUR_MS}).ms, day + 30 * HOUR_MS);
    assert_int_equal(daily_next(&d, (struct wall){-1}).ms, 6 * HOUR_MS);
    assert_int_equal(daily_next(&d, (struct wall){-7 * HOUR_MS}).ms, -6 * HOUR_MS);
    assert_false(wall_is_set(daily_next(&none, (struct wall){day})));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_sorted_without_duplicates),
        cmocka_unit_test(a_malformed_list_is_refused_and_quoted),
        cmocka_unit_test(the_next_time_is_the_first_later_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
