/* SPDX-License-Identifier: Apache-2.0
 *
 * A SELECT that is read to its end or left early. In the manner of json_reader: bind, walk, check
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
    struct statements *of; /* stmt goes back there */
    sqlite3_stmt *stmt;
    const struct table *table; /* NULL: the caller reads stmt itself */
    struct err *e;
    int rc;
    sqlite3_stmt *whole; /* query_init_plain: goes back there too */
};

/* Every column of the table; tail is the rest of the statement ("WHERE ... ORDER BY ..."). */
void query_init(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e);
/* And what stands in `more` (", x"), which is read from stmt, from the column behind the table's
 * last on. */
void query_init_with(struct query *q, struct statements *of, enum table_id table, const char *more,
    const char *tail, struct err *e);
/* As query_init, for a table with a COLUMN_PLAIN, of which most rows are: of those only the usual
 * columns are read. The row that is handed to query_next has nothing in the others
 * (table_clear_rare). */
void query_init_plain(
    struct query *q, struct statements *of, enum table_id table, const char *tail, struct err *e);
void query_init_text(struct query *q, struct statements *of, const char *text, struct err *e);
void query_i64(struct query *q, int parameter, int64_t value);
void query_text(struct query *q, int parameter, const char *text); /* borrowed until query_finish */
/* false: no more rows, or failed */
bool query_step(struct query *q);
bool query_next(
    struct query *q, void *row); /* query_step, then the row; what is not stored is left as it is */
/* What a callback answered: 0 goes on, a positive number ends the walk well, a negative kind ends
 * it with that. */
bool query_goes_on(struct query *q, int answer);
/* Of a list: ERR_INVALID. */
int query_check_limit(int32_t limit, struct err *e);
int query_finish(struct query *q); /* 0 or the kind of the first failure, e filled */

#endif
