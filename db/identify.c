/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a database that may be another belayd's, of any schema: it is neither locked nor migrated,
 * and no files are created next to it. Without a write-ahead log there is no writer, so the file is
 * opened as immutable; else SQLite would create a log.
 */
#include "db/db.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HAS_CHECKPOINTS "SELECT EXISTS (SELECT 1 FROM checkpoints)"

/* Writes the path as a URI, in which some characters must be escaped. */
static void add_uri(const char *path, bool is_written, struct buf *out)
{
    buf_adds(out, "file:");
    for (; *path; path++)
        if (strchr("%?#", *path))
            buf_printf(out, "%%%02X", (unsigned char)*path);
        else
            buf_printf(out, "%c", *path);
    buf_adds(out, is_written ? "?mode=ro" : "?mode=ro&immutable=1");
}

static int read_meta(sqlite3 *sql, struct db_identity *ret_identity, struct err *e)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(sql, "SELECT cluster_uid, epoch FROM meta", -1, &s, NULL);
    int rc = 0;

    if (code != SQLITE_OK || (code = sqlite3_step(s)) != SQLITE_ROW)
        rc = sql_err(e, sql, code, "read the cluster's uid");
    else {
        STR_COPY(ret_identity->uid, (const char *)sqlite3_column_text(s, 0));
        ret_identity->epoch = sqlite3_column_int64(s, 1);
    }
    sqlite3_finalize(s);
    return rc;
}

int db_identify(const char *path, struct db_identity *ret_identity, struct err *e)
{
    struct db_identity found = {0};
    char *log = mem_printf("%s-wal", path);
    struct buf uri = {0};
    sqlite3 *sql = NULL;
    int64_t has = 0;
    int rc = access(path, R_OK) == 0 ? 0 : err_errno(e, errno, "read the database %s", path);

    add_uri(path, access(log, F_OK) == 0, &uri);
    if (!rc) {
        int code = sqlite3_open_v2(buf_str(&uri), &sql,
            SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
            NULL);
        rc = code == SQLITE_OK ? 0 : sql_err(e, sql, code, "open");
    }
    if (!rc) {
        sqlite3_busy_timeout(sql, DB_BUSY_MS);
        rc = sql_get_i64(sql, "PRAGMA user_version", &found.schema, e);
    }
    if (!rc)
        rc = read_meta(sql, &found, e);
    if (!rc)
        rc = sql_get_i64(sql, HAS_CHECKPOINTS, &has, e);
    found.has_checkpoints = has != 0;
    if (!rc)
        *ret_identity = found;
    sqlite3_close(sql);
    buf_deinit(&uri);
    free(log);
    return rc;
}
