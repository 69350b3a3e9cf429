/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/http_date.h"
#include "base/prng.h"
#include "base/time.h"
#include <stdio.h>
#include <time.h>

static void iso_times_are_formatted_as_by_libc(void **state)
{
    struct prng p;
    (void)state;
    prng_init(&p, 1);
    for (int i = 0; i < 20000; i++) {
        struct wall w = {prng_range(&p, 0, 253402300799) * 1000}, back;
        char text[TIME_ISO_MAX], expected[TIME_ISO_MAX];
        time_t s = (time_t)(w.ms / 1000);
        struct tm tm;
        struct err e;
        strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&s, &tm));
        time_format_iso(w, text);
        assert_string_equal(text, expected);
        w.ms += (int64_t)prng_below(&p, 1000);
        time_format_iso(w, text);
        assert_int_equal(time_parse_iso(text, &back, &e), 0);
        assert_true(back.ms == w.ms);
    }
}

static void iso_times_outside_the_years_are_a_dash(void **state)
{
    char text[TIME_ISO_MAX];
    (void)state;
    time_format_iso(WALL_NONE, text);
    assert_string_equal(text, "-");
    time_format_iso((struct wall){253402300800000}, text);
    assert_string_equal(text, "-");
    time_format_iso((struct wall){0}, text);
    assert_string_equal(text, "1970-01-01T00:00:00Z");
    time_format_iso((struct wall){253402300799007}, text);
    assert_string_equal(text, "9999-12-31T23:59:59.007Z");
}

static void iso_times_are_parsed_strictly(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"1970-01-01T00:00:00Z", 0}, {"2026-08-22T12:02:00+00:00", 1787400120000},
        {"2026-08-22T12:02:00.5+0000", 1787400120500},
        {"2026-08-22T12:02:00.0019999999Z", 1787400120001}, {"2000-02-29T23:59:59Z", 951868799000}};
    static const char *const bad[] = {"", "2026-08-22", "2026-08-22 12:02:00Z",
        "2026-08-22T12:02:00", "2026-08-22T12:02:00+01:00", "2026-08-22T12:02Z",
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z",
        "2100-02-29T00:00:00Z", "2026-08-22T24:00:00Z", "2026-08-22T12:60:00Z",
        "2026-08-22T12:02:60Z", "2026-08-22T12:02:00.Z", "1969-12-31T23:59:59Z",
        "2026-8-22T12:02:00Z", "2026-08-22T12:02:00ZZ", "2026-08-22t12:02:00z",
        "+026-08-22T12:02:00Z"};
    struct wall w;
    struct err e;
    (void)state;
    for (size_t i = 0; i < LEN(good); i++) {
        assert_int_equal(time_parse_iso(good[i].text, &w, &e), 0);
        assert_int_equal(w.ms, good[i].ms);
    }
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(time_parse_iso(bad[i], &w, &e), ERR_INVALID);
    assert_err(&e, ERR_INVALID, "+026-08-22");
}

struct duration_case {
    const char *text;
    int64_t s;
};

static void check_durations(const struct duration_case *cases, size_t n, bool slurm)
{
    for (size_t i = 0; i < n; i++) {
        int64_t ms;
        struct err e;
        assert_int_equal(time_parse_duration(cases[i].text, slurm, &ms, &e), 0);
        assert_int_equal(ms, SECONDS_MS(cases[i].s));
    }
}

static void durations_have_units(void **state)
{
    static const struct duration_case plain[] = {{"0", 0}, {"90", 90}, {"90s", 90}, {"10m", 600},
        {"2h", 7200}, {"1d", 86400}, {"3650d", 315360000}};
    static const struct duration_case slurm[] = {{"30", 1800}, {"90s", 90}, {"90:00", 5400},
        {"12:00:00", 43200}, {"2-12", 216000}, {"0-36", 129600}, {"1-00:30", 88200},
        {"1-00:00:01", 86401}};
    static const char *const bad[] = {"", "-1", "s", "1w", "1.5h", "1 m", "10:00", "1-2", "1h30m",
        "1s5ms", "3651d", "99999999999999999999"};
    static const char *const bad_slurm[] = {
        "1:2:3:4", "1-", "-1", ":", "1:", "1-1:1:1:1", "a:b", "3651-00"};
    int64_t ms = 7;
    struct err e;
    (void)state;
    check_durations(plain, LEN(plain), false);
    assert_int_equal(time_parse_duration("300ms", false, &ms, &e), 0);
    assert_int_equal(ms, 300);
    ms = 7;
    check_durations(slurm, LEN(slurm), true);
    for (size_t i = 0; i < LEN(bad); i++)
        assert_int_equal(time_parse_duration(bad[i], false, &ms, &e), ERR_INVALID);
    for (size_t i = 0; i < LEN(bad_slurm); i++)
        assert_int_equal(time_parse_duration(bad_slurm[i], true, &ms, &e), ERR_INVALID);
    assert_int_equal(ms, 7);
    static const char *const decimals[] = {"0.2s", "1.5h", ".5s", "2.0"};
    for (size_t i = 0; i < LEN(decimals); i++) {
        assert_int_equal(time_parse_duration(decimals[i], i == 1, &ms, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "in whole numbers, as 90m for 1.5h"));
    }
    assert_int_equal(time_parse_duration("1.h", false, &ms, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "expected a duration such as"));
}

static void durations_are_formatted_in_two_units(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0ms"}, {250, "250ms"}, {999, "999ms"}, {1000, "1s"}, {12399, "12.3s"},
        {12099, "12s"}, {59999, "59.9s"}, {250000, "4m10s"}, {11100000, "3h05m"},
        {93600000, "1d02h"}, {-250000, "-4m10s"}, {TIME_NONE_MS, "-"},
        {TIME_NONE_MS + 1, "-106751991167d07h"}};
    char out[40];
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        time_format_duration(cases[i].ms, out, sizeof(out));
        assert_string_equal(out, cases[i].text);
    }
}

static void durations_are_formatted_exactly_in_one_unit(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0s"}, {1, "1ms"}, {1500, "1500ms"}, {90000, "90s"}, {60000, "1m"},
        {5400000, "90m"}, {INT64_C(86400000) * 62, "62d"}, {TIME_DURATION_MAX_MS, "3650d"}};
    char out[TIME_EXACT_MAX];
    int64_t ms;
    struct err e;
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        time_format_exact(cases[i].ms, out);
        assert_string_equal(out, cases[i].text);
        assert_int_equal(time_parse_duration(out, false, &ms, &e), 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

static void http_dates_are_read(void **state)
{
    char text[HTTP_DATE_MAX];
    static const char *const wrong[] = {"", "Sat, 22 Aug 2026 12:00:00 UTC",
        "Sat, 22 Aut 2026 12:00:00 GMT", "Sat, 22 anF 2026 12:00:00 GMT",
        "Sat, 32 Aug 2026 12:00:00 GMT", "Sat, 22 Aug 2026 12:00:0x GMT", "2026-08-22T12:00:00Z",
        NULL};
    struct wall w;
    (void)state;
    assert_int_equal(http_date_parse("Sat, 22 Aug 2026 12:00:00 GMT", &w, NULL), 0);
    assert_int_equal(w.ms, 1787400000000);
    http_date_write(w, text);
    assert_string_equal(text, "Sat, 22 Aug 2026 12:00:00 GMT");
    assert_int_equal(http_date_parse(NULL, &w, NULL), ERR_INVALID);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(http_date_parse(wrong[i], &w, NULL), ERR_INVALID);
}

static void an_unset_time_is_not_zero(void **state)
{
    (void)state;
    assert_false(wall_is_set(WALL_NONE));
    assert_false(mono_is_set(MONO_NONE));
    assert_true(wall_is_set((struct wall){0}) && mono_is_set((struct mono){0}));
}

static void the_system_clocks_advance(void **state)
{
    (void)state;
    struct mono a = clock_mono(&clock_system);
    assert_true(clock_mono(&clock_system).ms >= a.ms);
    assert_true(clock_wall(&clock_system).ms > (int64_t)1700000000 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iso_times_are_formatted_as_by_libc),
        cmocka_unit_test(iso_times_outside_the_years_are_a_dash),
        cmocka_unit_test(iso_times_are_parsed_strictly),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(durations_are_formatted_in_two_units),
        cmocka_unit_test(durations_are_formatted_exactly_in_one_unit),
        cmocka_unit_test(http_dates_are_read),
        cmocka_unit_test(an_unset_time_is_not_zero),
        cmocka_unit_test(the_system_clocks_advance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
