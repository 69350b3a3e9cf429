/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of db/: the write connection, and the conversion of SQLite's failures to
 * errors.
 */
#ifndef BELAY_DB_CONN_H
#define BELAY_DB_CONN_H

#include "db/db.h"
#include "db/audit_log.h"
#include "db/prune.h"
#include "db/statements.h"
#include "db/table.h"

#define DB_BUSY_MS 5000

/* The statements of rollup.c, prepared once (rollup.h). */
enum rollup_statement {
    ROLLUP_SET,
    ROLLUP_SET_OF_JOB,
    ROLLUP_COST,
    ROLLUP_PIECE,
    ROLLUP_PIECES,
    ROLLUP_PIECES_DONE,
    ROLLUP_JOBS,
    ROLLUP_STATEMENTS
};
struct rollup {
    sqlite3_stmt *statements[ROLLUP_STATEMENTS];
    struct buf ids; /* ids of the jobs that are being counted: a JSON array */
};

struct db {
    sqlite3 *sql;
    char *path;
    int lock_fd; /* -1 = none (in memory) */
    /* Prepared once: a commit steps them and parses no SQL. */
    sqlite3_stmt *begin, *end, *counters, *labels, *document, *workdirs, *outbox_done, *late_cost;
    sqlite3_stmt *secret_removed, *audit_cut, *node_failure_removed, *reservation_over;
    sqlite3_stmt *calendar_removed;
    sqlite3_stmt *insert[TABLE_COUNT];
    sqlite3_stmt *thin_task_loads, *thin_gpu_loads;
    struct rollup rollup;
    struct pruner pruner;
    struct audit_head audit, audit_next; /* committed; in the transaction */
    struct statements statements;        /* SELECTs */
    /* Fault injection */
    int64_t fail_in;
    int fail_code;
};

/* True for failures that mean "no space": SQLITE_FULL, or an I/O error that the system explains
 * with ENOSPC or EDQUOT. */
bool sql_is_full(int code, int errnum);

/* Fills e with the text and SQLite's message for code. ERR_NO_SPACE, ERR_CORRUPT, ERR_INTERNAL (a
 * constraint: our bug), ERR_CANCELLED, else ERR_IO. Running out of memory aborts. sql is the
 * connection on which it failed. */
int sql_err(struct err *e, sqlite3 *sql, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs statements whose results are not needed. */
int sql_exec(sqlite3 *sql, const char *text, struct err *e);
/* Prepares a long-lived statement. */
int sql_prepare(sqlite3 *sql, const char *text, sqlite3_stmt **ret_stmt, struct err *e);
/* Returns the first column of the first row. */
int sql_get_i64(sqlite3 *sql, const char *text, int64_t *ret_value, struct err *e);

#endif
