/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening: which files are created, which are refused, and the messages.
 */
#include "tests/db/util.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/migrate.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening fails with this kind, and the text contains the word. */
static void refused(const char *path, int kind, const char *word)
{
    struct db *d = NULL;
    struct err e = {0};
    assert_int_equal(db_open(path, &d, &e), kind);
    assert_null(d);
    assert_int_equal(e.kind, kind);
    if (!strstr(e.text, word))
        fail_msg("'%s' does not say '%s'", e.text, word);
}

static void write_file(const char *path, const void *p, size_t n)
{
    struct err e;
    assert_int_equal(fs_write_atomic(path, p, n, 0600, &e), 0);
}

static int64_t get(const char *path, const char *text)
{
    sqlite3 *sql;
    int64_t v = -1;
    struct err e;
    assert_int_equal(sqlite3_open(path, &sql), SQLITE_OK);
    assert_int_equal(sql_get_i64(sql, text, &v, &e), 0);
    sqlite3_close(sql);
    return v;
}

static void a_new_database_is_ours_alone_and_has_the_newest_schema(void **state)
{
    const char *path = *state;
    struct stat st;
    char *wal = mem_printf("%s-wal", path);

    umask(0);
    struct db *d = util_open(path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(wal, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    db_close(d);
    assert_int_equal(get(path, "PRAGMA user_version"), DB_SCHEMA_VERSION);
    assert_int_equal(get(path, "PRAGMA application_id"), DB_APPLICATION_ID);
    free(wal);
}

static void a_file_that_others_can_read_is_closed_to_them(void **state)
{
    const char *path = *state;
    struct stat st;

    db_close(util_open(path));
    assert_int_equal(chmod(path, 0644), 0);
    db_close(util_open(path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void boots_are_counted_and_identity_stays(void **state)
{
    struct db_meta first = {0}, meta = {0};
    struct err e;

    for (int i = 1; i <= 3; i++) {
        struct db *d = util_open(*state);
        assert_int_equal(db_startup(d, &meta, &e), 0);
        db_close(d);
        if (i == 1)
            first = meta;
        assert_int_equal(meta.boots, i);
        assert_string_equal(meta.cluster_uid, first.cluster_uid);
    }
    assert_int_equal(strlen(first.cluster_uid), 16);
    assert_string_equal(first.seal_key, "");
    assert_int_equal(first.counters.next_job, 1);
    assert_int_equal(first.counters.next_offer, 1);
}

static void the_same_state_is_not_opened_twice(void **state)
{
    struct db *d = util_open(*state);
    char pid[24];
    snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
    refused(*state, ERR_CONFLICT, pid);
    db_close(d);
    db_close(util_open(*state));
}

static void a_newer_schema_is_refused_and_names_the_release(void **state)
{
    db_close(util_open(*state));
    util_exec(*state, "PRAGMA user_version = 99; UPDATE meta SET belay_version = '7.5.0'");
    refused(*state, ERR_CONFIG, "install belay 7.5.0 or newer");
    util_exec(*state, "DROP TABLE meta");
    refused(*state, ERR_CONFIG, "schema 99");
    assert_int_equal(get(*state, "PRAGMA user_version"), 99);
}

static void a_file_of_something_else_is_refused_and_left_alone(void **state)
{
    static char garbage[8192];
    struct buf after = {0};
    struct err e;

    memset(garbage, 'x', sizeof(garbage));
    write_file(*state, garbage, sizeof(garbage));
    refused(*state, ERR_CORRUPT, "is not a database");
    assert_int_equal(fs_read(*state, 1 << 20, &after, &e), 0);
    assert_int_equal(after.len, sizeof(garbage));
    assert_memory_equal(after.data, garbage, sizeof(garbage));
    buf_deinit(&after);

    write_file(*state, "SQLite format 3", 16);
    refused(*state, ERR_CORRUPT, "too short");

    /* A valid magic, then garbage. */
    memcpy(garbage, "SQLite format 3", 16);
    write_file(*state, garbage, sizeof(garbage));
    refused(*state, ERR_CORRUPT, *state);
}

static void another_programs_database_is_refused(void **state)
{
    util_exec(*state, "CREATE TABLE bookmarks (url TEXT)");
    refused(*state, ERR_CORRUPT, "not belay's");
    assert_int_equal(get(*state, "SELECT count(*) FROM sqlite_schema"), 1);
}

static void a_cut_database_is_refused(void **state)
{
    db_close(util_open(*state));
    assert_int_equal(truncate(*state, 4096), 0);
    refused(*state, ERR_CORRUPT, *state);
}

static void an_interrupted_first_start_is_repeated(void **state)
{
    write_file(*state, "", 0);
    db_close(util_open(*state));
    assert_int_equal(unlink(*state), 0);
    /* Killed after the change to WAL, before the first migration. */
    util_exec(*state, "PRAGMA journal_mode = WAL");
    db_close(util_open(*state));
}

static void a_place_that_does_not_exist_is_named(void **state)
{
    char *path = mem_printf("%s.d/belay.db", (const char *)*state);
    refused(path, ERR_NOT_FOUND, path);
    free(path);

    char *dir = mem_printf("%s.dir", (const char *)*state);
    assert_int_equal(mkdir(dir, 0700), 0);
    refused(dir, ERR_IO, dir);
    free(dir);
}

/* Its versions have a different numbering: 1 is not the first released one. */
static void a_database_of_before_the_first_release_is_refused_and_left_alone(void **state)
{
    static const int versions[] = {1, 5, 99};
    char text[100];
    struct db_reader *r = NULL;
    struct err e;

    snprintf(text, sizeof(text), "PRAGMA application_id = %d; CREATE TABLE meta (one)",
        DB_APPLICATION_ID_UNRELEASED);
    util_exec(*state, text);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        snprintf(text, sizeof(text), "PRAGMA user_version = %d", versions[i]);
        util_exec(*state, text);
        refused(*state, ERR_CONFIG, "before the first release");
        refused(*state, ERR_CONFIG, "move the file away");
        refused(*state, ERR_CONFIG, *state);
        assert_int_equal(db_reader_open(*state, &r, &e), ERR_CONFIG);
        assert_non_null(strstr(e.text, "before the first release"));
        assert_null(r);
        assert_int_equal(get(*state, "PRAGMA user_version"), versions[i]);
        assert_int_equal(get(*state, "SELECT count(*) FROM sqlite_schema"), 1);
    }
}

static void a_reader_needs_a_database_of_this_schema(void **state)
{
    struct db_reader *r = NULL;
    struct err e;

    assert_int_equal(db_reader_open(*state, &r, &e), ERR_NOT_FOUND);
    db_close(util_open(*state));
    util_exec(*state, "PRAGMA user_version = 99");
    assert_int_equal(db_reader_open(*state, &r, &e), ERR_CONFIG);
    assert_null(r);
}

static void memory_needs_no_file(void **state)
{
    (void)state;
    struct db *a = util_open(":memory:"), *b = util_open(":memory:");
    assert_int_not_equal(access(":memory:.lock", F_OK), 0);
    db_close(a);
    db_close(b);
}

static int64_t rows_in_all(struct db *d)
{
    struct buf text = {0};
    int64_t n;
    struct err e;
    sqlite3_stmt *s = NULL;
    buf_adds(&text, "SELECT 0");
    assert_int_equal(sqlite3_prepare_v2(d->sql,
                         "SELECT name FROM sqlite_schema WHERE type = 'table'", -1, &s, NULL),
        SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        buf_printf(&text, " + (SELECT count(*) FROM %s)", (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    assert_int_equal(sql_get_i64(d->sql, buf_str(&text), &n, &e), 0);
    buf_deinit(&text);
    return n;
}

static void commit_a_row_of_each(struct db *d)
{
    struct db_batch b = {0};
    struct prng p;
    prng_init(&p, 1);
    for (enum table_id t = TABLE_META + 1; t < TABLE_COUNT; t++) {
        void *row = mem_alloc(row_size(t));
        fill_row(t, row, FILL_RANDOM, &p, 1);
        batch_add(&b, t, row);
        free(row);
    }
    b.changes.next_job = 9;
    util_commit(d, &b);
}

static void an_emptied_one_is_as_new_and_the_same_cluster(void **state)
{
    struct db *d = util_open(":memory:"), *other = util_open(":memory:");
    struct db_meta before, after, new;
    struct err e;
    (void)state;
    assert_int_equal(rows_in_all(other), 1);
    assert_int_equal(db_startup(d, &before, &e), 0);
    assert_int_equal(db_set_seal_key(d, &before, "0123456789abcdef", &e), 0);
    commit_a_row_of_each(d);
    assert_true(rows_in_all(d) >= TABLE_COUNT);
    assert_int_equal(db_empty(d, &e), 0);
    assert_int_equal(rows_in_all(d), 1);
    assert_int_equal(db_startup(d, &after, &e), 0);
    assert_int_equal(db_startup(other, &new, &e), 0);
    assert_string_equal(after.cluster_uid, before.cluster_uid);
    assert_string_equal(after.seal_key, "0123456789abcdef");
    assert_int_equal(after.boots, 1);
    assert_memory_equal(&after.counters, &new.counters, sizeof(new.counters));
    commit_a_row_of_each(d);
    db_close(d);
    db_close(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, util_setup, util_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_new_database_is_ours_alone_and_has_the_newest_schema),
        TEST(a_file_that_others_can_read_is_closed_to_them),
        TEST(boots_are_counted_and_identity_stays),
        TEST(the_same_state_is_not_opened_twice),
        TEST(a_newer_schema_is_refused_and_names_the_release),
        TEST(a_file_of_something_else_is_refused_and_left_alone),
        TEST(another_programs_database_is_refused),
        TEST(a_cut_database_is_refused),
        TEST(an_interrupted_first_start_is_repeated),
        TEST(a_place_that_does_not_exist_is_named),
        TEST(a_database_of_before_the_first_release_is_refused_and_left_alone),
        TEST(a_reader_needs_a_database_of_this_schema),
        TEST(memory_needs_no_file),
        TEST(an_emptied_one_is_as_new_and_the_same_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
