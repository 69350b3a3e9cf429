/* SPDX-License-Identifier: Apache-2.0
 *
 * See migrate.h.
 *
 * Invariants.
 *  1. `PRAGMA user_version` is written in the transaction that creates the version, so the number
 *     always matches the tables.
 *  2. meta.belay_version is the release that wrote the version. It is read from newer databases too
 *     (refuse_newer), so no step may rename it.
 */
#include "db/migrate.h"

#include "base/prng.h"
#include "db/conn.h"
#include <stdio.h>

int migrate_newest(const struct schema *s)
{
    int version = 1;
    while (s->steps[version - 1])
        version++;
    return version;
}

/* Creates the meta row: the identity of this cluster. */
static int make_meta(sqlite3 *sql, struct err *e)
{
    char uid[17];
    sqlite3_stmt *s = NULL;
    int rc;

    random_hex(8, uid);
    if ((rc = sql_prepare(sql,
             "INSERT INTO meta (one, belay_version, cluster_uid) VALUES (1, '', ?1)", &s, e)) != 0)
        return rc;
    sqlite3_bind_text(s, 1, uid, -1, SQLITE_STATIC);
    int code = sqlite3_step(s);
    if (code != SQLITE_DONE)
        rc = sql_err(e, sql, code, "create the meta row");
    sqlite3_finalize(s);
    return rc;
}

static int apply(sqlite3 *sql, const struct schema *s, int version, struct err *e)
{
    char stamp[200];
    int rc;

    if ((rc = sql_exec(sql, version == 1 ? s->baseline : s->steps[version - 2], e)) != 0)
        return rc;
    if (version == 1 && (rc = make_meta(sql, e)) != 0)
        return rc;
    snprintf(stamp, sizeof(stamp),
        "UPDATE meta SET belay_version = '" BELAY_VERSION
        "'; PRAGMA application_id = %d; PRAGMA user_version = %d",
        DB_APPLICATION_ID, version);
    return sql_exec(sql, stamp, e);
}

static int migrate_to(sqlite3 *sql, const struct schema *s, int version, struct err *e)
{
    int rc;

    if ((rc = sql_exec(sql, "BEGIN IMMEDIATE", e)) != 0)
        return rc;
    if ((rc = apply(sql, s, version, e)) == 0 && (rc = sql_exec(sql, "COMMIT", e)) == 0)
        return 0;
    sqlite3_exec(sql, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(e, "migrate the database to schema %d", version);
}

static int refuse_newer(sqlite3 *sql, const char *path, int64_t version, int newest, struct err *e)
{
    sqlite3_stmt *s = NULL;
    const char *needed = NULL;

    /* The schema is unknown: if even this row has changed, the message has less detail. */
    if (sqlite3_prepare_v2(sql, "SELECT belay_version FROM meta", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        needed = (const char *)sqlite3_column_text(s, 0);
    int rc = err_set(e, ERR_CONFIG,
        "%s was written by a newer belay (schema %lld, this is belay " BELAY_VERSION
        " with schema %d): install belay "
        "%.40s or newer",
        path, (long long)version, newest, needed ? needed : "of the release that wrote it");
    sqlite3_finalize(s);
    return rc;
}

static int refuse_unreleased(const char *path, int64_t version, struct err *e)
{
    return err_set(e, ERR_CONFIG,
        "%s was written by a build of belay before the first release (its schema %lld), and "
        "cannot be converted: let its jobs and cloud instances end with the belayd that wrote it, "
        "then stop that, move the file away and start this one, which makes a new database",
        path, (long long)version);
}

int migrate_read_version(sqlite3 *sql, const char *path, int64_t *ret_version, struct err *e)
{
    int64_t id, objects, version;
    int rc;

    if ((rc = sql_get_i64(sql, "PRAGMA application_id", &id, e)) != 0 ||
        (rc = sql_get_i64(sql, "PRAGMA user_version", &version, e)) != 0 ||
        (rc = sql_get_i64(sql, "SELECT count(*) FROM sqlite_schema", &objects, e)) != 0)
        return rc;
    if (id == DB_APPLICATION_ID_UNRELEASED)
        return refuse_unreleased(path, version, e);
    if (id != DB_APPLICATION_ID && objects > 0)
        return err_set(e, ERR_CORRUPT,
            "%s is an SQLite database, but not belay's: give belay a path of its own", path);
    if (version < 0)
        return err_set(
            e, ERR_CORRUPT, "%s: its schema number %lld is negative", path, (long long)version);
    *ret_version = version;
    return 0;
}

int migrate_to_newest(sqlite3 *sql, const char *path, const struct schema *s, struct err *e)
{
    int64_t version;
    const int newest = migrate_newest(s);
    int rc;

    if ((rc = migrate_read_version(sql, path, &version, e)) != 0)
        return rc;
    if (version > newest)
        return refuse_newer(sql, path, version, newest, e);
    for (int v = (int)version + 1; v <= newest; v++)
        if ((rc = migrate_to(sql, s, v, e)) != 0)
            return rc;
    return 0;
}
