/* SPDX-License-Identifier: Apache-2.0
 *
 * How a row struct lies in its table. A column is named once, in columns.c; the statements that
 * write and read a row are made from there, so a new field is one line there and one step in
 * schema.c.
 *
 * States and kinds are stored by their names, not by their numbers: the file stays readable with
 * any SQLite, and a reordered enum cannot change what an old row means. Times and progress that are
 * not known are NULL.
 */
#ifndef BELAY_DB_TABLE_H
#define BELAY_DB_TABLE_H

#include "base/buf.h"
#include "base/sm.h"
#include <sqlite3.h>
#include <stdint.h>

enum column_type {
    COLUMN_I64,
    COLUMN_I32,
    COLUMN_BOOL,
    COLUMN_OPTIONAL,  /* int64_t; INT64_MIN (WALL_NONE, PROGRESS_NONE) is NULL */
    COLUMN_NEW_ID,    /* int64_t key; 0 lets SQLite give the next one */
    COLUMN_NAMED,     /* an enum, stored by name */
    COLUMN_TEXT,      /* char[size] */
    COLUMN_TEXT_HEAP, /* char *, malloc'd; NULL is NULL */
    /* no member: 1 where all rare columns are empty. The last of the columns that are not rare */
    COLUMN_PLAIN
};

/* Of two rows with the same key, in a table that replaces. Sums have to stay below INT64_MAX. */
enum column_merge { MERGE_REPLACE, MERGE_SUM, MERGE_MOST };

struct column {
    const char *name;
    enum column_type type;
    size_t offset, size;
    const char *const *names; /* COLUMN_NAMED: one of the two */
    const struct sm *sm;
    enum column_merge merges;
    /* most rows have nothing there: 0, the first name, "" or NULL. In a table with a
     * COLUMN_PLAIN */
    bool is_rare;
};

struct table {
    const char *name;
    const struct column *columns;
    int n_columns;
    int n_keys;    /* the first so many columns identify a row */
    bool replaces; /* a row with the same key takes the old one's place; else it is an error */
};

enum table_id {
    TABLE_META, /* struct db_meta; written by its own statements */
    TABLE_POOLS,
    TABLE_OFFERS,
    TABLE_INSTANCES,
    TABLE_NODES,
    TABLE_JOBS,
    TABLE_SPECS,
    TABLE_ATTEMPTS,
    TABLE_CHECKPOINTS,
    TABLE_HISTORY,
    TABLE_LEDGER,
    TABLE_LEFTOVERS,
    TABLE_STORED,
    TABLE_DRILLS,
    TABLE_ACCOUNTS,
    TABLE_BUDGETS,
    TABLE_EXTRAS,
    TABLE_ARRAYS,
    TABLE_DEPENDENCIES,
    TABLE_CRONS,
    TABLE_CRON_JOBS,
    TABLE_CRON_RUNS,
    TABLE_OUTBOX,
    TABLE_TASK_LOADS,
    TABLE_GPU_LOADS,
    TABLE_TOKENS,
    TABLE_COUNT
};

extern const struct table tables[TABLE_COUNT];

/* INSERT with one parameter a column, in the order of the columns. */
void table_insert_sql(const struct table *t, struct buf *out);
/* What is read of a row: all columns, or, of a table with a COLUMN_PLAIN, all that are not rare. */
enum table_part { TABLE_WHOLE, TABLE_USUAL };
/* SELECT of those columns, in their order, with no WHERE yet. more: what else, behind the columns:
 * ", x"; or "". */
void table_select_sql(
    const struct table *t, enum table_part part, const char *more, struct buf *out);

/* Binds the row's columns from parameter 1 on. Texts are borrowed until the next bind. A SQLite
 * code. */
int table_bind(const struct table *t, sqlite3_stmt *s, const void *row);
/* Reads the current result row. ERR_CORRUPT names the table, the row and the column that cannot
 * be. */
int table_read(
    const struct table *t, enum table_part part, sqlite3_stmt *s, void *row, struct err *e);
/* Of a result row of TABLE_USUAL: there is no more to it than that. */
bool table_is_plain(sqlite3_stmt *s);
/* Nothing in any rare column. */
void table_clear_rare(const struct table *t, void *row);

#endif
