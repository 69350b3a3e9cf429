/* SPDX-License-Identifier: Apache-2.0
 *
 * Migrations: every released version is migrated to the current one with its contents, and an
 * interrupted migration has happened completely or not at all.
 *
 * schema_v<N>.sql is a database of version N: `sqlite3 FILE .dump`, with its application_id and
 * user_version. To record a new version, let the programs make it from the previous one:
 *
 *   build/tests/db/test_db_migrate /tmp/belay.db && sqlite3 /tmp/belay.db .dump
 */
#include "tests/db/faulty_vfs.h"
#include "tests/db/util.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/migrate.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void load_fixture(const char *path, int version)
{
    char *name = mem_printf(TEST_DIR "/schema_v%d.sql", version);
    struct buf text = {0};
    struct err e;
    if (fs_read(name, 1 << 20, &text, &e) != 0)
        fail_msg("%s: each version is recorded, this one too", e.text);
    char *all = mem_printf("BEGIN;%s;COMMIT", buf_str(&text)); /* one fsync, not one per row */
    util_exec(path, all);
    buf_deinit(&text);
    free(all);
    free(name);
}

static int64_t get(sqlite3 *sql, const char *text)
{
    int64_t v = -1;
    struct err e;
    if (sql_get_i64(sql, text, &v, &e) != 0)
        fail_msg("%s", e.text);
    return v;
}

static sqlite3 *open_plainly(const char *path)
{
    sqlite3 *sql;
    struct err e;
    assert_int_equal(sqlite3_open_v2(path, &sql,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE, NULL),
        SQLITE_OK);
    assert_int_equal(sql_exec(sql, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", &e), 0);
    return sql;
}

static void add_schema_text(sqlite3 *sql, struct buf *out)
{
    sqlite3_stmt *s;
    assert_int_equal(
        sqlite3_prepare_v2(sql,
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name", -1, &s,
            NULL),
        SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        buf_printf(out, "%s;\n", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
}

static void assert_same_schema(sqlite3 *got, sqlite3 *want)
{
    struct buf a = {0}, b = {0};
    add_schema_text(got, &a);
    add_schema_text(want, &b);
    assert_string_equal(buf_str(&a), buf_str(&b));
    buf_deinit(&a);
    buf_deinit(&b);
}

/* The fixtures were written by each release. */
static void every_version_leads_to_the_schema_of_a_new_database(void **state)
{
    struct db *fresh = util_open(":memory:");

    for (int v = 1; v <= DB_SCHEMA_VERSION; v++) {
        char *path = mem_printf("%s.%d", (const char *)*state, v);
        load_fixture(path, v);
        sqlite3 *sql = open_plainly(path);
        assert_int_equal(get(sql, "PRAGMA user_version"), v);
        if (v == DB_SCHEMA_VERSION)
            assert_same_schema(sql, fresh->sql);
        sqlite3_close(sql);
        struct db *d = util_open(path);
        assert_int_equal(get(d->sql, "PRAGMA user_version"), DB_SCHEMA_VERSION);
        assert_same_schema(d->sql, fresh->sql);
        db_close(d);
        free(path);
    }
    db_close(fresh);
}

/* Every value of every row, in the columns that existed. */
static void assert_holds_all_of(sqlite3 *sql, const char *path)
{
    sqlite3_stmt *s;
    struct err e;
    int n_tables = 0;
    char *attach = mem_printf("ATTACH '%s' AS old", path);

    assert_int_equal(sql_exec(sql, attach, &e), 0);
    assert_int_equal(sqlite3_prepare_v2(sql,
                         "SELECT t.name, group_concat(c.name) FROM old.sqlite_schema t, "
                         "pragma_table_info(t.name, 'old') c"
                         " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' GROUP BY t.name",
                         -1, &s, NULL),
        SQLITE_OK);
    for (; sqlite3_step(s) == SQLITE_ROW; n_tables++) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        const char *columns = (const char *)sqlite3_column_text(s, 1);
        char *missing = mem_printf("SELECT count(*) FROM (SELECT %s FROM old.%s EXCEPT SELECT %s "
                                   "FROM main.%s)",
            columns, name, columns, name);
        char *rows = mem_printf("SELECT count(*) FROM main.%s", name);
        if (get(sql, missing) != 0 || get(sql, rows) == 0)
            fail_msg("table %s does not hold what it held", name);
        free(missing);
        free(rows);
    }
    sqlite3_finalize(s);
    assert_in_range(n_tables, TABLE_COUNT, 2 * TABLE_COUNT);
    free(attach);
}

static void a_database_of_version_1_opens_with_what_it_held(void **state)
{
    char *old = mem_printf("%s.old", (const char *)*state);
    struct model *m =
        model_create(&(struct model_options){.cluster_uid = "0123456789abcdef", .lease_ms = 30000});
    struct db_meta meta;
    struct err e = {0};

    load_fixture(*state, 1);
    load_fixture(old, 1);
    struct db *d = util_open(*state);
    assert_holds_all_of(d->sql, old);
    assert_int_equal(db_startup(d, &meta, &e), 0);
    assert_string_equal(meta.cluster_uid, "0123456789abcdef");
    assert_int_equal(meta.boots, 4);
    assert_int_equal(meta.counters.next_job, 4);
    int rc = db_load(d, m, (struct stamp){{1000000}, {5000}}, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
    assert_null(model_job(m, 1));
    assert_non_null(job_attempt(model_job(m, 2)));
    assert_non_null(model_job(m, 3));
    assert_non_null(model_instance_by_token(m, "t1"));
    assert_int_equal(model_check(m, &e), 0);
    model_destroy(m);
    db_close(d);
    free(old);
}

/* Rows written by hand get defaults. */
static void what_a_row_does_not_say_has_its_default(void **state)
{
    struct db *d = util_open(*state);
    struct err e;

    assert_int_equal(
        sql_exec(d->sql,
            "INSERT INTO pools (name, elastic, provider, region, max_nodes, idle_timeout_ms, "
            "cooldown_ms, boot_timeout_ms, refusal_backoff_ms, usd_per_hour_uusd)"
            " VALUES ('burst', 1, 'aws', 'r1', 4, 1, 1, 1, 1, 0);"
            "INSERT INTO jobs (id, name, user, pool, state, end_kind, exit_code, cpus, gpus, "
            "memory_mib, time_limit_ms, market, method, used_failed, used_node_lost, "
            "used_checkpointed, attempts, reclaims, last_good_attempt, last_good_sequence, "
            "save_ms, "
            "ckpt_bytes, lost_ms, lost_steps, cost_uusd, on_demand_uusd)"
            " VALUES (1, 'x', 'x', 'x', 'ended', 'none', 0, 0, 0, 0, 0, 'any', 'none', 0, 0, 0, 0, "
            "0, 0, 0, 0, 0, 0, 0, 0, 0)",
            &e),
        0);
    assert_int_equal(
        get(d->sql, "SELECT count(*) FROM pools WHERE boots_failed = 0 AND boots_wait_ms = 0 "
                    "AND boots_next_at IS NULL AND criu = 'unknown' AND retries = ''"),
        1);
    /* plain 0: the row is read completely */
    assert_int_equal(
        get(d->sql, "SELECT count(*) FROM jobs WHERE plain = 0 AND spec IS NULL AND nodes = 1 AND "
                    "ranks = 1 AND hold = 'none' AND procurement = 'free' AND eligible_at IS NULL "
                    "AND from_attempt = 0"),
        1);
    struct db_reader *r = util_reader(*state);
    struct job_row row;
    assert_int_equal(db_read_job(r, 1, &row, &e), 0);
    assert_memory_equal(&row.spec.retries, &retries_default, sizeof(retries_default));
    assert_int_equal(row.spec.mail, 0);
    db_reader_close(r);
    db_close(d);
}

/* ---- migration steps for tests ---- */

static const char *const two_steps[] = {
    "ALTER TABLE jobs ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue';"
    "UPDATE jobs SET colour = 'red' WHERE user = 'bob'",
    "CREATE TABLE shades (colour TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO shades SELECT colour, count(*) FROM jobs GROUP BY colour",
    NULL,
};

static struct schema with_steps(const char *const *steps)
{
    return (struct schema){.baseline = belay_schema.baseline, .steps = steps};
}

static bool has(sqlite3 *sql, const char *text)
{
    char *query = mem_printf("SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%%%s%%'", text);
    int64_t n = get(sql, query);
    free(query);
    return n > 0;
}

/* Checks that the version in the file matches its tables. Returns the version. */
static int64_t check_version(sqlite3 *sql)
{
    int64_t version = get(sql, "PRAGMA user_version");
    assert_in_range(version, 0, 3);
    assert_int_equal(has(sql, "CREATE TABLE jobs"), version >= 1);
    assert_int_equal(has(sql, "colour TEXT NOT NULL"), version >= 2);
    assert_int_equal(has(sql, "CREATE TABLE shades"), version >= 3);
    if (version >= 1)
        assert_int_equal(get(sql, "SELECT count(*) FROM meta"), 1);
    return version;
}

static void check_migrated(sqlite3 *sql, int64_t n_jobs)
{
    assert_int_equal(check_version(sql), 3);
    assert_int_equal(get(sql, "SELECT count(*) FROM jobs"), n_jobs);
    assert_int_equal(get(sql, "SELECT total(n) FROM shades"), n_jobs);
    assert_int_equal(
        get(sql, "SELECT count(*) FROM jobs WHERE colour = 'red' AND user = 'bob'"), n_jobs > 0);
    assert_int_equal(
        get(sql, "SELECT belay_version = '" BELAY_VERSION "' AND cluster_uid <> '' FROM meta"), 1);
    assert_int_equal(get(sql, "PRAGMA application_id"), DB_APPLICATION_ID);
}

static void migrate_well(sqlite3 *sql, const char *path, const struct schema *s)
{
    struct err e = {0};
    int rc = migrate_to_newest(sql, path, s, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
}

static void steps_are_taken_in_order_and_rows_stay(void **state)
{
    const struct schema s = with_steps(two_steps);
    char *fresh_path = mem_printf("%s.fresh", (const char *)*state);

    assert_int_equal(migrate_newest(&s), 3);
    assert_int_equal(migrate_newest(&belay_schema), DB_SCHEMA_VERSION);
    load_fixture(*state, 1);
    util_exec(*state, "UPDATE meta SET belay_version = '0.0.1'");
    sqlite3 *sql = open_plainly(*state), *fresh = open_plainly(fresh_path);
    migrate_well(sql, *state, &s);
    check_migrated(sql, 3);
    assert_int_equal(get(sql, "SELECT n FROM shades WHERE colour = 'blue'"), 2);
    migrate_well(sql, *state, &s); /* no migration is needed */
    check_migrated(sql, 3);
    migrate_well(fresh, fresh_path, &s);
    check_migrated(fresh, 0);
    assert_same_schema(sql, fresh);
    sqlite3_close(sql);
    sqlite3_close(fresh);
    free(fresh_path);
}

static void a_version_without_a_step_from_it_is_refused_and_not_changed(void **state)
{
    const struct schema s = with_steps(two_steps), older = with_steps(&two_steps[2]);
    struct err e;

    load_fixture(*state, 1);
    sqlite3 *sql = open_plainly(*state);
    migrate_well(sql, *state, &s);
    assert_int_equal(sql_exec(sql, "UPDATE meta SET belay_version = '7.5.0' WHERE one = 1", &e), 0);
    assert_int_equal(migrate_newest(&older), 1);
    assert_int_equal(migrate_to_newest(sql, *state, &older, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "schema 3"));
    assert_non_null(strstr(e.text, "install belay 7.5.0 or newer"));
    assert_int_equal(check_version(sql), 3);
    assert_int_equal(get(sql, "SELECT belay_version = '7.5.0' FROM meta"), 1);
    sqlite3_close(sql);
}

static void a_step_that_fails_leaves_the_version_before_it(void **state)
{
    const char *const bad[] = {
        two_steps[0],
        "CREATE TABLE shades (colour TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "INSERT INTO shades SELECT colour, 1 FROM jobs", /* two rows have one key */
        NULL,
    };
    const struct schema s = with_steps(bad), mended = with_steps(two_steps);
    struct err e;

    load_fixture(*state, 1);
    sqlite3 *sql = open_plainly(*state);
    assert_int_equal(migrate_to_newest(sql, *state, &s, &e), ERR_INTERNAL);
    assert_non_null(strstr(e.text, "migrate the database to schema 3"));
    assert_int_equal(check_version(sql), 2);
    migrate_well(sql, *state, &mended);
    check_migrated(sql, 3);
    sqlite3_close(sql);
}

/* ---- crashes ---- */

static void start_over(const char *path, int from)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char *file = mem_printf("%s%s", path, suffixes[i]);
        unlink(file);
        free(file);
    }
    if (from > 0)
        load_fixture(path, from);
}

/* Migrates with the plan's fault, and checks what a belayd would find on disk now, and the state of
 * this process. False if the fault did not occur. ret_found: the version on disk. */
static bool try_fault(const char *path, int from, int64_t *ret_found)
{
    const struct schema s = with_steps(two_steps);
    const struct faulty_plan wanted = faulty_plan;
    char *copy = mem_printf("%s.copy", path);
    struct err e = {0};

    faulty_plan = (struct faulty_plan){0};
    start_over(path, from);
    sqlite3 *sql = open_plainly(path);
    faulty_plan = wanted;
    int rc = migrate_to_newest(sql, path, &s, &e);
    bool came = faulty_plan.fail_at[FAULTY_WRITE] + faulty_plan.fail_at[FAULTY_SYNC] == 0;
    faulty_plan = (struct faulty_plan){0};

    start_over(copy, 0);
    util_copy_file(path, copy, "");
    util_copy_file(path, copy, "-wal");
    sqlite3 *after = open_plainly(copy);
    assert_int_equal(sql_exec(after, "PRAGMA synchronous = OFF", &e), 0);
    *ret_found = check_version(after);
    assert_in_range(*ret_found, rc == 0 ? 3 : from, 3);
    migrate_well(after, copy, &s);
    check_migrated(after, from > 0 ? 3 : 0);
    sqlite3_close(after);
    check_version(sql);
    migrate_well(sql, path, &s);
    check_migrated(sql, from > 0 ? 3 : 0);
    sqlite3_close(sql);
    free(copy);
    return came;
}

/* Every write, then every fsync, of a first start and of a migration from version 1. */
static void a_migration_that_is_cut_off_has_happened_or_not(void **state)
{
    static const struct {
        enum faulty_op op;
        int code, errnum;
    } faults[] = {
        {FAULTY_WRITE, SQLITE_FULL, ENOSPC},
        {FAULTY_SYNC, SQLITE_IOERR_FSYNC, EIO},
    };

    for (int from = 0; from <= 1; from++)
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
            bool found[4] = {false}, came = true;
            int64_t version;
            for (int64_t n = 1; came; n++) {
                faulty_plan = (struct faulty_plan){.errnum = faults[i].errnum};
                faulty_plan.fail_at[faults[i].op] = n;
                faulty_plan.code[faults[i].op] = faults[i].code;
                came = try_fault(*state, from, &version);
                found[version] = true;
                assert_in_range(n, 1, 1000);
            }
            /* also between any two versions */
            for (int v = from; v <= 3; v++)
                if (!found[v] && faults[i].op == FAULTY_WRITE)
                    fail_msg("no crash left version %d", v);
        }
}

static int record(const char *path)
{
    load_fixture(path, DB_SCHEMA_VERSION - 1);
    db_close(util_open(path));
    return 0;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, util_setup, util_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_version_leads_to_the_schema_of_a_new_database),
        TEST(a_database_of_version_1_opens_with_what_it_held),
        TEST(what_a_row_does_not_say_has_its_default),
        TEST(steps_are_taken_in_order_and_rows_stay),
        TEST(a_version_without_a_step_from_it_is_refused_and_not_changed),
        TEST(a_step_that_fails_leaves_the_version_before_it),
        cmocka_unit_test_setup_teardown(
            a_migration_that_is_cut_off_has_happened_or_not, faulty_setup, faulty_teardown),
    };
    return argc == 2 ? record(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
