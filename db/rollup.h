/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of the ledger, as commit.c writes them.
 */
#ifndef BELAY_DB_ROLLUP_H
#define BELAY_DB_ROLLUP_H

#include "db/conn.h"

#define DAY_MS 86400000LL
#define SPAN_DAY 1 /* cost_sums.span */
#define SPAN_MONTH 31
/* cost_sums.detail, bits: what is kept apart besides kinds; the rest is "", or 0. */
#define DETAIL_PEOPLE 1   /* teams and users; alone of months only */
#define DETAIL_MACHINES 2 /* pools, types and markets; likewise */
#define DETAIL_ALL 3      /* both */
#define DETAIL_LABELS 7   /* these, and sets of labels */

/* With their parameters bound. The caller steps and resets them, in its transaction. */
sqlite3_stmt *rollup_cost(struct rollup *r, const struct ledger_row *piece); /* of one day */
/* Of the n jobs, whose rows are written, those that have ended, from *at on, and on one day; *at
 * goes on behind them. NULL: there are no more. */
sqlite3_stmt *rollup_jobs(struct rollup *r, const struct job_row *jobs, size_t n, size_t *at);

/* The next piece of a stretch, within one UTC day: *day is INT64_MIN for the first and INT64_MAX
 * after the last. */
void rollup_piece(const struct ledger_row *r, int64_t *day, struct ledger_row *ret_piece);

/* Days since 1970, UTC: of a moment, from 0 up; of the first of the month that a day is in, and of
 * the next month. */
int64_t rollup_day(int64_t ms);
int64_t rollup_month(int64_t day);
int64_t rollup_next_month(int64_t day);

#endif
