/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's SELECTs, parsed once: parsing one with a hundred columns costs more than reading a
 * row with it.
 */
#ifndef BELAY_DB_STATEMENTS_H
#define BELAY_DB_STATEMENTS_H

#include <sqlite3.h>
#include <stddef.h>

/* 10 to 60 KiB each; the least recently used one is dropped first */
#define STATEMENTS_MAX 48

/* Zeroed except for sql. May be used by whoever may use the connection. */
struct statements {
    sqlite3 *sql;
    sqlite3_stmt *idle[STATEMENTS_MAX]; /* not in use, the most recently used last */
    size_t n;
};

/* Returns a statement with nothing bound, which belongs to the caller until it is given back; a
 * second request for the same text meanwhile gets another one. Returns SQLite's code; *ret_stmt is
 * NULL unless that is SQLITE_OK. */
int statements_take(struct statements *s, const char *text, sqlite3_stmt **ret_stmt);
/* in any state; stmt may be NULL */
void statements_give(struct statements *s, sqlite3_stmt *stmt);
/* call before the connection is closed, when all have been given back */
void statements_deinit(struct statements *s);

#endif
