/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapping of row structs to tables. A column is named once, in columns.c; the statements that
 * write and read a row are generated from that, so a new field is one line there and one step in
 * schema.c.
 *
 * States and kinds are stored by name, not by number: the file stays readable with any SQLite, and
 * reordering an enum cannot change the meaning of an old row. Unknown times and progress are NULL.
 */
#ifndef BELAY_DB_TABLE_H
#define BELAY_DB_TABLE_H

#include "base/buf.h"
#include "base/sm.h"
#include "job/spec.h"
#include <sqlite3.h>
#include <stdint.h>

enum column_type {
    COLUMN_I64,
    COLUMN_I32,
    COLUMN_BOOL,
    COLUMN_OPTIONAL,  /* int64_t; INT64_MIN (WALL_NONE, PROGRESS_NONE) is NULL */
    COLUMN_NEW_ID,    /* int64_t key; 0 lets SQLite assign the next one */
    COLUMN_NAMED,     /* an enum, stored by name */
    COLUMN_TEXT,      /* char[size] */
    COLUMN_TEXT_HEAP, /* char *, malloc'd; NULL is NULL */
    /* struct job_spec, as JSON: the options that differ from the default and have no column of
     * their own (JOB_IN_COLUMN); NULL if there are none. Stands before those columns, because
     * reading it resets the whole spec */
    COLUMN_SPEC,
    /* no member: 1 if all rare columns are empty. The last of the columns that are not rare */
    COLUMN_PLAIN
};

/* How two rows with the same key are merged, in a table that replaces. Sums must stay below
 * INT64_MAX. */
enum column_merge { MERGE_REPLACE, MERGE_SUM, MERGE_MAX };

struct column {
    const char *name;
    enum column_type type;
    size_t offset, size;
    const char *const *names; /* COLUMN_NAMED: exactly one of the two */
    const struct sm *sm;
    enum column_merge merges;
    /* empty in most rows: 0, the first name, "" or NULL. In a table with a COLUMN_PLAIN */
    bool is_rare;
};

struct table {
    const char *name;
    const struct column *columns;
    int n_columns;
    int n_keys;    /* the number of leading columns that identify a row */
    bool replaces; /* a row with the same key replaces the old one; else it is an error */
};

enum table_id {
    TABLE_META, /* struct db_meta; written by its own statements */
    TABLE_POOLS,
    TABLE_OFFERS,
    TABLE_INSTANCES,
    TABLE_NODES,
    TABLE_NODE_FAILURES,
    TABLE_JOBS,
    TABLE_SPECS,
    TABLE_ATTEMPTS,
    TABLE_CHECKPOINTS,
    TABLE_HISTORY,
    TABLE_LEDGER,
    TABLE_CKPT_GC,
    TABLE_STORED,
    TABLE_DRILLS,
    TABLE_ACCOUNTS,
    TABLE_BUDGETS,
    TABLE_CONSTRAINTS,
    TABLE_ARRAYS,
    TABLE_DEPENDENCIES,
    TABLE_CRONS,
    TABLE_CRON_JOBS,
    TABLE_AUDIT_LOG,
    TABLE_CRON_RUNS,
    TABLE_DIGESTS,
    TABLE_ANOMALIES,
    TABLE_RESERVATIONS,
    TABLE_CALENDARS,
    TABLE_OUTBOX,
    TABLE_TASK_LOADS,
    TABLE_GPU_LOADS,
    TABLE_SECRETS,
    TABLE_TOKENS,
    TABLE_COUNT
};

extern const struct table tables[TABLE_COUNT];

/* INSERT with one parameter a column, in the order of the columns. */
void table_insert_sql(const struct table *t, struct buf *out);
/* The columns to read: all, or, in a table with a COLUMN_PLAIN, all that are not rare. */
enum table_part { TABLE_WHOLE, TABLE_DEFAULT };
/* Writes a SELECT of these columns, in their order, without a WHERE. more is added after the
 * columns: ", x"; or "". */
void table_select_sql(
    const struct table *t, enum table_part part, const char *more, struct buf *out);

/* Binds the row's columns from parameter 1 on. Texts are borrowed until the next bind. A SQLite
 * code. */
int table_bind(const struct table *t, sqlite3_stmt *s, const void *row);
/* Reads the current result row. ERR_CORRUPT names the table, the row and the invalid column. */
int table_read(
    const struct table *t, enum table_part part, sqlite3_stmt *s, void *row, struct err *e);
/* Returns whether a result row of TABLE_DEFAULT is the whole row. */
bool table_is_plain(sqlite3_stmt *s);
/* Empties all rare columns of the row. */
void table_clear_rare(const struct table *t, void *row);

#endif
