/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the day, repeated daily, as text: "04:00,16:30", in UTC.
 */
#ifndef BELAY_JOB_DAILY_H
#define BELAY_JOB_DAILY_H

#include "base/time.h"
#include <stdbool.h>

#define DAILY_MAX 8
#define DAILY_TEXT_MAX (DAILY_MAX * 6) /* "HH:MM" and a comma or the NUL each */

struct daily {
    int n;
    int minutes[DAILY_MAX]; /* since midnight, 0 .. 1439, ascending, unique */
};

/* Parses one time, "HH:MM" from "00:00" to "23:59", from the first n bytes of text; false if
 * malformed. */
bool daily_parse_time(const char *text, size_t n, int *ret_minutes);

/* Adds one time; a duplicate is ignored. False if there are DAILY_MAX already. */
bool daily_add(struct daily *d, int minutes);

/* Parses a list in any order; "" is empty. ERR_INVALID. */
int daily_parse(const char *text, struct daily *ret_daily, struct err *e);

void daily_format(const struct daily *d, char out[DAILY_TEXT_MAX]); /* "" if empty */

/* The first of these times after `after`; WALL_NONE if empty. */
struct wall daily_next(const struct daily *d, struct wall after);

#endif
