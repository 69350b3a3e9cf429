/* SPDX-License-Identifier: Apache-2.0
 *
 * Old output of jobs is removed, and no other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/db.h"
#include "scheduler/retention.h"
#include <stdio.h>
#include <stdlib.h>

#define DAY_MS 86400000LL
#define NOW_MS (30000 * DAY_MS)

static struct err e;

static void write_output(const char *top, int64_t job)
{
    char *dir = mem_printf("%s/logs/%lld/%lld", top, (long long)(job / 1000), (long long)job);
    char *path = mem_printf("%s/1.log", dir);
    assert_int_equal(fs_mkdirs(dir, 0700, &e), 0);
    assert_int_equal(fs_write_atomic(path, "text\n", 5, 0600, &e), 0);
    free(dir);
    free(path);
}

static bool has_output(const char *top, int64_t job)
{
    char *path =
        mem_printf("%s/logs/%lld/%lld/1.log", top, (long long)(job / 1000), (long long)job);
    bool has = fs_exists(path);
    free(path);
    return has;
}

static void add_job(struct db *d, int64_t id, enum job_state state, int64_t ended_ms)
{
    struct job_row j = {.id = id,
        .state = state,
        .submitted_at = {NOW_MS - 500 * DAY_MS},
        .ended_at = state == JOB_ENDED ? (struct wall){ended_ms} : WALL_NONE};
    struct db_batch b = {0};
    b.changes.jobs = mem_dup(&j, sizeof(j));
    b.changes.n_jobs = 1;
    b.changes.next_job = id + 1;
    assert_int_equal(db_commit(d, &b, &e), 0);
    db_batch_deinit(&b);
}

static void only_output_of_old_and_of_deleted_jobs_is_removed(void **state)
{
    char dir[] = "/tmp/belay-retention-XXXXXX";
    struct db *d;
    struct db_reader *r;
    atomic_int cancel = 0;
    int64_t removed = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    char *path = mem_printf("%s/belay.db", dir), *logs = mem_printf("%s/logs", dir);
    assert_int_equal(db_open(path, &d, &e), 0);
    add_job(d, 1, JOB_ENDED, NOW_MS - 450 * DAY_MS); /* is deleted */
    struct db_batch prune = {
        .prune = {.is_due = true, .now = {NOW_MS}, .age_ms = {[PRUNE_JOBS] = 400 * DAY_MS}}};
    assert_int_equal(db_commit(d, &prune, &e), 0);
    add_job(d, 2, JOB_ENDED, NOW_MS - 100 * DAY_MS);
    add_job(d, 3, JOB_ENDED, NOW_MS - 10 * DAY_MS);
    add_job(d, 2004, JOB_RUNNING, 0);
    for (int64_t id = 1; id <= 4; id++)
        write_output(dir, id < 4 ? id : 2004);
    write_output(dir, 5000); /* of a job that this copy of the database does not have */
    assert_int_equal(db_reader_open(path, &r, &e), 0);
    assert_int_equal(retention_remove_output(r, logs, WALL_NONE, &cancel, &removed, &e), 0);
    assert_int_equal(removed, 1);
    assert_false(has_output(dir, 1));
    assert_true(has_output(dir, 2));
    const struct wall before = {NOW_MS - 90 * DAY_MS};
    assert_int_equal(retention_remove_output(r, logs, before, &cancel, &removed, &e), 0);
    assert_int_equal(removed, 2);
    assert_false(has_output(dir, 2));
    assert_true(has_output(dir, 3) && has_output(dir, 2004) && has_output(dir, 5000));
    cancel = 1;
    assert_int_equal(retention_remove_output(r, logs, (struct wall){NOW_MS}, &cancel, &removed, &e),
        ERR_CANCELLED);
    assert_true(has_output(dir, 3));
    db_reader_close(r);
    db_close(d);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
    free(path);
    free(logs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_output_of_old_and_of_deleted_jobs_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
