/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts SQLite's failures to errors, and has the few calls that every file of db/ would
 * otherwise repeat.
 */
#include "db/conn.h"

#include "base/vformat.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool sql_is_full(int code, int errnum)
{
    return code == SQLITE_FULL ||
           ((code & 0xff) == SQLITE_IOERR && (errnum == ENOSPC || errnum == EDQUOT));
}

static enum err_kind kind_of(int code, int errnum)
{
    if (sql_is_full(code, errnum))
        return ERR_NO_SPACE;
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ERR_CORRUPT;
    case SQLITE_INTERRUPT:
        return ERR_CANCELLED;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISUSE:
        return ERR_INTERNAL;
    default:
        return ERR_IO;
    }
}

int sql_err(struct err *e, sqlite3 *sql, int code, const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];

    if ((code & 0xff) == SQLITE_NOMEM) {
        fputs("belay: out of memory in the database\n", stderr);
        abort();
    }
    VFORMAT(what, fmt);
    enum err_kind kind = kind_of(code, sqlite3_system_errno(sql));
    if (kind == ERR_NO_SPACE)
        return err_set(e, kind, "%s: no space left on the disk (SQLite %d)", what, code);
    /* An injected code is not the connection's last failure: then only the code is described. */
    const char *words =
        sqlite3_extended_errcode(sql) == code ? sqlite3_errmsg(sql) : sqlite3_errstr(code);
    return err_set(e, kind, "%s: %s (SQLite %d)", what, words, code);
}

int sql_exec(sqlite3 *sql, const char *text, struct err *e)
{
    int code = sqlite3_exec(sql, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : sql_err(e, sql, code, "'%.60s'", text);
}

int sql_prepare(sqlite3 *sql, const char *text, sqlite3_stmt **ret_stmt, struct err *e)
{
    int code = sqlite3_prepare_v3(sql, text, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);
    return code == SQLITE_OK ? 0 : sql_err(e, sql, code, "'%.60s'", text);
}

int sql_get_i64(sqlite3 *sql, const char *text, int64_t *ret_value, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int rc = 0, code;

    if ((code = sqlite3_prepare_v2(sql, text, -1, &s, NULL)) == SQLITE_OK &&
        (code = sqlite3_step(s)) == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(s, 0);
    else
        rc = sql_err(e, sql, code, "'%.60s'", text);
    sqlite3_finalize(s);
    return rc;
}
