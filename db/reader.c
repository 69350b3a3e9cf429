/* SPDX-License-Identifier: Apache-2.0
 *
 * The read-only connection. A statement sees the last commit before it began.
 */
#include "db/reader.h"

#include "base/mem.h"
#include "db/conn.h"
#include "db/migrate.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CANCEL_OPS 10000 /* operations of SQLite's virtual machine: some 0.1 ms */

static int check_version(sqlite3 *sql, const char *path, struct err *e)
{
    int64_t version;
    int rc;

    if ((rc = migrate_read_version(sql, path, &version, e)) != 0)
        return rc;
    if (version == DB_SCHEMA_VERSION)
        return 0;
    return err_set(e, ERR_CONFIG,
        "it has schema %lld, this is belay " BELAY_VERSION " with schema %d", (long long)version,
        DB_SCHEMA_VERSION);
}

static int open_sql(struct db_reader *r, const char *path, struct err *e)
{
    int code, rc;

    if (access(path, F_OK) != 0)
        return err_errno(e, errno, "find the file");
    code = sqlite3_open_v2(path, &r->own.sql,
        SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return sql_err(e, r->own.sql, code, "open");
    sqlite3_busy_timeout(r->own.sql, DB_BUSY_MS);
    if ((rc = sql_exec(r->own.sql,
             "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF",
             e)) != 0)
        return rc;
    return check_version(r->own.sql, path, e);
}

int db_reader_open(const char *path, struct db_reader **ret_reader, struct err *e)
{
    struct db_reader *r = mem_alloc(sizeof(*r));
    int rc;

    r->statements = &r->own;
    if ((rc = open_sql(r, path, e)) != 0) {
        err_wrap(e, "read the database %s", path);
        db_reader_close(r);
        return rc;
    }
    *ret_reader = r;
    return 0;
}

int db_reader_of(struct db *d, struct db_reader **ret_reader, struct err *e)
{
    (void)e;
    struct db_reader *r = mem_alloc(sizeof(*r));
    r->statements = &d->statements;
    *ret_reader = r;
    return 0;
}

int db_reader_begin(struct db_reader *r, struct err *e)
{
    assert(r->statements == &r->own);
    return sql_exec(r->statements->sql, "BEGIN", e);
}

void db_reader_end(struct db_reader *r)
{
    /* nothing was written; the transaction may have ended by itself, after a failure */
    sqlite3_exec(r->statements->sql, "ROLLBACK", NULL, NULL, NULL);
}

int db_read_once(const char *path, db_once_fn fn, void *ctx, struct err *e)
{
    struct db_reader *r = NULL;
    int rc = db_reader_open(path, &r, e);
    if (rc == 0)
        rc = db_reader_begin(r, e);
    if (rc == 0)
        rc = fn(ctx, r, e);
    if (r)
        db_reader_end(r);
    db_reader_close(r);
    return rc;
}

static int is_cancelled(void *cancel)
{
    return atomic_load((atomic_int *)cancel) != 0;
}

void db_reader_cancel_by(struct db_reader *r, atomic_int *cancel)
{
    sqlite3_progress_handler(r->statements->sql, CANCEL_OPS, cancel ? is_cancelled : NULL, cancel);
}

void db_reader_close(struct db_reader *r)
{
    if (r && r->statements == &r->own) {
        statements_deinit(&r->own);
        sqlite3_close(r->own.sql);
    }
    free(r);
}
