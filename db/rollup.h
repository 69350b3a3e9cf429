/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of the ledger, written by commit.c.
 */
#ifndef BELAY_DB_ROLLUP_H
#define BELAY_DB_ROLLUP_H

#include "db/conn.h"

#define SPAN_DAY 1 /* cost_sums.span */
#define SPAN_MONTH 31
/* cost_sums.detail, bits: the columns that are kept separate besides kinds; the others are "" or
 * 0. */
#define DETAIL_PEOPLE 1   /* teams and users; without the others only for months */
#define DETAIL_MACHINES 2 /* pools, types and markets; likewise */
#define DETAIL_ALL 3      /* both */
#define DETAIL_LABELS 7   /* these, and sets of labels */

int rollup_prepare(struct rollup *r, sqlite3 *sql, struct err *e);
void rollup_deinit(struct rollup *r);

/* Returns a statement with its parameters bound. The caller steps and resets it, in its
 * transaction. */
/* piece is within one day */
sqlite3_stmt *rollup_cost(struct rollup *r, const struct ledger_row *piece);
/* Sums up n ledger rows, many of them with one statement for all. Called until it returns NULL.
 * Begin with ROLLUP_BEGIN. */
struct rollup_walk {
    size_t at;     /* the row */
    int64_t day;   /* its next piece (rollup_piece) */
    int64_t n_put; /* pieces that are in temp.pieces */
    bool is_added; /* these are added to the sums */
};
#define ROLLUP_BEGIN ((struct rollup_walk){.day = INT64_MIN})
#define ROLLUP_MANY 16 /* rows; fewer are added one by one */
#define ROLLUP_PIECES_MAX                                                                          \
    4000 /* in one statement: with SUM_MAX each, their sum does not overflow */
sqlite3_stmt *rollup_costs(
    struct rollup *r, const struct ledger_row *rows, size_t n, struct rollup_walk *w);
/* Counts the ended ones of the n jobs, whose rows are written, from *at on, of one day; *at
 * advances past them. Returns NULL when there are no more. */
sqlite3_stmt *rollup_jobs(struct rollup *r, const struct job_row *jobs, size_t n, size_t *at);

/* Returns the next piece of a ledger row, within one UTC day: *day is INT64_MIN for the first call
 * and INT64_MAX after the last piece. */
void rollup_piece(const struct ledger_row *r, int64_t *day, struct ledger_row *ret_piece);

/* Days since 1970, UTC: of a moment, at least 0; of the first day of a day's month, and of the next
 * month. */
int64_t rollup_day(int64_t ms);
int64_t rollup_month(int64_t day);
int64_t rollup_next_month(int64_t day);

#endif
