/* SPDX-License-Identifier: Apache-2.0
 *
 * The calendars of cron entries.
 */
#include "job/calendar.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/calendars.h"
#include "scheduler/core/queue/cron_days.h"
#include "scheduler/core/queue/crons_private.h"
#include "scheduler/core/queue/queue_state.h"

#include "base/str.h"
#include "scheduler/core/model/state.h"

bool cron_leaves_out(const struct cron_entry *c, struct wall at, char ret_why[CORE_TEXT_MAX])
{
    char day[CALENDAR_TEXT_MAX];
    int32_t n = calendar_day(c->zone, at);
    calendar_format(n, day);
    if (c->skip_on && calendar_has(c->skip_on, n))
        text_format(ret_why, CORE_TEXT_MAX, "%s is in calendar %s", day, c->skip_on->name);
    else if (c->only_on && !calendar_has(c->only_on, n))
        text_format(ret_why, CORE_TEXT_MAX, "%s is not in calendar %s", day, c->only_on->name);
    else
        return false;
    return true;
}

bool core_cron_leaves_out(
    const struct model *m, const struct cron_entry *c, struct wall at, char ret_why[CORE_TEXT_MAX])
{
    for (; c && c->zone; c = map_get(&m->queue.crons, c->row.after))
        if (cron_leaves_out(c, at, ret_why))
            return true;
    return false;
}

static int find_calendar(const struct model *m, const char *key, const char *name,
    const struct calendar **ret_calendar, struct err *e)
{
    *ret_calendar = name[0] ? core_calendar(m, name) : NULL;
    return *ret_calendar || !name[0]
               ? 0
               : err_set(e, ERR_INVALID,
                     "%s: there is no calendar %.64s (belay calendar lists them)", key, name);
}

int cron_find_calendars(const struct model *m, const struct cron_row *r,
    const struct calendar **ret_skip_on, const struct calendar **ret_only_on, struct err *e)
{
    int rc = find_calendar(m, "skip_on", r->skip_on, ret_skip_on, e);
    return rc ? rc : find_calendar(m, "only_on", r->only_on, ret_only_on, e);
}

void crons_renew_calendars(struct model *m)
{
    struct cron_entry *c;
    for (size_t pos = 0; (c = map_next(&m->queue.crons, &pos, &(int64_t){0})) != NULL;)
        if (cron_find_calendars(m, &c->row, &c->skip_on, &c->only_on, NULL) == 0 &&
            str_starts(c->why, CRON_NO_CALENDAR)) {
            c->why[0] = '\0';
            cron_reschedule(m, c);
        }
}
