/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer thread: reported commits are durable, and each wakes the loop.
 */
#include "tests/db/util.h"

#include <errno.h>
#include <semaphore.h>
#include <string.h>

static void wake(void *ctx)
{
    sem_post(ctx);
}

static void wait_for(sem_t *woken)
{
    while (sem_wait(woken) != 0)
        assert_int_equal(errno, EINTR);
}

static int count_job(void *ctx, const struct job_row *row)
{
    (void)row;
    *(int *)ctx += 1;
    return 0;
}

static int jobs_seen(struct db_reader *r)
{
    struct job_filter any = {.limit = 1000};
    struct err e;
    int n = 0;
    assert_int_equal(db_read_jobs(r, &any, count_job, &n, NULL, &e), 0);
    return n;
}

static void each_commit_wakes_once_and_is_visible_then(void **state)
{
    sem_t woken;
    sem_init(&woken, 0, 0);
    struct db_writer *w = db_writer_create(util_open(*state), wake, &woken);
    struct db_reader *r = util_reader(*state);
    struct err e;
    int rc;

    assert_false(db_writer_finished(w, &rc, &e));
    for (int i = 1; i <= 50; i++) {
        struct db_batch b = {0};
        batch_add_submit(&b, i);
        db_writer_start(w, &b);
        wait_for(&woken);
        rc = -1;
        assert_true(db_writer_finished(w, &rc, &e));
        assert_int_equal(rc, 0);
        assert_false(db_writer_finished(w, &rc, &e));
        assert_int_equal(jobs_seen(r), i);
        db_batch_deinit(&b);
    }
    int left;
    sem_getvalue(&woken, &left);
    assert_int_equal(left, 0);
    db_reader_close(r);
    db_writer_destroy(w);
    sem_destroy(&woken);
}

static void a_failure_comes_back_with_its_words_and_a_retry_works(void **state)
{
    sem_t woken;
    sem_init(&woken, 0, 0);
    struct db *d = util_open(*state);
    db_fail_at(d, 3, SQLITE_FULL);
    struct db_writer *w = db_writer_create(d, wake, &woken);
    struct db_batch b = {0};
    struct err e = {0};
    int rc = 0;

    batch_add_submit(&b, 1);
    db_writer_start(w, &b);
    wait_for(&woken);
    assert_true(db_writer_finished(w, &rc, &e));
    assert_int_equal(rc, ERR_NO_SPACE);
    assert_non_null(strstr(e.text, "space"));
    db_writer_start(w, &b);
    wait_for(&woken);
    assert_true(db_writer_finished(w, &rc, &e));
    assert_int_equal(rc, 0);
    db_batch_deinit(&b);
    db_writer_destroy(w);
    sem_destroy(&woken);
}

static void destroying_waits_for_the_commit_under_way(void **state)
{
    sem_t woken;
    sem_init(&woken, 0, 0);
    for (int i = 1; i <= 20; i++) {
        struct db_batch b = {0};
        struct db_writer *w = db_writer_create(util_open(*state), wake, &woken);
        batch_add_submit(&b, i);
        db_writer_start(w, &b);
        db_writer_destroy(w);
        db_batch_deinit(&b);
        struct db_reader *r = util_reader(*state);
        assert_int_equal(jobs_seen(r), i);
        db_reader_close(r);
    }
    db_writer_destroy(NULL);
    sem_destroy(&woken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            each_commit_wakes_once_and_is_visible_then, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            a_failure_comes_back_with_its_words_and_a_retry_works, util_setup, util_teardown),
        cmocka_unit_test_setup_teardown(
            destroying_waits_for_the_commit_under_way, util_setup, util_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
