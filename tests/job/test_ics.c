/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of iCalendar: the days of events, and everything that is refused.
 */
#include "tests/base/tools.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/ics.h"

#define EVENT(lines) "BEGIN:VCALENDAR\nBEGIN:VEVENT\n" lines "END:VEVENT\nEND:VCALENDAR\n"

static void check_days(const char *text, const char *wanted)
{
    struct calendar c = {0};
    struct buf days = {0};
    struct err e;
    if (ics_read(text, strlen(text), &c, &e) != 0)
        fail_msg("%s\n%s", e.text, text);
    calendar_print_list(&c, &days);
    assert_string_equal(buf_str(&days), wanted);
    buf_deinit(&days);
    free(c.days);
}

static void refuse(const char *text, const char *said)
{
    struct calendar c = {0};
    struct err e = {0};
    assert_int_equal(ics_read(text, strlen(text), &c, &e), ERR_INVALID);
    assert_null(c.days);
    if (!strstr(e.text, said))
        fail_msg("'%s' is not in: %s", said, e.text);
}

static void events_of_whole_days_are_read(void **state)
{
    (void)state;
    check_days(EVENT("DTSTART;VALUE=DATE:20261225\n"), "2026-12-25");
    check_days(EVENT("DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261226\n"), "2026-12-25");
    check_days(EVENT("DTEND;VALUE=DATE:20270102\nDTSTART:20261224\n"), "2026-12-24..2027-01-01");
    check_days(EVENT("dtstart;value=date:20260101\nDURATION:P2W\n"), "2026-01-01..2026-01-14");
    check_days(EVENT("DTSTART:2026\r\n 0101\r\nDURATION:P\n\t1D\n"), "2026-01-01");
}

static void events_are_sorted_and_joined(void **state)
{
    (void)state;
    check_days("BEGIN:VCALENDAR\r\nX-WR-CALNAME:a:b\r\n"
               "BEGIN:VEVENT\r\nDTSTART:20270101\r\nEND:VEVENT\r\n"
               "BEGIN:VEVENT\r\nDTSTART:20261231\r\nEND:VEVENT\r\n"
               "BEGIN:VEVENT\r\nDTSTART:20261225\r\nDURATION:P2D\r\nEND:VEVENT\r\n"
               "BEGIN:VEVENT\r\nDTSTART:20261226\r\nEND:VEVENT\r\n"
               "END:VCALENDAR\r\n",
        "2026-12-25..2026-12-26,2026-12-31..2027-01-01");
}

static void what_decides_no_day_is_skipped(void **state)
{
    (void)state;
    check_days("BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nBEGIN:STANDARD\nDTSTART:19700405T030000\n"
               "RRULE:FREQ=YEARLY\nEND:STANDARD\nEND:VTIMEZONE\n"
               "BEGIN:VEVENT\nSTATUS:CANCELLED\nDTSTART:20260101\nEND:VEVENT\n"
               "BEGIN:VEVENT\nSTATUS:CONFIRMED\nSUMMARY;X=\"a:b\":Day\nDTSTART:20260102\n"
               "BEGIN:VALARM\nDURATION:PT5M\nEND:VALARM\nEND:VEVENT\n\nEND:VCALENDAR",
        "2026-01-02");
}

static void what_would_miss_a_day_is_refused_with_its_line(void **state)
{
    (void)state;
    refuse(EVENT("DTSTART:20261225\nRRULE:FREQ=YEARLY\n"), "line 4: the event recurs (RRULE)");
    refuse(EVENT("EXDATE:20261225\n"), "line 3: the event recurs (EXDATE)");
    refuse(EVENT("DTSTART:20261225T080000Z\n"), "line 3: the event begins or ends at a time");
    refuse(EVENT("DTSTART;TZID=Europe/Berlin:20261225\n"), "line 3: expected a day such as");
    refuse(EVENT("DTSTART:20260229\n"), "line 3: expected a day such as");
    refuse(EVENT("DTSTART:2026122\n"), "line 3: expected a day such as");
    refuse(EVENT("DTSTART:20261225x\n"), "line 3: expected a day such as");
    refuse(EVENT("SUMMARY:x\n"), "line 2: the event that begins here has no DTSTART");
    refuse(EVENT("DTSTART:20261225\nDTSTART:20261226\n"), "line 4: the event has DTSTART twice");
    refuse(EVENT("DTSTART:20261225\nDTEND:20261225\n"), "line 2: the event that begins here ends");
    refuse(EVENT("DTSTART:20261225\nDTEND:20261227\nDURATION:P1D\n"), "both DTEND and DURATION");
    refuse(EVENT("DTSTART:20261225\nDURATION:PT1H\n"), "line 4: expected a duration of whole days");
    refuse(EVENT("DTSTART:20261225\nDURATION:P0D\n"), "whole days");
    refuse(EVENT("DTSTART:20261225\nDURATION:\n"), "whole days");
    refuse(EVENT("DTSTART:20261225\nDURATION:P9999W\n"), "line 2: the event that begins here ends");
}

static void malformed_files_are_refused(void **state)
{
    static const char zero[] = "BEGIN:VCALENDAR\n\0";
    struct calendar c = {0};
    struct buf text = {0};
    struct err e;
    (void)state;
    refuse("", "line 1: the file is empty");
    refuse("hello\n", "line 1: expected NAME:VALUE, found \"hello\"");
    refuse("BEGIN:VEVENT\n", "line 1: expected BEGIN:VCALENDAR");
    refuse("VERSION:2.0\n", "line 1: expected BEGIN:VCALENDAR");
    refuse("BEGIN:VCALENDAR\nEND:VCALENDAR\n", "no events of whole days");
    refuse("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n", "line 3: expected END:VEVENT");
    refuse("BEGIN:VCALENDAR\n", "the file ends before END:VCALENDAR");
    refuse("BEGIN:VCALENDAR\nBEGIN:A\nBEGIN:B\nBEGIN:C\nBEGIN:D\n", "line 5: components are");
    assert_int_equal(ics_read(zero, sizeof zero, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "line 2: found a byte 0"));
    buf_adds(&text, "BEGIN:VCALENDAR\n");
    for (int k = 0; k <= CALENDAR_DAYS_MAX; k++)
        buf_adds(&text, "BEGIN:VEVENT\nDTSTART:20261225\nEND:VEVENT\n");
    assert_int_equal(ics_read(text.data, text.len, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "expected at most 1000 events"));
    buf_clear(&text);
    buf_adds(&text, "BEGIN:VCALENDAR\nSUMMARY:");
    while (text.len < ICS_LINE_MAX + 40)
        buf_adds(&text, "x\n ");
    assert_int_equal(ics_read(text.data, text.len, &c, &e), 0 + ERR_INVALID);
    assert_non_null(strstr(e.text, "the file ends before END:VCALENDAR"));
    while (text.len < 4 * ICS_LINE_MAX)
        buf_adds(&text, "x\n ");
    assert_int_equal(ics_read(text.data, text.len, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "line 2: the line is longer than"));
    while (text.len <= ICS_BYTES_MAX)
        buf_adds(&text, "\n");
    assert_int_equal(ics_read(text.data, text.len, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "expected at most 1048576 bytes"));
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_whole_days_are_read),
        cmocka_unit_test(events_are_sorted_and_joined),
        cmocka_unit_test(what_decides_no_day_is_skipped),
        cmocka_unit_test(what_would_miss_a_day_is_refused_with_its_line),
        cmocka_unit_test(malformed_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
