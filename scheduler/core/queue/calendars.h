/* SPDX-License-Identifier: Apache-2.0
 *
 * Calendars of cron entries: those of the configuration, and those that operators set
 * (EV_CALENDAR_SET, EV_CALENDAR_REMOVE), which are stored. The configuration decides: a calendar of
 * it hides a stored one of the same name, and none can be set under its name.
 *
 * A change applies to every time that is not decided yet. A calendar that live entries name cannot
 * be removed.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CALENDARS_H
#define BELAY_SCHEDULER_CORE_QUEUE_CALENDARS_H

#include "scheduler/core/model/model.h"
#include "scheduler/core/queue/calendar_row.h"

struct stored_calendar {
    struct calendar_row row;
    struct calendar calendar; /* of the row; entries point to it */
};

/* The calendar of this name that is in force; NULL if there is none. */
const struct calendar *core_calendar(const struct model *m, const char *name);
/* The stored one, hidden or not; NULL if there is none. */
const struct stored_calendar *core_stored_calendar(const struct model *m, const char *name);
/* The stored ones, in no order: starts with *pos = 0; NULL at the end. */
const struct stored_calendar *core_next_calendar(const struct model *m, size_t *pos);
/* The i-th of the configuration, from 0; NULL beyond the last. */
const struct calendar *core_configured_calendar(const struct model *m, size_t i);
/* Number of cron entries that name it. */
int64_t core_calendar_crons(const struct model *m, const char *name);

/* Before the cron entries. ERR_CORRUPT. */
int calendar_load(struct model *m, const struct calendar_row *r, struct err *e);
void calendars_destroy_all(struct model *m);

#endif
