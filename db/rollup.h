/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of the ledger by day, as commit.c writes them.
 */
#ifndef BELAY_DB_ROLLUP_H
#define BELAY_DB_ROLLUP_H

#include "db/conn.h"

/* With their parameters bound. The caller steps and resets them, in its transaction. */
sqlite3_stmt *rollup_cost(struct rollup *r, const struct ledger_row *piece); /* of one day */
sqlite3_stmt *rollup_job(struct rollup *r, const struct job_row *j);         /* that has ended; its row is written */

/* The next piece of a stretch, within one UTC day: *day is INT64_MIN for the first and INT64_MAX after the last. */
void rollup_piece(const struct ledger_row *r, int64_t *day, struct ledger_row *ret_piece);

#endif
