/* SPDX-License-Identifier: Apache-2.0
 *
 * The days of a file of iCalendar (RFC 5545), as calendars of public holidays have them: events of
 * whole days. PURE.
 *
 * Strict: what would be another set of days if it were left out is an error with its line, so that
 * no holiday is missed in silence. These are recurrences (RRULE, RDATE, EXDATE, RECURRENCE-ID) and
 * events that begin at a time. Cancelled events are left out. Everything that decides no day, such
 * as summaries, alarms and time zones, is skipped.
 */
#ifndef BELAY_JOB_ICS_H
#define BELAY_JOB_ICS_H

#include "job/calendar.h"

#define ICS_BYTES_MAX (1 << 20)
#define ICS_LINE_MAX 65536 /* of an unfolded line */
#define ICS_NESTED_MAX 4   /* components within each other */

/* Reads the days of the file into c->days, normalized, which the caller frees. ERR_INVALID, with
 * the number of the line: c is unchanged. */
int ics_read(const char *data, size_t n, struct calendar *c, struct err *e);

#endif
