/* SPDX-License-Identifier: Apache-2.0
 *
 * SQLite, loaded at its first call (cli/lazy.h). Used by `belay simulate`, `belay admin backup`
 * and others that read a belayd database.
 */
#include "cli/lazy.h"

#pragma GCC visibility push(hidden)
#include <sqlite3.h>
#pragma GCC visibility pop

#define LIBSQLITE "libsqlite3.so.0"
#define RETURNS(type, name, params, args) LAZY(LIBSQLITE, type, name, params, args)

/* clang-format off */
RETURNS(int, sqlite3_open_v2,
    (const char *file, sqlite3 **db, int flags, const char *vfs), (file, db, flags, vfs))
RETURNS(int, sqlite3_close, (sqlite3 *db), (db))
RETURNS(int, sqlite3_busy_timeout, (sqlite3 *db, int ms), (db, ms))
RETURNS(int, sqlite3_exec,
    (sqlite3 *db, const char *sql, int (*fn)(void *, int, char **, char **), void *ctx,
     char **text),
    (db, sql, fn, ctx, text))
RETURNS(const char *, sqlite3_errmsg, (sqlite3 *db), (db))
RETURNS(const char *, sqlite3_errstr, (int code), (code))
RETURNS(int, sqlite3_extended_errcode, (sqlite3 *db), (db))
RETURNS(int, sqlite3_system_errno, (sqlite3 *db), (db))
RETURNS(int, sqlite3_get_autocommit, (sqlite3 *db), (db))
RETURNS(int, sqlite3_changes, (sqlite3 *db), (db))
LAZY_VOID(LIBSQLITE, sqlite3_progress_handler,
    (sqlite3 *db, int n, int (*fn)(void *), void *ctx), (db, n, fn, ctx))

RETURNS(sqlite3_backup *, sqlite3_backup_init,
    (sqlite3 *to, const char *to_name, sqlite3 *from, const char *from_name),
    (to, to_name, from, from_name))
RETURNS(int, sqlite3_backup_step, (sqlite3_backup *b, int pages), (b, pages))
RETURNS(int, sqlite3_backup_finish, (sqlite3_backup *b), (b))

RETURNS(int, sqlite3_prepare_v2,
    (sqlite3 *db, const char *sql, int n, sqlite3_stmt **s, const char **tail),
    (db, sql, n, s, tail))
RETURNS(int, sqlite3_prepare_v3,
    (sqlite3 *db, const char *sql, int n, unsigned flags, sqlite3_stmt **s, const char **tail),
    (db, sql, n, flags, s, tail))
RETURNS(int, sqlite3_step, (sqlite3_stmt *s), (s))
RETURNS(int, sqlite3_reset, (sqlite3_stmt *s), (s))
RETURNS(int, sqlite3_finalize, (sqlite3_stmt *s), (s))
RETURNS(const char *, sqlite3_sql, (sqlite3_stmt *s), (s))

RETURNS(int, sqlite3_bind_int64, (sqlite3_stmt *s, int i, sqlite3_int64 v), (s, i, v))
RETURNS(int, sqlite3_clear_bindings, (sqlite3_stmt *s), (s))
RETURNS(int, sqlite3_bind_value, (sqlite3_stmt *s, int i, const sqlite3_value *v), (s, i, v))
RETURNS(int, sqlite3_bind_null, (sqlite3_stmt *s, int i), (s, i))
RETURNS(int, sqlite3_bind_text,
    (sqlite3_stmt *s, int i, const char *text, int n, void (*done)(void *)), (s, i, text, n, done))
RETURNS(int, sqlite3_bind_text64,
    (sqlite3_stmt *s, int i, const char *text, sqlite3_uint64 n, void (*done)(void *),
     unsigned char code),
    (s, i, text, n, done, code))

RETURNS(int, sqlite3_column_count, (sqlite3_stmt *s), (s))
RETURNS(sqlite3_value *, sqlite3_column_value, (sqlite3_stmt *s, int i), (s, i))
RETURNS(int, sqlite3_column_bytes, (sqlite3_stmt *s, int i), (s, i))
RETURNS(int, sqlite3_column_int, (sqlite3_stmt *s, int i), (s, i))
RETURNS(sqlite3_int64, sqlite3_column_int64, (sqlite3_stmt *s, int i), (s, i))
RETURNS(const unsigned char *, sqlite3_column_text, (sqlite3_stmt *s, int i), (s, i))
RETURNS(int, sqlite3_column_type, (sqlite3_stmt *s, int i), (s, i))
/* clang-format on */
