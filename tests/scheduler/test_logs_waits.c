/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of jobs: what is awaited after an end, and what is on disk.
 */
#include "tests/scheduler/logs_rig.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* ---- the end arrives before the last output ---- */

static void a_log_is_not_complete_while_output_is_awaited(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc");
    logs_await(&w->logs, JOB, 1, 0, 6);
    logs_await(&w->logs, JOB, 1, 0, 6);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_check(w, "abc", false);
    logs_rig_append(w, 1, 3, "de");
    logs_rig_check(w, "abcde", false);
    logs_rig_append(w, 1, 5, "f");
    logs_rig_check(w, "abcdef", true);
}

static void nothing_is_awaited_of_who_wrote_nothing_or_shipped_all(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_await(&w->logs, JOB, 1, 0, 0);
    logs_rig_check(w, "", true);
    logs_rig_append(w, 1, 0, "abc");
    logs_await(&w->logs, JOB, 1, 0, 3);
    logs_rig_check(w, "abc", true);
}

static void what_is_awaited_comes_before_the_next_attempts_seam(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc");
    logs_await(&w->logs, JOB, 1, 0, 6);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    logs_rig_append(w, 2, 0, "second\n");
    logs_rig_check(w, "abc", false);
    assert_int_equal(logs_rig_append(w, 1, 3, "de\n"), 6);
    logs_rig_check(
        w, "abcde\n---- belay: attempt 2 on node 12, from the beginning ----\nsecond\n", true);
}

static void it_is_awaited_for_a_while_only(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc\n");
    logs_await(&w->logs, JOB, 1, 0, 1000);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    vtimers_advance(&w->vt, LOGS_AWAIT_MS - 1);
    logs_rig_check(w, "abc\n", false);
    assert_int_equal(w->n_over, 0);
    vtimers_advance(&w->vt, 1);
    assert_int_equal(w->n_over, 1); /* readers that follow the log are notified */
    logs_rig_check(w, "abc\n---- belay: attempt 2 on node 12, from the beginning ----\n", true);
    assert_int_equal(logs_rig_append(w, 1, 4, "late\n"), 9); /* closed now */
    logs_rig_check(w, "abc\n---- belay: attempt 2 on node 12, from the beginning ----\n", true);
}

static void output_that_keeps_coming_is_awaited_however_long_it_takes(void **state)
{
    struct logs_rig *w = *state;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc\n");
    logs_await(&w->logs, JOB, 1, 0, 12);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    vtimers_advance(&w->vt, LOGS_AWAIT_MS - 1);
    assert_int_equal(logs_rig_append(w, 1, 4, "def\n"), 8);
    vtimers_advance(&w->vt, LOGS_AWAIT_MS - 1);
    logs_rig_check(w, "abc\ndef\n", false);
    assert_int_equal(logs_rig_append(w, 1, 8, "ghi\n"), 12);
    logs_rig_check(w, "abc\ndef\nghi\n", true);
    vtimers_advance(&w->vt, 2 * LOGS_AWAIT_MS);
    assert_int_equal(w->n_over, 0);
}

static bool small_space(void *ctx, struct log_space *ret_space)
{
    const int64_t *free_bytes = ctx;
    *ret_space = (struct log_space){.total = 8000 << 10, .free = *free_bytes};
    return true;
}

static void output_that_an_agent_was_asked_to_keep_is_awaited_longer(void **state)
{
    struct logs_rig *w = *state;
    int64_t free_bytes = 2000 << 10, size = -1;
    struct err e;
    log_disk_set_source(w->logs.disk, small_space, &free_bytes);
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    assert_int_equal(logs_rig_append(w, 1, 0, "abc\n"), 4);
    logs_await(&w->logs, JOB, 1, 0, 8);
    logs_rig_put(w, 1, ATTEMPT_ENDED);
    logs_rig_put(w, 2, ATTEMPT_RUNNING);
    free_bytes = 1000 << 10; /* the reserve */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(
            logs_append(&w->logs, w->reader, JOB, 1, 0, 4, "def\n", 4, &size, &e), ERR_NO_SPACE);
        assert_non_null(strstr(e.text, "keeps the output of job 1042 for now"));
        vtimers_advance(&w->vt, LOGS_AWAIT_KEPT_MS - 1);
    }
    assert_true(log_disk_is_low(w->logs.disk));
    assert_int_equal(logs_rig_append(w, 1, 0, ""), 4); /* a query needs no space */
    logs_rig_check(w, "abc\n", false);
    assert_int_equal(w->n_over, 0);
    free_bytes = 2000 << 10;
    assert_int_equal(logs_rig_append(w, 1, 4, "def\n"), 8);
    logs_rig_check(
        w, "abc\ndef\n---- belay: attempt 2 on node 12, from the beginning ----\n", true);
    free_bytes = 4000 << 10;
    vtimers_advance(&w->vt, LOG_DISK_CHECK_MS);
    assert_false(log_disk_is_low(w->logs.disk));
}

#define FULL_WAIT_MS 300000

/* One of two users has 8000 KiB of output on a disk with a reserve of 1000 KiB. */
static void fill_with_loud(struct logs_rig *w, int64_t *free_bytes)
{
    struct err e;
    struct db *owners;
    struct log_disk *d = w->logs.disk;
    char *path = mem_printf("%s/belay.db", w->dir);
    if (db_open(path, &owners, &e) != 0)
        fail_msg("%s", e.text);
    db_close(owners);
    log_disk_set_source(d, small_space, free_bytes);
    log_disk_set(d, path, FULL_WAIT_MS);
    *free_bytes = 2900 << 10;
    assert_int_equal(log_disk_judge(d, "loud", 0, 1000), LOG_STORE);
    uv_run(&w->loop, UV_RUN_DEFAULT); /* it is counted by user */
    log_disk_stored(d, "loud", 0, 8000 << 10);
    log_disk_stored(d, "quiet", 0, 1000);
    free(path);
}

/* Asks about n bytes of a user above their share. */
static enum log_verdict judge_loud(struct logs_rig *w, int64_t n)
{
    return log_disk_judge(w->logs.disk, "loud", 8000 << 10, n);
}

static void a_full_disk_that_had_space_is_waited_for_again(void **state)
{
    struct logs_rig *w = *state;
    int64_t free_bytes;
    fill_with_loud(w, &free_bytes);
    free_bytes = 1900 << 10;
    assert_int_equal(judge_loud(w, 1000), LOG_KEEP);
    vtimers_advance(&w->vt, FULL_WAIT_MS - 1);
    assert_int_equal(judge_loud(w, 1000), LOG_KEEP);
    vtimers_advance(&w->vt, 1);
    assert_int_equal(judge_loud(w, 1000), LOG_CUT);
    free_bytes = 2400 << 10;
    assert_int_equal(judge_loud(w, 1000), LOG_STORE);
    vtimers_advance(&w->vt, SECONDS_MS(3600));
    assert_false(log_disk_is_low(w->logs.disk));
    assert_int_equal(judge_loud(w, 1000), LOG_STORE);
    free_bytes = 1900 << 10;
    assert_int_equal(judge_loud(w, 1000), LOG_KEEP);
    assert_true(log_disk_is_low(w->logs.disk));
    vtimers_advance(&w->vt, FULL_WAIT_MS - 1);
    assert_int_equal(judge_loud(w, 1000), LOG_KEEP);
    vtimers_advance(&w->vt, 1);
    assert_int_equal(judge_loud(w, 1000), LOG_CUT);
}

/* Otherwise output would be kept for ever where free space changes around the limit. */
static void space_that_is_too_little_or_does_not_last_ends_no_wait(void **state)
{
    struct logs_rig *w = *state;
    int64_t free_bytes;
    fill_with_loud(w, &free_bytes);
    free_bytes = 1900 << 10;
    assert_int_equal(judge_loud(w, 10000), LOG_KEEP);
    free_bytes = (2000 << 10) + 5000; /* less than is kept */
    assert_int_equal(judge_loud(w, 1000), LOG_STORE);
    vtimers_advance(&w->vt, FULL_WAIT_MS);
    assert_int_equal(judge_loud(w, 10000), LOG_CUT);
    free_bytes = 2400 << 10;
    assert_int_equal(judge_loud(w, 10000), LOG_STORE);
    vtimers_advance(&w->vt, LOG_DISK_CHECK_MS - 1);
    assert_int_equal(judge_loud(w, 10000), LOG_STORE);
    assert_true(log_disk_is_low(w->logs.disk));
    free_bytes = 1900 << 10;
    assert_int_equal(judge_loud(w, 10000), LOG_CUT);
}

static void closing_ends_what_is_awaited(void **state)
{
    struct logs_rig *w = *state;
    int64_t due;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_await(&w->logs, JOB, 1, 0, 12);
    logs_await(&w->logs, JOB, 1, 0, 12);
    logs_await(&w->logs, JOB, 2, 0, 12);
    assert_true(vtimers_next(&w->vt, &due));
    logs_close(&w->logs);
    assert_false(vtimers_next(&w->vt, &due));
}

/* ---- on disk ---- */

struct wakeup {
    int n;
    enum err_kind kind;
};

static void on_synced(void *ctx, const struct err *e)
{
    struct wakeup *t = ctx;
    t->n++;
    t->kind = e ? e->kind : 0;
}

static void what_was_written_is_on_disk_a_second_later(void **state)
{
    struct logs_rig *w = *state;
    int64_t due;
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    assert_true(logs_is_synced(&w->logs, JOB, 1, 0));
    for (int i = 0; i < 1000; i++)
        logs_rig_append(w, 1, 2 * i, "a\n");
    vtimers_advance(&w->vt, SYNCER_PAUSE_MS - 1);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_false(logs_is_synced(&w->logs, JOB, 1, 0));
    vtimers_advance(&w->vt, 1);
    logs_rig_append(w, 1, 2000, "b\n"); /* while a round is on its thread: belongs to the next */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_false(logs_is_synced(&w->logs, JOB, 1, 0));
    vtimers_advance(&w->vt, SYNCER_PAUSE_MS);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(logs_is_synced(&w->logs, JOB, 1, 0));
    assert_false(vtimers_next(&w->vt, &due));
}

static void a_waiter_is_notified_when_earlier_writes_are_durable(void **state)
{
    struct logs_rig *w = *state;
    struct wakeup first = {0}, second = {0}, none = {0};
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc\n");
    syncer_wait(w->logs.syncer, on_synced, &first);
    logs_rig_append(w, 1, 4, "def\n");
    syncer_wait(w->logs.syncer, on_synced, &second);
    assert_int_equal(first.n + second.n, 0);
    uv_run(&w->loop, UV_RUN_DEFAULT); /* no time has passed */
    assert_int_equal(first.n, 1);
    assert_int_equal(second.n, 1);
    assert_int_equal(first.kind + second.kind, 0);
    assert_true(logs_is_synced(&w->logs, JOB, 1, 0));
    syncer_wait(w->logs.syncer, on_synced, &none); /* nothing was written */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(none.n, 1);
}

/* More files than are synced one by one; some are deleted by then, or are not files. */
static void many_at_once_and_what_is_gone(void **state)
{
    struct logs_rig *w = *state;
    struct wakeup t = {0};
    for (int n = 3; n <= 100; n += 97) {
        for (int i = 0; i < n; i++) {
            char *path = mem_printf("%s/none/%d.log", w->dir, i);
            syncer_written(w->logs.syncer, path, i % 2 == 0);
            free(path);
        }
        syncer_wait(w->logs.syncer, on_synced, &t);
        uv_run(&w->loop, UV_RUN_DEFAULT);
        assert_int_equal(t.kind, 0);
    }
    assert_int_equal(t.n, 2);
    syncer_written(w->logs.syncer, "/dev/null", false); /* it cannot be synced */
    syncer_wait(w->logs.syncer, on_synced, &t);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(t.n, 3);
    assert_int_not_equal(t.kind, 0);
}

static void a_waiter_is_notified_of_the_end(void **state)
{
    struct logs_rig *w = *state;
    struct wakeup now = {0}, next = {0};
    logs_rig_put(w, 1, ATTEMPT_RUNNING);
    logs_rig_append(w, 1, 0, "abc\n");
    syncer_wait(w->logs.syncer, on_synced, &now);
    logs_rig_append(w, 1, 4, "def\n");
    syncer_wait(w->logs.syncer, on_synced, &next);
    logs_close(&w->logs); /* in the middle of a round */
    assert_int_equal(now.n, 1);
    assert_int_equal(now.kind, ERR_UNAVAILABLE);
    assert_int_equal(next.n, 1);
    assert_int_equal(next.kind, ERR_UNAVAILABLE);
}

static void output_of_an_ended_job_is_closed_after_a_while(void **state)
{
    struct logs_rig *w = *state;
    struct attempt_row a = logs_rig_row(1, ATTEMPT_RUNNING);
    logs_rig_put_row(w, a);
    assert_true(logs_is_open(&w->logs, &a, true));
    a.state = ATTEMPT_ENDED;
    a.ended_at = clock_wall(w->vt.timers.clock);
    logs_rig_put_row(w, a);
    assert_true(logs_is_open(&w->logs, &a, false));
    vtimers_advance(&w->vt, LOGS_LATE_MS - 1);
    assert_true(logs_is_open(&w->logs, &a, false));
    vtimers_advance(&w->vt, 1);
    assert_false(logs_is_open(&w->logs, &a, false));
    assert_true(logs_is_open(&w->logs, &a, true)); /* the next attempt closes it */
    logs_await(&w->logs, JOB, 1, 0, 10);
    assert_true(logs_is_open(&w->logs, &a, false));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, logs_rig_setup, logs_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(output_of_an_ended_job_is_closed_after_a_while),
        TEST(a_log_is_not_complete_while_output_is_awaited),
        TEST(nothing_is_awaited_of_who_wrote_nothing_or_shipped_all),
        TEST(what_is_awaited_comes_before_the_next_attempts_seam),
        TEST(it_is_awaited_for_a_while_only),
        TEST(output_that_keeps_coming_is_awaited_however_long_it_takes),
        TEST(output_that_an_agent_was_asked_to_keep_is_awaited_longer),
        TEST(a_full_disk_that_had_space_is_waited_for_again),
        TEST(space_that_is_too_little_or_does_not_last_ends_no_wait),
        TEST(closing_ends_what_is_awaited),
        TEST(what_was_written_is_on_disk_a_second_later),
        TEST(a_waiter_is_notified_when_earlier_writes_are_durable),
        TEST(many_at_once_and_what_is_gone),
        TEST(a_waiter_is_notified_of_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
