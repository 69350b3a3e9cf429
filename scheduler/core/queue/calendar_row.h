/* SPDX-License-Identifier: Apache-2.0
 *
 * A calendar that an operator set, as stored (calendars.h).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CALENDAR_ROW_H
#define BELAY_SCHEDULER_CORE_QUEUE_CALENDAR_ROW_H

#include "base/time.h"
#include "job/calendar.h"
#include "scheduler/core/model/types.h"

#define CALENDARS_MAX 100

struct calendar_row {
    char name[CALENDAR_NAME_MAX]; /* unique */
    char *days;                   /* as calendar_print_list; owned */
    char by[CORE_NAME_MAX];
    struct wall set_at;
    bool is_removed; /* not stored: the row is deleted */
};

#endif
