/* SPDX-License-Identifier: Apache-2.0
 *
 * When a crontab line runs. PURE: the starting moment and the zone are parameters.
 *
 * Five fields, minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec) and day
 * of the week (0-7 or sun-sat; 0 and 7 are Sunday), each a list of `*`, numbers and ranges a-b, `*`
 * and ranges with a step /n; or one of @hourly, @daily (@midnight), @weekly, @monthly, @yearly
 * (@annually). TZ=ZONE or CRON_TZ=ZONE may precede them. As in crontab(5), a day must match both
 * day fields if one of the two begins with `*`, and otherwise at least one of them.
 *
 * A schedule is a set of minutes on the wall clocks of its zone. When those clocks are put forward
 * or back:
 *
 *   a minute that the clocks skip    runs at the moment of the jump: once, however many scheduled
 *                                    minutes were skipped, and not again if that moment is itself a
 *                                    scheduled minute. With CRON_GAP_SKIP it does not run that day.
 *                                    (02:30 in spring: 03:00.)
 *   a minute that they show twice    runs the first time only (01:30 in autumn: once, while summer
 *                                    time lasts), but both times if the schedule names every hour
 *                                    of the day: "every hour" and "every 5 minutes" continue during
 *                                    the repeated hour. That is CRON_TWICE_AUTO; FIRST, LAST and
 *                                    BOTH apply to all schedules.
 */
#ifndef BELAY_JOB_CRON_H
#define BELAY_JOB_CRON_H

#include "base/zone.h"

#define CRON_TEXT_MAX 256 /* of an expression, including its NUL */

enum cron_gap { CRON_GAP_RUN, CRON_GAP_SKIP };
extern const char *const cron_gap_names[]; /* "run" "skip" */
enum cron_twice { CRON_TWICE_AUTO, CRON_TWICE_FIRST, CRON_TWICE_LAST, CRON_TWICE_BOTH };
extern const char *const cron_twice_names[]; /* "auto" "first" "last" "both" */

struct cron {
    uint64_t minutes;     /* bit n: minute n */
    uint32_t hours, days; /* days of the month; bit 0 is never set */
    uint16_t months;      /* bits 1 .. 12 */
    uint8_t weekdays;     /* bit 0: Sunday .. bit 6 */
    /* a day must be in days and in weekdays; else in at least one of them */
    bool both;
    char zone[ZONE_NAME_MAX]; /* given before the expression; "" if none */
};

/* ERR_INVALID names the field, its value and what is expected; also for a schedule that can never
 * run, such as 30 February. */
int cron_parse(const char *text, struct cron *ret_cron, struct err *e);

/* The first scheduled moment after `after`, or WALL_NONE if there is none before ZONE_END_S. Always
 * a whole second. */
struct wall cron_next(const struct cron *c, const struct time_zone *z, enum cron_gap gap,
    enum cron_twice twice, struct wall after);
/* The same of a schedule for each day at this minute of the day, 0 .. 1439: at once after a gap,
 * and the first of two. */
struct wall cron_next_minute(const struct time_zone *z, int32_t minute, struct wall after);

#endif
