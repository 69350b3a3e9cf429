/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of the day at which something is done every day, as texts: "04:00,16:30", in UTC.
 */
#ifndef BELAY_JOB_DAILY_H
#define BELAY_JOB_DAILY_H

#include "base/time.h"
#include <stdbool.h>

#define DAILY_MAX 8
#define DAILY_TEXT_MAX (DAILY_MAX * 6) /* "HH:MM" and a comma or the NUL each */

struct daily {
    int n;
    int minutes[DAILY_MAX]; /* since midnight, 0 .. 1439, ascending, no two the same */
};

/* One time, "HH:MM" from "00:00" to "23:59", of the first n bytes of text; false: it is none. */
bool daily_parse_time(const char *text, size_t n, int *ret_minutes);

/* Adds one; two the same are one. False: there are DAILY_MAX already. */
bool daily_add(struct daily *d, int minutes);

/* The text of a list, in any order. ERR_INVALID. "" is none. */
int daily_parse(const char *text, struct daily *ret_daily, struct err *e);

void daily_format(const struct daily *d, char out[DAILY_TEXT_MAX]); /* "" when it is empty */

/* The first of these moments that is later; WALL_NONE: it is empty. */
struct wall daily_next(const struct daily *d, struct wall after);

#endif
