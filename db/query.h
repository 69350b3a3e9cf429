/* SPDX-License-Identifier: Apache-2.0
 *
 * A SELECT that is read to its end or abandoned early. Used like json_reader: bind, walk, check
 * once.
 *
 *     query_init(&q, statements, TABLE_JOBS, "WHERE id = ?1", e);
 *     query_i64(&q, 1, id);
 *     while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
 *         ;
 *     return query_finish(&q);
 */
#ifndef BELAY_DB_QUERY_H
#define BELAY_DB_QUERY_H

#include "db/statements.h"
#include "db/table.h"

struct query {
    struct statements *of; /* stmt is returned to it */
    sqlite3_stmt *stmt;
    const struct table *table; /* NULL if the caller reads stmt itself */
    struct err *e;
    int rc;
    sqlite3_stmt *whole; /* query_init_plain: also returned to it */
};

/* Selects every column of the table; tail is the rest of the statement ("WHERE ... ORDER BY
 * ..."). */
void query_init(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e);
/* Also selects `more` (", x"), which the caller reads from stmt, from the column after the table's
 * last one. */
void query_init_with(struct query *q, struct statements *of, enum table_id table, const char *more,
    const char *tail, struct err *e);
/* Like query_init, for a table with a COLUMN_PLAIN, most of whose rows are plain: only their usual
 * columns are read. The rare columns of the row passed to query_next must be empty
 * (table_clear_rare). */
void query_init_plain(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e);
void query_init_text(struct query *q, struct statements *of, const char *text, struct err *e);
void query_i64(struct query *q, int parameter, int64_t value);
void query_text(struct query *q, int parameter, const char *text); /* borrowed until query_finish */
/* false at the end, or after a failure */
bool query_step(struct query *q);
bool query_next(
    /* query_step, then the row; members that are not stored are unchanged */
    struct query *q, void *row);
/* Handles a callback's result: 0 continues, a positive number ends the walk successfully, a
 * negative kind ends it with that error. */
bool query_goes_on(struct query *q, int answer);
/* Checks the limit of a list. ERR_INVALID. */
int query_check_limit(int32_t limit, struct err *e);
int query_finish(struct query *q); /* returns 0 or the kind of the first failure, with e filled */
/* In place of a walk: reads the first row and finishes. ERR_NOT_FOUND with this text if there is
 * none. */
int query_one(struct query *q, void *row, const char *none, ...)
    __attribute__((format(printf, 3, 4)));

#endif
