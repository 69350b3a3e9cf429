/* SPDX-License-Identifier: Apache-2.0
 *
 * Crontab lines: accepted and refused ones, and the next time across clock changes.
 * tests/job/test_cron_calendar.py compares the same with the machine's zones and another calendar.
 */
#include "tests/base/tools.h"

#include "job/cron.h"
#include <stdio.h>

static struct cron parsed(const char *text)
{
    struct cron c;
    struct err e;
    if (cron_parse(text, &c, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return c;
}

static struct wall at(const char *iso)
{
    struct wall w;
    struct err e;
    assert_int_equal(time_parse_iso(iso, &w, &e), 0);
    return w;
}

/* The next two times in UTC, separated by a blank. */
static void check_next(const char *text, const char *after, const char *expected)
{
    struct cron c = parsed(text);
    char a[TIME_ISO_MAX], b[TIME_ISO_MAX], both[2 * TIME_ISO_MAX];
    struct wall first = cron_next(&c, &zone_utc, CRON_GAP_RUN, CRON_TWICE_AUTO, at(after));
    time_format_iso(first, a);
    time_format_iso(cron_next(&c, &zone_utc, CRON_GAP_RUN, CRON_TWICE_AUTO, first), b);
    snprintf(both, sizeof both, "%s %s", a, b);
    assert_string_equal(both, expected);
}

static void a_schedule_matches_the_minutes_of_its_fields(void **state)
{
    (void)state;
    check_next("30 2 * * *", "2026-11-21T20:26:00Z", "2026-11-22T02:30:00Z 2026-11-23T02:30:00Z");
    check_next("30 2 * * *", "2026-11-21T02:30:00Z", "2026-11-22T02:30:00Z 2026-11-23T02:30:00Z");
    check_next(
        "30 2 * * *", "2026-11-21T02:29:59.999Z", "2026-11-21T02:30:00Z 2026-11-22T02:30:00Z");
    check_next(
        "*/25 8-9 * * *", "2026-11-21T08:49:00Z", "2026-11-21T08:50:00Z 2026-11-21T09:00:00Z");
    check_next(
        "5-59/20,0 * * * *", "2026-11-21T23:44:00Z", "2026-11-21T23:45:00Z 2026-11-22T00:00:00Z");
    check_next("0 0 31 * *", "2026-11-21T00:00:00Z", "2026-12-31T00:00:00Z 2027-01-31T00:00:00Z");
    check_next(
        "0 12 29 feb *", "2096-03-01T00:00:00Z", "2104-02-29T12:00:00Z 2108-02-29T12:00:00Z");
    check_next(
        "0 9 * * mon-FRI", "2026-11-20T09:00:00Z", "2026-11-23T09:00:00Z 2026-11-24T09:00:00Z");
    check_next("0 9 * * 7", "2026-11-20T09:00:00Z", "2026-11-22T09:00:00Z 2026-11-29T09:00:00Z");
    check_next("0 9 * * 5-7", "2026-11-22T09:00:00Z", "2026-11-27T09:00:00Z 2026-11-28T09:00:00Z");
    check_next(
        "0 9 * Jan,dec sun", "2026-11-22T09:00:00Z", "2026-12-06T09:00:00Z 2026-12-13T09:00:00Z");
    check_next("@hourly", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z 2027-01-01T01:00:00Z");
    check_next("@Daily", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z 2027-01-02T00:00:00Z");
    check_next("@weekly", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z 2026-11-29T00:00:00Z");
    check_next(" @annually ", "2026-11-21T00:00:00Z", "2027-01-01T00:00:00Z 2028-01-01T00:00:00Z");
}

static void day_fields_are_alternatives_unless_one_begins_with_a_star(void **state)
{
    (void)state;
    check_next("0 0 13 * fri", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z 2026-11-27T00:00:00Z");
    check_next("0 0 13 * fri", "2026-12-12T00:00:00Z", "2026-12-13T00:00:00Z 2026-12-18T00:00:00Z");
    check_next(
        "0 0 */2 * fri", "2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z 2026-12-11T00:00:00Z");
    check_next("0 0 13 * */5", "2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z 2027-06-13T00:00:00Z");
    check_next("0 0 31 2 mon", "2026-11-21T00:00:00Z", "2027-02-01T00:00:00Z 2027-02-08T00:00:00Z");
}

static void the_time_zone_may_precede_the_schedule(void **state)
{
    (void)state;
    assert_string_equal(parsed("0 0 * * *").zone, "");
    assert_string_equal(parsed("TZ=Europe/Berlin 0 0 * * *").zone, "Europe/Berlin");
    assert_string_equal(parsed(" CRON_TZ=America/Argentina/Buenos_Aires @daily").zone,
        "America/Argentina/Buenos_Aires");
    assert_string_equal(parsed("TZ=Etc/GMT+5\t0 0 * * *").zone, "Etc/GMT+5");
}

static void a_malformed_schedule_is_refused_with_the_field(void **state)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "found 0"},
        {"* * * *", "found 4"},
        {"0 0 * * * *", "found 6"},
        {"60 * * * *", "minute: \"60\""},
        {"99999999999999999999 * * * *", "minute: "},
        {"-1 * * * *", "minute: \"-1\""},
        {"1, * * * *", "minute: \"1,\""},
        {",1 * * * *", "an element is empty"},
        {"1-2-3 * * * *", "not understood"},
        {"1- * * * *", "has no end"},
        {"** * * * *", "not understood"},
        {"*/0 * * * *", "a step is"},
        {"*/60 * * * *", "a step is"},
        {"*/ * * * *", "a step is"},
        {"5/10 * * * *", "a step needs a range"},
        {"*-5 * * * *", "not understood"},
        {"0 24 * * *", "hour: \"24\": expected 0-23"},
        {"0 jan * * *", "hour: \"jan\""},
        {"0 8-6 * * *", "backwards"},
        {"0 0 0 * *", "day of the month: \"0\""},
        {"0 0 32 * *", "day of the month: \"32\""},
        {"0 0 L * *", "day of the month: \"L\""},
        {"0 0 ? * *", "day of the month: \"?\""},
        {"0 0 * 13 *", "month: \"13\": expected 1-12 or jan-dec"},
        {"0 0 * january *", "month: \"january\""},
        {"0 0 * * 8", "day of the week: \"8\": expected 0-7 or sun-sat"},
        {"0 0 * * fri-mon", "backwards"},
        {"0 0 * * 5#2", "day of the week: \"5#2\""},
        {"0 0 31 2,4 *", "never comes"},
        {"0 0 30 2 */2", "never comes"},
        {"@reboot", "no time"},
        {"@fortnightly", "expected @hourly"},
        {"@daily 5", "nothing may follow"},
        {"TZ= 0 0 * * *", "time zone: "},
        {"TZ=../etc/passwd 0 0 * * *", "time zone: "},
        {"TZ=/etc/passwd 0 0 * * *", "time zone: "},
        {"TZ=Europe/Berlin", "found 0"},
        {"0\n0 * * *", "found 4"},
    };
    char longer[CRON_TEXT_MAX + 1];
    struct cron c = {.months = 77};
    struct err e;
    (void)state;
    for (size_t k = 0; k < LEN(wrong); k++) {
        if (cron_parse(wrong[k].text, &c, &e) != ERR_INVALID)
            fail_msg("taken: %s", wrong[k].text);
        assert_err(&e, ERR_INVALID, wrong[k].part);
    }
    memset(longer, '1', sizeof longer);
    longer[CRON_TEXT_MAX] = '\0';
    assert_int_equal(cron_parse(longer, &c, &e), ERR_INVALID);
    assert_int_equal(c.months, 77);
}

/* A zone with two odd clock changes: forward by 2 h over midnight of 1 January 2030, back by 30 min
 * at 03:00 of 1 July. */
static struct time_zone odd(struct zone_span spans[3])
{
    spans[0] = (struct zone_span){INT64_MIN, 0};
    spans[1] = (struct zone_span){at("2029-12-31T23:00:00Z").ms / 1000, 7200};
    spans[2] = (struct zone_span){at("2030-07-01T01:00:00Z").ms / 1000, 5400};
    return (struct time_zone){.name = "Odd/Days", .n = 3, .spans = spans};
}

/* Up to n times after `after`, in local time without the date, for the given gap and twice
 * rules. */
static void check_odd(const char *text, enum cron_gap gap, enum cron_twice twice, const char *after,
    const char *expected)
{
    struct zone_span spans[3];
    struct time_zone z = odd(spans);
    struct cron c = parsed(text);
    struct wall w = at(after);
    char shown[256] = "", time[ZONE_TIME_MAX];
    size_t n = 0, want = 1;
    for (const char *p = expected; *p; p++)
        want += *p == ' ';
    for (size_t k = 0; k < want; k++) {
        w = cron_next(&c, &z, gap, twice, w);
        zone_format(&z, w, time);
        n += (size_t)snprintf(
            shown + n, sizeof shown - n, "%s%.8s%.6s", k ? " " : "", time + 8, time + 19);
    }
    assert_string_equal(shown, expected);
}

#define SPRING "2029-12-31T00:00:00Z"
#define AUTUMN "2030-06-30T23:59:00Z" /* 01:59 local time */

static void a_skipped_local_minute_runs_when_the_clock_moves_forward(void **state)
{
    (void)state;
    check_odd(
        "30 23 * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, SPRING, "01T01:00+02:00 01T23:30+02:00");
    check_odd("30 0 * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, SPRING,
        "31T00:30Z 01T01:00+02:00 02T00:30+02:00");
    check_odd("30 23 * * *", CRON_GAP_SKIP, CRON_TWICE_AUTO, SPRING, "01T23:30+02:00");
    /* Runs once for all skipped times, and not again if the moment itself is scheduled. */
    check_odd("0 * * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, "2029-12-31T21:30:00Z",
        "31T22:00Z 01T01:00+02:00 01T02:00+02:00");
    check_odd("*/20 * * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, "2029-12-31T22:30:00Z",
        "31T22:40Z 01T01:00+02:00 01T01:20+02:00");
    check_odd("30 */3 * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, "2029-12-31T20:30:00Z",
        "31T21:30Z 01T01:00+02:00 01T03:30+02:00");
    /* The weekday and the day of the month are those of the skipped minute. */
    check_odd("30 0 1 * *", CRON_GAP_RUN, CRON_TWICE_AUTO, SPRING, "01T01:00+02:00 01T00:30+02:00");
    check_odd("30 23 31 12 *", CRON_GAP_RUN, CRON_TWICE_AUTO, SPRING, "01T01:00+02:00");
}

static void a_repeated_local_minute_runs_once_unless_hourly(void **state)
{
    (void)state;
    check_odd("45 2 * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, AUTUMN, "01T02:45+02:00 02T02:45+01:30");
    check_odd(
        "45 2 * * *", CRON_GAP_RUN, CRON_TWICE_FIRST, AUTUMN, "01T02:45+02:00 02T02:45+01:30");
    check_odd("45 2 * * *", CRON_GAP_RUN, CRON_TWICE_LAST, AUTUMN, "01T02:45+01:30 02T02:45+01:30");
    check_odd("45 2 * * *", CRON_GAP_RUN, CRON_TWICE_BOTH, AUTUMN,
        "01T02:45+02:00 01T02:45+01:30 02T02:45+01:30");
    check_odd("0,45 * * * *", CRON_GAP_RUN, CRON_TWICE_AUTO, AUTUMN,
        "01T02:00+02:00 01T02:45+02:00 01T02:45+01:30 01T03:00+01:30");
    check_odd("0,45 * * * *", CRON_GAP_RUN, CRON_TWICE_FIRST, AUTUMN,
        "01T02:00+02:00 01T02:45+02:00 01T03:00+01:30");
    /* 03:00 is put back to 02:30: so 02:30 is the first repeated minute, and 03:00 occurs once. */
    check_odd("30 2 * * *", CRON_GAP_RUN, CRON_TWICE_BOTH, AUTUMN, "01T02:30+02:00 01T02:30+01:30");
    check_odd("0 3 * * *", CRON_GAP_RUN, CRON_TWICE_BOTH, AUTUMN, "01T03:00+01:30 02T03:00+01:30");
}

static void nothing_runs_after_the_end_of_the_zone_tables(void **state)
{
    struct cron c = parsed("0 0 1 1 *");
    (void)state;
    assert_false(wall_is_set(
        cron_next(&c, &zone_utc, CRON_GAP_RUN, CRON_TWICE_AUTO, at("2199-01-01T00:00:00Z"))));
    assert_int_equal(
        cron_next(&c, &zone_utc, CRON_GAP_RUN, CRON_TWICE_AUTO, (struct wall){-5}).ms, 0);
}

static void local_times_are_converted(void **state)
{
    struct zone_span spans[3];
    struct time_zone z = odd(spans);
    (void)state;
    int64_t forward = spans[1].from_s, back = spans[2].from_s;
    assert_int_equal(zone_from_local_s(&z, forward - 1), forward - 1);
    assert_int_equal(zone_from_local_s(&z, forward + 3600), forward);
    assert_int_equal(zone_from_local_s(&z, forward + 7200), forward);
    assert_int_equal(zone_from_local_s(&z, forward + 7201), forward + 1);
    assert_int_equal(zone_from_local_s(&z, back + 5400), back - 1800);
    assert_int_equal(zone_from_local_s(&z, back + 7199), back - 1);
    assert_int_equal(zone_from_local_s(&z, back + 7200), back + 1800);
    assert_int_equal(zone_offset_s(&z, forward - 1), 0);
    assert_int_equal(zone_offset_s(&z, forward), 7200);
    assert_int_equal(zone_offset_s(&z, back), 5400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_matches_the_minutes_of_its_fields),
        cmocka_unit_test(day_fields_are_alternatives_unless_one_begins_with_a_star),
        cmocka_unit_test(the_time_zone_may_precede_the_schedule),
        cmocka_unit_test(a_malformed_schedule_is_refused_with_the_field),
        cmocka_unit_test(a_skipped_local_minute_runs_when_the_clock_moves_forward),
        cmocka_unit_test(a_repeated_local_minute_runs_once_unless_hourly),
        cmocka_unit_test(nothing_runs_after_the_end_of_the_zone_tables),
        cmocka_unit_test(local_times_are_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
