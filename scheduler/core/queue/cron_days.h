/* SPDX-License-Identifier: Apache-2.0
 *
 * The days that calendars leave out of cron entries.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CRON_DAYS_H
#define BELAY_SCHEDULER_CORE_QUEUE_CRON_DAYS_H

#include "scheduler/core/model/model.h"

/* Whether a calendar of the entry, or of one that it runs after, leaves out the day of this time;
 * ret_why then has the reason. */
bool core_cron_leaves_out(
    const struct model *m, const struct cron_entry *c, struct wall at, char ret_why[CORE_TEXT_MAX]);

/* The model has other calendars, with all that entries name. */
void crons_renew_calendars(struct model *m);

#endif
