/* SPDX-License-Identifier: Apache-2.0
 *
 * What was spent on a UTC day and on the same weekday of the weeks before, by user, team or pool:
 * from the sums by day of the ledger (rollup.h). Running attempts are in no sum yet.
 */
#ifndef BELAY_DB_SPEND_H
#define BELAY_DB_SPEND_H

#include "db/db.h"

/* week: 0 = the day itself, 1 = seven days before, ... subject is borrowed. */
typedef int (*db_spend_fn)(void *ctx, const char *subject, int32_t week, int64_t uusd);
/* Calls fn for each subject and day with records. What belongs to no user or team is left out. day
 * is the begin of one. */
int db_read_spend(struct db_reader *r, enum spend_of of, struct wall day, int32_t weeks,
    db_spend_fn fn, void *ctx, struct err *e);

/* The team that a job is charged to: its label team, or else the team whose share it uses; "" if
 * there is none, or no such job. */
int db_read_charged_team(
    struct db_reader *r, int64_t job, char ret_team[CORE_NAME_MAX], struct err *e);
/* Whether this rank of an attempt has not ended: its cost is in no sum. */
int db_read_is_live(struct db_reader *r, int64_t job, int64_t attempt, int32_t rank,
    bool *ret_is_live, struct err *e);

#endif
