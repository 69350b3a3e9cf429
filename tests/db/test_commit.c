/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits: all or nothing, under every injected failure.
 */
#include "tests/db/util.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* One row of every type, keyed by key. */
static struct db_batch batch_of_everything(int64_t key)
{
    struct db_batch b = {0};
    struct prng p;

    prng_init(&p, (uint64_t)key);
    for (int t = TABLE_META + 1; t < TABLE_COUNT; t++) {
        void *row = mem_alloc(row_size(t));
        fill_row(t, row, FILL_RANDOM, &p, key);
        if (t == TABLE_JOBS) /* the sums of ended jobs are a step more */
            ((struct job_row *)row)->state = JOB_RUNNING;
        batch_add(&b, t, row);
        free(row);
    }
    b.changes.next_job = b.changes.next_node = b.changes.next_instance = key + 1;
    b.changes.next_history = b.changes.next_offer = key + 1;
    return b;
}

static int64_t rows_in_all(struct db *d)
{
    int64_t n = 0;
    for (int t = TABLE_META + 1; t < TABLE_COUNT; t++)
        n += count_rows(d, t);
    return n;
}

static struct db_meta meta_of(struct db *d)
{
    struct db_meta meta = {0};
    struct err e;
    assert_int_equal(db_startup(d, &meta, &e), 0);
    return meta;
}

static void any_failed_step_leaves_nothing_and_a_retry_succeeds(void **state)
{
    static const struct {
        int code, kind;
    } faults[] = {{SQLITE_FULL, ERR_NO_SPACE}, {SQLITE_IOERR, ERR_IO}, {SQLITE_BUSY, ERR_IO}};
    (void)state;

    for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
        int n = 1;
        for (bool done = false; !done; n++) {
            struct db *d = util_open(":memory:");
            struct db_batch before = batch_of_everything(1), b = batch_of_everything(10);
            struct err e = {0};
            util_commit(d, &before);
            int64_t rows = rows_in_all(d);

            db_fail_at(d, n, faults[f].code);
            int rc = db_commit(d, &b, &e);
            done = rc == 0;
            if (!done) {
                assert_int_equal(rc, faults[f].kind);
                assert_int_equal(e.kind, faults[f].kind);
                assert_true(e.text[0]);
                assert_int_equal(rows_in_all(d), rows);
                assert_int_equal(meta_of(d).counters.next_job, 2);
                assert_int_equal(db_commit(d, &b, &e), 0);
            }
            assert_int_equal(rows_in_all(d), 2 * rows);
            assert_int_equal(meta_of(d).counters.next_job, 11);
            db_fail_at(d, 0, 0);
            db_batch_deinit(&b);
            db_close(d);
        }
        /* begin, one step per type, the labels with their set and owner, the daily sums, the
         * counters, commit */
        assert_int_equal(n - 1, 1 + (TABLE_COUNT - 1) + 1 + 2 + 1 + 1 + 1 + 1);
    }
}

static void counters_never_go_down(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {.changes = {.next_job = 5, .next_history = 9}};
    struct db_batch empty = {0};

    util_commit(d, &b);
    util_commit(d, &empty);
    struct db_meta meta = meta_of(d);
    assert_int_equal(meta.counters.next_job, 5);
    assert_int_equal(meta.counters.next_history, 9);
    assert_int_equal(meta.counters.next_node, 1);
    db_close(d);
}

static int note_job(void *ctx, const struct job_row *row)
{
    *(int64_t *)ctx = row->id;
    return 1;
}

static void a_reader_sees_only_what_is_committed(void **state)
{
    struct db *d = util_open(*state);
    struct db_reader *r = util_reader(*state);
    struct db_batch b = {0};
    struct job_filter any = {.limit = 10};
    int64_t seen = 0;
    struct err e;

    batch_add_submit(&b, 1);
    /* Written, but stopped before its COMMIT. */
    assert_int_equal(sql_exec(d->sql,
                         "BEGIN IMMEDIATE; UPDATE meta SET next_job = 77; INSERT INTO job_specs "
                         "(job) VALUES (9)",
                         &e),
        0);
    struct spec_change spec;
    assert_int_equal(db_read_spec(r, 9, &spec, &e), ERR_NOT_FOUND);
    assert_int_equal(sql_exec(d->sql, "ROLLBACK", &e), 0);

    db_fail_at(d, 5, SQLITE_FULL);
    assert_int_equal(db_commit(d, &b, &e), ERR_NO_SPACE);
    assert_int_equal(db_read_jobs(r, &any, note_job, &seen, NULL, &e), 0);
    assert_int_equal(seen, 0);

    util_commit(d, &b);
    assert_int_equal(db_read_jobs(r, &any, note_job, &seen, NULL, &e), 0);
    assert_int_equal(seen, 1);
    db_reader_close(r);
    db_close(d);
}

static void a_commit_succeeds_while_a_reader_is_reading(void **state)
{
    struct db *d = util_open(*state);
    struct db_batch b = {0};
    sqlite3 *other;
    sqlite3_stmt *s;

    batch_add_submit(&b, 1);
    util_commit(d, &b);
    assert_int_equal(sqlite3_open(*state, &other), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(other, "SELECT id FROM jobs", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    batch_add_submit(&b, 2);
    util_commit(d, &b);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    sqlite3_close(other);
    db_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failed_step_leaves_nothing_and_a_retry_succeeds),
        cmocka_unit_test_setup_teardown(counters_never_go_down, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_reader_sees_only_what_is_committed, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_commit_succeeds_while_a_reader_is_reading, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
