/* SPDX-License-Identifier: Apache-2.0
 *
 * When a crontab's line says that something is to be done. PURE: the moment from which is looked
 * and the zone are given.
 *
 * Five fields, minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan-dec) and day
 * of the week (0-7 or sun-sat; 0 and 7 are Sunday), each a list of `*`, numbers and ranges a-b, `*`
 * and ranges with a step /n; or one of @hourly, @daily (@midnight), @weekly, @monthly, @yearly
 * (@annually). Before it may stand TZ=ZONE or CRON_TZ=ZONE. As in crontab(5), a day is one that
 * both day fields name if one of the two begins with `*`, and otherwise one that either names.
 *
 * A schedule is a set of minutes on the wall clocks of its zone. When those clocks are put forward
 * or back:
 *
 *   a minute that the clocks skip    is done once they have been put forward, at that very moment,
 *                                    once however many of the schedule's minutes were skipped, and
 *                                    not again if that moment is a minute of it itself; or, with
 *                                    CRON_GAP_SKIP, not at all that day. (02:30 in the spring:
 *                                    03:00.)
 *   a minute that they show twice    is done the first time only (01:30 in the autumn: once, while
 *                                    summer time lasts), but both times if the schedule names every
 *                                    hour of the day: "every hour" and "every 5 minutes" go on
 *                                    while the hour repeats itself. That is CRON_TWICE_AUTO; FIRST,
 *                                    LAST and BOTH say so for all.
 */
#ifndef BELAY_JOB_CRON_H
#define BELAY_JOB_CRON_H

#include "base/zone.h"

#define CRON_TEXT_MAX 256 /* of an expression, with its NUL */

enum cron_gap { CRON_GAP_RUN, CRON_GAP_SKIP };
extern const char *const cron_gap_names[]; /* "run" "skip" */
enum cron_twice { CRON_TWICE_AUTO, CRON_TWICE_FIRST, CRON_TWICE_LAST, CRON_TWICE_BOTH };
extern const char *const cron_twice_names[]; /* "auto" "first" "last" "both" */

struct cron {
    uint64_t minutes;         /* bit n: minute n */
    uint32_t hours, days;     /* days: of the month; bit 0 is never set */
    uint16_t months;          /* bits 1 .. 12 */
    uint8_t weekdays;         /* bit 0: Sunday .. bit 6 */
    bool both;                /* a day has to be in days and in weekdays; else in one of them */
    char zone[ZONE_NAME_MAX]; /* as it stood before the expression; "": none did */
};

/* ERR_INVALID names the field, what was found in it and what it takes; also for one that can never
 * come, as 30 February. */
int cron_parse(const char *text, struct cron *ret_cron, struct err *e);

/* The first moment later than `after` at which it is to be done, or WALL_NONE: none before
 * ZONE_END_S. Always a whole second. */
struct wall cron_next(const struct cron *c, const struct time_zone *z, enum cron_gap gap,
    enum cron_twice twice, struct wall after);

#endif
