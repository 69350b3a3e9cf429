/* SPDX-License-Identifier: Apache-2.0 */
#include "db/copy.h"

#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PAGES_A_STEP 1024

static int create_file(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "create %s", path);
    close(fd);
    return 0;
}

/* The read transaction makes all steps see one commit, and keeps SQLite from starting again when
 * belayd commits. */
static int open_source(const char *path, sqlite3 **ret_sql, struct err *e)
{
    int64_t objects;
    int code = sqlite3_open_v2(
        path, ret_sql, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (code != SQLITE_OK)
        return sql_err(e, *ret_sql, code, "open");
    sqlite3_busy_timeout(*ret_sql, DB_BUSY_MS);
    int rc = sql_exec(*ret_sql, "BEGIN", e);
    return rc != 0 ? rc : sql_get_i64(*ret_sql, "SELECT count(*) FROM sqlite_schema", &objects, e);
}

static int copy_pages(sqlite3 *from, sqlite3 *to, struct err *e)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    int code;
    if (!b)
        return sql_err(e, to, sqlite3_extended_errcode(to), "begin the copy");
    do
        code = sqlite3_backup_step(b, PAGES_A_STEP);
    while (code == SQLITE_OK);
    sqlite3_backup_finish(b);
    return code == SQLITE_DONE ? 0 : sql_err(e, to, code, "copy the pages");
}

int db_copy(const char *path, const char *to, struct err *e)
{
    sqlite3 *from_sql = NULL, *to_sql = NULL;
    int rc = access(path, R_OK) == 0 ? 0 : err_errno(e, errno, "read the database %s", path);
    if (rc != 0 || (rc = create_file(to, e)) != 0)
        return rc;
    if ((rc = open_source(path, &from_sql, e)) != 0) {
        err_wrap(e, "the database %s", path);
    } else {
        int code = sqlite3_open_v2(
            to, &to_sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
        rc = code == SQLITE_OK ? copy_pages(from_sql, to_sql, e) : sql_err(e, to_sql, code, "open");
        if (rc != 0)
            err_wrap(e, "copy the database %s to %s", path, to);
    }
    sqlite3_close(to_sql);
    sqlite3_close(from_sql);
    if (rc != 0)
        unlink(to);
    return rc;
}

int db_check_integrity(struct db *d, struct err *e)
{
    struct query q;
    char first[200] = "";

    query_init_text(&q, &d->statements, "PRAGMA integrity_check(1)", e);
    if (query_step(&q))
        STR_COPY(first, (const char *)sqlite3_column_text(q.stmt, 0));
    int rc = query_finish(&q);
    if (rc == 0 && !str_eq(first, "ok"))
        rc = err_set(e, ERR_CORRUPT, "%s: %s", d->path, first);
    return rc;
}

int db_begin_epoch(struct db *d, int64_t epoch, int64_t skip, struct err *e)
{
    struct query q;

    query_init_text(&q, &d->statements,
        "UPDATE meta SET epoch = ?1, boots = boots + ?2, next_job = next_job + ?2,"
        " next_node = next_node + ?2, next_instance = next_instance + ?2,"
        " next_cron = next_cron + ?2",
        e);
    query_i64(&q, 1, epoch);
    query_i64(&q, 2, skip);
    query_step(&q);
    int rc = query_finish(&q);
    return rc == 0 ? 0 : err_wrap(e, "the database %s", d->path);
}
