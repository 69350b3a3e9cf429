/* SPDX-License-Identifier: Apache-2.0
 *
 * Calendars: named sets of days, such as public holidays. PURE: the zone decides which day a time
 * is on.
 *
 * A day is its number since 1970-01-01. The form is "2026-12-25", a range of days
 * "2026-12-24..2027-01-02". job/ics.h reads files of iCalendar.
 */
#ifndef BELAY_JOB_CALENDAR_H
#define BELAY_JOB_CALENDAR_H

#include "base/buf.h"
#include "base/zone.h"

#define CALENDAR_NAME_MAX 64
#define CALENDAR_DAYS_MAX 1000  /* days and ranges of a calendar */
#define CALENDAR_DAY_LAST 84005 /* 2199-12-31 */
#define CALENDAR_TEXT_MAX 24    /* of a day or a range, including its NUL */
#define CALENDAR_LIST_MAX (CALENDAR_DAYS_MAX * CALENDAR_TEXT_MAX) /* of a list, including its NUL */

struct calendar_days {
    int32_t first, last;
};

struct calendar {
    char name[CALENDAR_NAME_MAX];
    size_t n;
    struct calendar_days *days; /* in any order; may overlap */
};

/* "2026-12-25", or a range whose last day is not before its first. ERR_INVALID. */
int calendar_parse(const char *text, struct calendar_days *ret_days, struct err *e);

/* Sorts days and ranges, and joins those that overlap or follow each other. */
void calendar_normalize(struct calendar *c);
/* Adds "2026-12-25,2026-12-31..2027-01-01", as calendar_read_list reads it. */
void calendar_print_list(const struct calendar *c, struct buf *out);
/* Reads a list of 1 to CALENDAR_DAYS_MAX days and ranges into c->days, which the caller frees.
 * ERR_INVALID: c is unchanged. */
int calendar_read_list(const char *text, struct calendar *c, struct err *e);
/* A day, or a range of several. */
void calendar_format_days(const struct calendar_days *d, char out[CALENDAR_TEXT_MAX]);

int32_t calendar_day(const struct time_zone *z, struct wall at);
/* The first moment of a day by the zone's clocks. */
struct wall calendar_begin(const struct time_zone *z, int32_t day);
void calendar_format(int32_t day, char out[CALENDAR_TEXT_MAX]); /* "2026-12-25" */
bool calendar_has(const struct calendar *c, int32_t day);

#endif
