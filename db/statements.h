/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's SELECTs, parsed once: to parse one of a hundred columns costs more than to read a
 * row by it.
 */
#ifndef BELAY_DB_STATEMENTS_H
#define BELAY_DB_STATEMENTS_H

#include <sqlite3.h>
#include <stddef.h>

/* 10 to 60 KiB each; one that has not been used for the longest time goes first */
#define STATEMENTS_MAX 48

/* Zeroed but for sql. Whoever may use the connection may use this. */
struct statements {
    sqlite3 *sql;
    sqlite3_stmt *idle[STATEMENTS_MAX]; /* not in use, the last used one last */
    size_t n;
};

/* The caller's until it gives it back, with nothing bound; who asks for the same meanwhile gets
 * another. SQLite's code; *ret_stmt is NULL if that is not SQLITE_OK. */
int statements_take(struct statements *s, const char *text, sqlite3_stmt **ret_stmt);
/* wherever it stands; NULL is fine */
void statements_give(struct statements *s, sqlite3_stmt *stmt);
/* before the connection is closed; all have been given back */
void statements_deinit(struct statements *s);

#endif
