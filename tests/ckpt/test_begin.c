/* SPDX-License-Identifier: Apache-2.0
 *
 * How an attempt starts to use the store, and the owner of the store (begin.c, marker.h).
 */
#include "tests/ckpt/tools.h"

#include "base/fs.h"
#include "base/mem.h"
#include "ckpt/store/layout.h"
#include "ckpt/store/marker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UID "0123456789abcdef"
#define ANOTHER "fedcba9876543210"

static const char *const our_job = UID "-1790000000000";

static struct ckpt_expected expected(int64_t attempt, int64_t sequence)
{
    return (struct ckpt_expected){.identity = our_job, .last = {attempt, sequence}};
}

/* Fails unless ckpt_begin of `attempt` returns `kind` and this mismatch. */
static void begins(struct scratch *s, int64_t attempt, struct ckpt_expected x, int kind,
    enum ckpt_mismatch mismatch)
{
    enum ckpt_mismatch found;
    struct err e = {0};
    int rc = ckpt_begin(&s->job, attempt, &x, &found, &e);
    if (rc != kind || found != mismatch)
        fail_msg("attempt %d: %d (mismatch %d) instead of %d (%d): %s", (int)attempt, rc,
            (int)found, kind, (int)mismatch, e.text);
}

static void a_job_resumes_from_its_checkpoint(void **state)
{
    struct scratch *s = *state;

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES); /* a retry, or another rank */
    make_tree(s->tree, 1);
    save(s, 1, 1);
    begins(s, 2, expected(0, 0), 0, CKPT_MATCHES); /* it was not reported to belayd */
    begins(s, 2, expected(1, 1), 0, CKPT_MATCHES);
    make_tree(s->tree, 2);
    save(s, 2, 1);
    begins(s, 3, expected(1, 1), 0, CKPT_MATCHES); /* newer than belayd knows */
    begins(s, 2, expected(1, 1), ERR_CONFLICT, CKPT_MATCHES);
}

static void what_another_job_of_its_number_saved_is_not_taken(void **state)
{
    struct scratch *s = *state;
    struct ckpt_expected other = expected(0, 0);

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    make_tree(s->tree, 1);
    save(s, 1, 1);
    other.identity = ANOTHER "-1790000000000";
    begins(s, 1, other, ERR_CONFLICT, CKPT_ANOTHERS);
    begins(s, 2, other, ERR_CONFLICT, CKPT_ANOTHERS);
    other.from_attempt = 2;
    begins(s, 2, other, ERR_CONFLICT, CKPT_ANOTHERS);
    begins(s, 2, expected(1, 1), 0, CKPT_MATCHES);
}

/* Made by an earlier belay: only belayd can identify the owner, if it knows one of the
 * checkpoints. */
static void checkpoints_without_an_identity_are_its_own_if_belayd_knows_of_one(void **state)
{
    struct scratch *s = *state;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    begins(s, 2, expected(0, 0), ERR_CONFLICT, CKPT_ANOTHERS);
    begins(s, 2, expected(1, 2), ERR_NOT_FOUND, CKPT_LOST);
    begins(s, 2, expected(1, 1), 0, CKPT_MATCHES);
    begins(s, 2, expected(0, 0), 0, CKPT_MATCHES);
}

static void an_attempt_before_expectations_begins_as_ever(void **state)
{
    struct scratch *s = *state;
    enum ckpt_mismatch mismatch;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    OK(ckpt_begin(&s->job, 2, NULL, &mismatch, &e));
    OK(ckpt_begin(&s->job, 2, &(struct ckpt_expected){.identity = ""}, &mismatch, &e));
    assert_int_equal(find_objects(s, "identity", NULL, 0), 0);
}

static void an_emptied_store_is_noticed(void **state)
{
    struct scratch *s = *state;
    struct ckpt_expected anew = {.identity = our_job, .from_attempt = 2};
    struct err e;

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    make_tree(s->tree, 1);
    save(s, 1, 1);
    OK(fs_remove_tree(path_in(s->store, "lab/jobs/7"), &e));
    begins(s, 2, expected(1, 1), ERR_NOT_FOUND, CKPT_LOST);
    assert_int_equal(find_objects(s, "", NULL, 0), 0); /* nothing was created */
    begins(s, 2, anew, 0, CKPT_MATCHES);
}

static void one_that_was_set_aside_or_deleted_is_not_missed(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored res;
    struct err e;

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    for (int i = 1; i <= 3; i++) {
        make_tree(s->tree, i);
        save(s, 1, i);
    }
    write_text(path_in(s->store, "lab/jobs/7/manifests"), "0000000001-0000000003.json", "{");
    begins(s, 2, expected(1, 3), 0, CKPT_MATCHES);
    res = restore(s, 2);
    assert_int_equal(res.id.sequence, 2);
    assert_int_equal(res.damaged, 1);
    begins(s, 2, expected(1, 3), 0, CKPT_MATCHES); /* it is in damaged/ now */
    OK(ckpt_remove(&s->job, (struct ckpt_id){1, 2}, &e));
    begins(s, 3, expected(1, 2), 0, CKPT_MATCHES);
    bool was = false;
    OK(ckpt_was_deleted(&s->job, (struct ckpt_id){1, 2}, &was, &e));
    assert_true(was);
    OK(ckpt_was_deleted(&s->job, (struct ckpt_id){1, 3}, &was, &e));
    assert_false(was);
    begins(s, 3, expected(1, 4), ERR_NOT_FOUND, CKPT_LOST);
}

static void what_was_given_up_is_not_restored(void **state)
{
    struct scratch *s = *state;
    struct ckpt_restored res;
    struct err e;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    OK(ckpt_restore_with(
        &s->job, 3, s->out, &(struct ckpt_restore_with){.from_attempt = 2}, NULL, &res, &e));
    assert_int_equal(res.id.attempt, 0);
    make_tree(s->tree, 2);
    save(s, 2, 1);
    OK(ckpt_restore_with(
        &s->job, 3, s->out, &(struct ckpt_restore_with){.from_attempt = 2}, NULL, &res, &e));
    assert_int_equal(res.id.attempt, 2);
}

/* ---- the end ---- */

/* Fails unless closing returns `kind` and this mismatch. */
static void closes(struct scratch *s, struct ckpt_expected x, int kind, enum ckpt_mismatch mismatch)
{
    enum ckpt_mismatch found;
    struct err e = {0};
    bool closed;
    int rc = ckpt_close(&s->job, &x, &found, &e);

    if (rc != kind || found != mismatch)
        fail_msg(
            "%d (mismatch %d) instead of %d (%d): %s", rc, (int)found, kind, (int)mismatch, e.text);
    OK(ckpt_is_closed(&s->job, &closed, &e));
    assert_int_equal(closed, kind == 0);
}

static void what_another_job_of_its_number_saved_is_not_closed(void **state)
{
    struct scratch *s = *state;
    struct ckpt_expected other = expected(0, 0);

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    make_tree(s->tree, 1);
    save(s, 1, 1);
    other.identity = ANOTHER "-1790000000000";
    closes(s, other, ERR_CONFLICT, CKPT_ANOTHERS);
    other.last = (struct ckpt_id){1, 1};
    closes(s, other, ERR_CONFLICT, CKPT_ANOTHERS);
    begins(s, 2, expected(1, 1), 0, CKPT_MATCHES);
    closes(s, expected(1, 1), 0, CKPT_MATCHES);
    closes(s, expected(1, 1), 0, CKPT_MATCHES);
}

static void one_that_lost_its_last_checkpoint_is_closed_all_the_same(void **state)
{
    struct scratch *s = *state;

    begins(s, 1, expected(0, 0), 0, CKPT_MATCHES);
    make_tree(s->tree, 1);
    save(s, 1, 1);
    closes(s, expected(1, 9), 0, CKPT_MATCHES);
}

static void without_an_identity_what_belayd_does_not_know_is_not_closed(void **state)
{
    struct scratch *s = *state;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    closes(s, expected(0, 0), ERR_CONFLICT, CKPT_ANOTHERS);
    closes(s, expected(1, 2), ERR_CONFLICT, CKPT_ANOTHERS);
    closes(s, expected(1, 1), 0, CKPT_MATCHES);
}

/* The job's attempts may never have used the store. The next job with the number must not be fenced
 * without an explanation. */
static void where_nothing_is_it_is_closed_and_marked(void **state)
{
    struct scratch *s = *state;
    struct ckpt_expected other = expected(0, 0);

    closes(s, expected(1, 1), 0, CKPT_MATCHES);
    other.identity = ANOTHER "-1790000000000";
    begins(s, 1, other, ERR_CONFLICT, CKPT_ANOTHERS);
}

static void without_an_expected_owner_the_identity_is_not_checked(void **state)
{
    struct scratch *s = *state;

    make_tree(s->tree, 1);
    save(s, 1, 1);
    closes(s, (struct ckpt_expected){.identity = ""}, 0, CKPT_MATCHES);
}

/* ---- the marker ---- */

static void a_store_has_one_owner(void **state)
{
    struct scratch *s = *state;
    struct marker none, mark;
    struct err e;

    OK(marker_read(s->job.store, "lab", &none, &e));
    assert_int_equal(none.generation, 0);
    FAILS(ERR_NOT_FOUND, marker_check(s->job.store, "lab", UID, &e));
    OK(marker_write(s->job.store, "lab", &none, UID, 0, 5, &e));
    FAILS(ERR_CONFLICT, marker_write(s->job.store, "lab", &none, ANOTHER, 0, 6, &e));
    OK(marker_check(s->job.store, "lab", UID, &e));
    FAILS(ERR_DENIED, marker_check(s->job.store, "lab", ANOTHER, &e));
    FAILS(ERR_NOT_FOUND, marker_check(s->job.store, "lab2", UID, &e));
    OK(marker_read(s->job.store, "lab", &mark, &e));
    assert_string_equal(mark.uid, UID);
    assert_int_equal(mark.created_at_ms, 5);
    assert_int_equal(mark.generation, 1);
}

static void a_store_that_is_given_up_is_nobodys_until_it_is_taken(void **state)
{
    struct scratch *s = *state;
    struct marker none = {0}, mark;
    struct err e;

    OK(marker_write(s->job.store, "lab", &none, UID, 0, 5, &e));
    OK(marker_read(s->job.store, "lab", &mark, &e));
    OK(marker_write(s->job.store, "lab", &mark, "", 0, 6, &e));
    FAILS(ERR_DENIED, marker_check(s->job.store, "lab", UID, &e));
    OK(marker_read(s->job.store, "lab", &mark, &e));
    assert_string_equal(mark.uid, "");
    assert_int_equal(find_objects(s, "owner/", NULL, 0), 1); /* the earlier one is removed */
    OK(marker_write(s->job.store, "lab", &mark, ANOTHER, 0, 7, &e));
    OK(marker_check(s->job.store, "lab", ANOTHER, &e));
}

static void a_damaged_marker_is_nobodys(void **state)
{
    static const char *const bad[] = {"", "{", "[]",
        "{\"format\":1,\"uid\":\"zz\",\"created_at_ms\":1}",
        "{\"format\":2,\"uid\":\"\",\"created_at_ms\":1}",
        "{\"format\":1,\"uid\":\"0123456789abcdef0123456789abcdef0\",\"created_at_ms\":1}",
        "{\"format\":1,\"uid\":\"\",\"created_at_ms\":-1}", "{\"format\":1,\"uid\":\"01234567",
        "{\"format\":1,\"uid\":\"\",\"created_at_ms\":1}{}", "\x89PNG\r\n"};
    struct scratch *s = *state;
    char *large = mem_alloc((1 << 20) + 1);
    struct marker mark;
    struct err e;

    make_dir(s->store, "lab");
    make_dir(s->store, "lab/owner");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_text(path_in(s->store, "lab/owner"), "0000000001", bad[i]);
        FAILS(ERR_CORRUPT, marker_read(s->job.store, "lab", &mark, &e));
        FAILS(ERR_CORRUPT, marker_check(s->job.store, "lab", UID, &e));
    }
    memset(large, '{', 1 << 20);
    write_text(path_in(s->store, "lab/owner"), "0000000007", large);
    FAILS(ERR_CORRUPT, marker_read(s->job.store, "lab", &mark, &e));
    assert_int_equal(mark.generation, 7);
    FAILS(ERR_CORRUPT, marker_check(s->job.store, "lab", UID, &e));
    /* It can still be given up. */
    OK(marker_write(s->job.store, "lab", &mark, "", 0, 6, &e));
    OK(marker_read(s->job.store, "lab", &mark, &e));
    assert_int_equal(mark.generation, 8);
    free(large);
}

static void a_survey_counts_what_a_cluster_has(void **state)
{
    struct scratch *s = *state;
    struct marker_contents there;
    struct err e;

    OK(marker_survey(s->job.store, "lab", false, &there, &e));
    assert_int_equal(there.last_job, 0);
    make_tree(s->tree, 1);
    for (int64_t job = 2; job <= 12; job += 10) {
        s->job.job = job;
        save(s, 1, 1);
        save(s, 1, 2);
    }
    s->job.job = 40;
    OK(ckpt_fence(&s->job, CKPT_CLOSED, &e));
    OK(marker_survey(s->job.store, "lab", false, &there, &e));
    assert_int_equal(there.last_job, 40);
    assert_int_equal(there.jobs, 2);
    assert_int_equal(there.checkpoints, 4);
    OK(marker_survey(s->job.store, "lab", true, &there, &e));
    assert_true(there.last_job > 0);
}

static void nothing_is_committed_into_a_store_that_is_not_ours(void **state)
{
    struct scratch *s = *state;
    struct marker none = {0};
    struct ckpt_stats stats;
    struct err e;

    make_tree(s->tree, 1);
    s->job.owner = UID;
    FAILS(ERR_NOT_FOUND, ckpt_save(&s->job, (struct ckpt_id){1, 1}, s->tree, -1, NULL, &stats, &e));
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 0);
    OK(marker_write(s->job.store, "lab", &none, UID, 0, 5, &e));
    OK(ckpt_save(&s->job, (struct ckpt_id){1, 1}, s->tree, -1, NULL, &stats, &e));
    s->job.owner = ANOTHER;
    FAILS(ERR_DENIED, ckpt_save(&s->job, (struct ckpt_id){1, 2}, s->tree, -1, NULL, &stats, &e));
}

/* A mount that disappears: an open store writes only to the directory that it opened. */
static void a_store_is_what_was_opened(void **state)
{
    struct scratch *s = *state;
    char away[320];
    struct store *again;
    struct err e;

    snprintf(away, sizeof(away), "%s.away", s->store);
    assert_int_equal(rename(s->store, away), 0);
    OK(s->job.store->ops->create(s->job.store, "lab/x", "x", 1, &e));
    assert_false(fs_exists(s->store));
    assert_true(fs_exists(path_in(away, "lab/x")));
    FAILS(ERR_CONFLICT, s->job.store->ops->create(s->job.store, "lab/x", "x", 1, &e));
    assert_non_null(strstr(e.text, s->store)); /* by the path given by the user */
    char *url = path_in("file://", s->store + 1);
    FAILS(ERR_NOT_FOUND, store_open(url, &(struct store_options){.existing = true}, &again, &e));
    assert_false(fs_exists(s->store));
    assert_int_equal(rename(away, s->store), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_job_resumes_from_its_checkpoint, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            what_another_job_of_its_number_saved_is_not_taken, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            checkpoints_without_an_identity_are_its_own_if_belayd_knows_of_one, scratch_setup,
            scratch_teardown),
        cmocka_unit_test_setup_teardown(
            an_attempt_before_expectations_begins_as_ever, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            an_emptied_store_is_noticed, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            one_that_was_set_aside_or_deleted_is_not_missed, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            what_was_given_up_is_not_restored, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            what_another_job_of_its_number_saved_is_not_closed, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(one_that_lost_its_last_checkpoint_is_closed_all_the_same,
            scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(without_an_identity_what_belayd_does_not_know_is_not_closed,
            scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            where_nothing_is_it_is_closed_and_marked, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            without_an_expected_owner_the_identity_is_not_checked, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_store_has_one_owner, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_store_that_is_given_up_is_nobodys_until_it_is_taken, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_damaged_marker_is_nobodys, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_survey_counts_what_a_cluster_has, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            nothing_is_committed_into_a_store_that_is_not_ours, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(
            a_store_is_what_was_opened, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
