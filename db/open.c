/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening: first the lock, so that nothing below happens twice at the same time; then the file
 * (readable by its owner only, because it has the scripts of users), its header, the connection,
 * the migrations, and the statements that every commit uses.
 */
#include "db/conn.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/migrate.h"
#include "db/rollup.h"
#include "db/query.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100 /* sqlite.org/fileformat.html, section 1.3 */

static bool is_memory(const char *path)
{
    return str_eq(path, ":memory:");
}

/* The pid in the file is for people; the actual lock is the flock, which ends with its process. */
static int take_lock(struct db *d, struct err *e)
{
    char *path = mem_printf("%s.lock", d->path);
    char pid[24] = "";
    int rc = 0;

    d->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (d->lock_fd < 0) {
        rc = err_errno(e, errno, "open %s", path);
    } else if (fs_lock(d->lock_fd) == 0) {
        int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
        /* A full disk leaves it empty: harmless. */
        if (ftruncate(d->lock_fd, 0) == 0 && pwrite(d->lock_fd, pid, (size_t)n, 0) < 0)
            n = ftruncate(d->lock_fd, 0);
    } else if (errno == EWOULDBLOCK) {
        ssize_t n = pread(d->lock_fd, pid, sizeof(pid) - 1, 0);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        rc = err_set(e, ERR_CONFLICT,
            "%s is in use by another belayd (pid %s): stop it first, or give this one its own "
            "state directory",
            d->path, pid[0] ? pid : "unknown");
    } else {
        rc = err_errno(e, errno, "lock %s", path);
    }
    free(path);
    return rc;
}

static int check_header(const char *path, const char *header, ssize_t n, struct err *e)
{
    if (n == 0) /* a new file */
        return 0;
    if (n == HEADER_BYTES && memcmp(header, "SQLite format 3", 16) == 0)
        return 0;
    return err_set(e, ERR_CORRUPT,
        "%s is not a database (%s): move it away to start with an empty one, or restore a backup "
        "in its place",
        path, n < HEADER_BYTES ? "it is too short" : "it does not begin like one");
}

static int check_file(const char *path, struct err *e)
{
    char header[HEADER_BYTES];
    struct stat st;
    int rc = 0;

    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "open the database %s", path);
    if (fstat(fd, &st) != 0)
        rc = err_errno(e, errno, "examine the database %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, ERR_CONFIG, "the database %s is not a regular file", path);
    else if ((st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        rc = err_errno(e, errno, "make the database %s readable for its owner only", path);
    else
        rc = check_header(path, header, pread(fd, header, sizeof(header), 0), e);
    close(fd);
    return rc;
}

static int set_pragmas(struct db *d, struct err *e)
{
    /* FULL: a commit is on disk when it returns. The writer moves the WAL into the file every 16
     * MiB. */
    static const char pragmas[] =
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
        "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -65536;"
        "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF";
    int64_t readable;
    sqlite3_stmt *s = NULL;
    int rc = 0, code;

    sqlite3_busy_timeout(d->sql, DB_BUSY_MS);
    if ((rc = sql_get_i64(d->sql, "PRAGMA schema_version", &readable, e)) != 0)
        return rc;
    if ((code = sqlite3_prepare_v2(d->sql, "PRAGMA journal_mode = WAL", -1, &s, NULL)) !=
            SQLITE_OK ||
        (code = sqlite3_step(s)) != SQLITE_ROW)
        rc = sql_err(e, d->sql, code, "turn on write-ahead logging");
    else if (!is_memory(d->path) && !str_eq((const char *)sqlite3_column_text(s, 0), "wal"))
        rc = err_set(e, ERR_UNSUPPORTED,
            "this file system cannot hold a write-ahead log (a network file system?): put "
            "the state on a local disk");
    sqlite3_finalize(s);
    return rc != 0 ? rc : sql_exec(d->sql, pragmas, e);
}

#define THIN_OUT(table, key)                                                                       \
    "DELETE FROM " table " WHERE (" key ") IN (SELECT " key " FROM " table                         \
    " WHERE span_ms = ?1 AND at < ?2 ORDER BY at LIMIT ?3)"

static int prepare_removals(struct db *d, struct err *e)
{
    int rc;
    if ((rc = sql_prepare(d->sql, "DELETE FROM outbox WHERE event = ?1 AND target = ?2",
             &d->outbox_done, e)) != 0 ||
        (rc = sql_prepare(d->sql, "DELETE FROM node_failures WHERE node = ?1 AND place = ?2",
             &d->node_failure_removed, e)) != 0 ||
        (rc = sql_prepare(
             d->sql, "DELETE FROM reservations WHERE id = ?1", &d->reservation_over, e)) != 0 ||
        (rc = sql_prepare(
             d->sql, "DELETE FROM calendars WHERE name = ?1", &d->calendar_removed, e)) != 0 ||
        (rc = sql_prepare(d->sql, "DELETE FROM secrets WHERE owner = ?1 AND name = ?2",
             &d->secret_removed, e)) != 0 ||
        (rc = sql_prepare(d->sql, "DELETE FROM audit_log WHERE seq <= ?1", &d->audit_cut, e)) != 0)
        return rc;
    return 0;
}

static int prepare_all(struct db *d, struct err *e)
{
    struct buf text = {0};
    int rc;

    if ((rc = sql_prepare(d->sql, "BEGIN IMMEDIATE", &d->begin, e)) != 0 ||
        (rc = sql_prepare(d->sql, "COMMIT", &d->end, e)) != 0 ||
        /* Counters never decrease, whatever a caller passes. */
        (rc = sql_prepare(d->sql,
             "UPDATE meta SET next_job = max(next_job, ?1), next_node = max(next_node, ?2),"
             " next_instance = max(next_instance, ?3), next_history = max(next_history, ?4),"
             " next_offer = max(next_offer, ?5), next_cron = max(next_cron, ?6),"
             " next_constraints = max(next_constraints, ?7),"
             " next_reservation = max(next_reservation, ?8)"
             " WHERE next_job < ?1 OR next_node < ?2 OR next_instance < ?3 OR next_history < ?4"
             " OR next_offer < ?5 OR next_cron < ?6 OR next_constraints < ?7"
             " OR next_reservation < ?8",
             &d->counters, e)) != 0 ||
        (rc = sql_prepare(d->sql,
             "INSERT INTO job_labels SELECT ?1, key, value FROM json_each(CASE WHEN json_valid(?2) "
             "THEN ?2 END) WHERE type = 'text'",
             &d->labels, e)) != 0 ||
        (rc = sql_prepare(d->sql,
             "INSERT INTO job_documents (job, json) SELECT ?1, json_patch(coalesce("
             "(SELECT json FROM job_documents WHERE job = ?1), (SELECT a.json FROM jobs AS j JOIN "
             "job_documents AS a ON a.job = j.array_id WHERE j.id = ?1 AND j.array_id <> 0), '{}'),"
             " ?2) WHERE true ON CONFLICT (job) DO UPDATE SET json = excluded.json",
             &d->document, e)) != 0 ||
        (rc = sql_prepare(d->sql,
             "INSERT INTO job_workdirs SELECT ?1, value FROM json_each(CASE WHEN json_valid(?2) "
             "THEN ?2 END) WHERE key = 'workdir' AND type = 'text'",
             &d->workdirs, e)) != 0 ||
        (rc = prepare_removals(d, e)) != 0 ||
        (rc = sql_prepare(d->sql,
             "UPDATE jobs SET cost_uusd = cost_uusd + ?2, plain = 0 WHERE id = ?1", &d->late_cost,
             e)) != 0 ||
        (rc = sql_prepare(d->sql, THIN_OUT("task_loads", "job, attempt, rank, span_ms, at"),
             &d->thin_task_loads, e)) != 0 ||
        (rc = sql_prepare(d->sql, THIN_OUT("gpu_loads", "job, attempt, node, gpu, span_ms, at"),
             &d->thin_gpu_loads, e)) != 0 ||
        (rc = rollup_prepare(&d->rollup, d->sql, e)) != 0 ||
        (rc = prune_prepare(&d->pruner, d->sql, e)) != 0)
        return rc;
    for (int t = TABLE_META + 1; t < TABLE_COUNT && rc == 0; t++) {
        buf_clear(&text);
        table_insert_sql(&tables[t], &text);
        rc = sql_prepare(d->sql, buf_str(&text), &d->insert[t], e);
    }
    buf_deinit(&text);
    return rc;
}

static int open_sql(struct db *d, struct err *e)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc, code;

    if (is_memory(d->path))
        flags |= SQLITE_OPEN_CREATE;
    if ((code = sqlite3_open_v2(d->path, &d->sql, flags, NULL)) != SQLITE_OK)
        return sql_err(e, d->sql, code, "open");
    d->statements.sql = d->sql;
    if ((rc = set_pragmas(d, e)) != 0 ||
        (rc = migrate_to_newest(d->sql, d->path, &belay_schema, e)) != 0)
        return rc;
    return prepare_all(d, e);
}

int db_open(const char *path, struct db **ret_db, struct err *e)
{
    struct db *d = mem_alloc(sizeof(*d));
    int rc = 0;

    d->path = mem_strdup(path);
    d->lock_fd = -1;
    if (!is_memory(path) && ((rc = take_lock(d, e)) != 0 || (rc = check_file(path, e)) != 0))
        goto out;
    if ((rc = open_sql(d, e)) != 0 || (rc = audit_log_load(d, &d->audit, e)) != 0)
        err_wrap(e, "the database %s", path);
out:
    if (rc == 0)
        *ret_db = d;
    else
        db_close(d);
    return rc;
}

/* Does not read rows: SQLite clears a table without triggers as a whole. */
int db_empty(struct db *d, struct err *e)
{
    struct buf text = {0};
    struct query q;
    int rc;

    assert(is_memory(d->path));
    buf_adds(&text, "BEGIN; REPLACE INTO meta (one, belay_version, cluster_uid, seal_key) SELECT "
                    "one, belay_version, cluster_uid, seal_key FROM meta;");
    query_init_text(&q, &d->statements,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta' AND name NOT LIKE "
        "'sqlite%'",
        e);
    while (query_step(&q))
        buf_printf(&text, "DELETE FROM %s;", (const char *)sqlite3_column_text(q.stmt, 0));
    buf_adds(&text, "COMMIT");
    if ((rc = query_finish(&q)) == 0)
        rc = sql_exec(d->sql, buf_str(&text), e);
    d->audit = (struct audit_head){0};
    buf_deinit(&text);
    return rc;
}

void db_close(struct db *d)
{
    if (!d)
        return;
    sqlite3_finalize(d->begin);
    sqlite3_finalize(d->end);
    sqlite3_finalize(d->counters);
    sqlite3_finalize(d->labels);
    sqlite3_finalize(d->document);
    sqlite3_finalize(d->workdirs);
    sqlite3_finalize(d->outbox_done);
    sqlite3_finalize(d->node_failure_removed);
    sqlite3_finalize(d->secret_removed);
    sqlite3_finalize(d->reservation_over);
    sqlite3_finalize(d->calendar_removed);
    sqlite3_finalize(d->audit_cut);
    sqlite3_finalize(d->late_cost);
    sqlite3_finalize(d->thin_task_loads);
    sqlite3_finalize(d->thin_gpu_loads);
    rollup_deinit(&d->rollup);
    prune_deinit(&d->pruner);
    statements_deinit(&d->statements);
    for (int t = 0; t < TABLE_COUNT; t++)
        sqlite3_finalize(d->insert[t]);
    int code = sqlite3_close(d->sql);
    assert(code == SQLITE_OK); /* a reader of this connection is still open */
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    free(d->path);
    free(d);
}
