/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of ended jobs.
 */
#include "tests/core/lab.h"

#include "base/str.h"

#define DAY 86400000LL

/* With a retention of 7 days. */
static void init(struct lab *l)
{
    struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = LAB_LEASE_MS, .retention_ms = 7 * DAY};
    lab_init(l);
    model_destroy(l->m);
    l->m = model_create(&o);
    struct pool_row base = {.name = "base", .max_nodes = 100};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

static int64_t ended_job(struct lab *l, enum ckpt_after after, enum end_kind end)
{
    struct job_row row = lab_job(1);
    row.spec.ckpt_after = after;
    row.spec.retries.n[RETRY_FAILED] = 0;
    int64_t job = lab_submit(l, &row);
    struct event ev;
    while (lab_decision(l, &ev))
        lab_apply(l, ev);
    lab_started(l, job);
    lab_saved(l, job, 1, 10);
    lab_ended(l, job, end, end == END_SUCCEEDED ? 0 : 1);
    return job;
}

static bool cleans(struct lab *l, int64_t job)
{
    struct event ev;
    if (!lab_decision(l, &ev))
        return false;
    assert_int_equal(ev.type, EV_CLEAN);
    assert_int_equal(ev.clean.job, job);
    lab_apply(l, ev);
    assert_non_null(model_cleaning(l->m));
    assert_int_equal(model_cleaning(l->m)->job, job);
    return true;
}

static void cleaned(struct lab *l, int64_t job)
{
    lab_apply(l, (struct event){.type = EV_CLEANED, .cleaned.job = job});
    assert_null(model_cleaning(l->m));
}

static void failed(struct lab *l, int64_t job)
{
    struct event ev = {.type = EV_CLEANED, .cleaned = {.job = job, .end = CLEAN_FAILED}};
    STR_COPY(ev.cleaned.text, "no answer");
    lab_apply(l, ev);
}

static int64_t left(const struct lab *l)
{
    struct model_counts c;
    model_counts(l->m, &c);
    return c.ckpt_gc;
}

static const struct ckpt_gc_row *last_row(struct lab *l)
{
    lab_take(l);
    assert_true(l->c.n_ckpt_gc > 0);
    return &l->c.ckpt_gc[l->c.n_ckpt_gc - 1];
}

static void the_requested_checkpoints_stay(void **state)
{
    (void)state;
    static const struct {
        enum ckpt_after after;
        enum end_kind end;
        enum ckpt_gc_keep at_once, later;
        bool comes_again;
    } cases[] = {
        {AFTER_AUTO, END_SUCCEEDED, CKPT_GC_KEEP_ALL, CKPT_GC_KEEP_NONE, true},
        {AFTER_AUTO, END_FAILED, CKPT_GC_KEEP_ALL, CKPT_GC_KEEP_LAST, true},
        {AFTER_AUTO, END_TIMEOUT, CKPT_GC_KEEP_ALL, CKPT_GC_KEEP_LAST, true},
        {AFTER_DELETE, END_SUCCEEDED, CKPT_GC_KEEP_NONE, 0, false},
        {AFTER_DELETE, END_FAILED, CKPT_GC_KEEP_LAST, 0, false},
        {AFTER_LAST, END_SUCCEEDED, CKPT_GC_KEEP_LAST, 0, false},
        {AFTER_LAST, END_FAILED, CKPT_GC_KEEP_LAST, 0, false},
        {AFTER_ALL, END_SUCCEEDED, CKPT_GC_KEEP_ALL, 0, false},
        {AFTER_ALL, END_FAILED, CKPT_GC_KEEP_ALL, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab l;
        struct event ev;
        init(&l);
        int64_t node = lab_join(&l, "n1", 4);
        int64_t job = ended_job(&l, cases[i].after, cases[i].end);
        /* it needs no lease */
        lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = node});
        assert_true(cleans(&l, job)); /* at once: its store is closed */
        assert_int_equal(core_ckpt_gc_keep(model_cleaning(l.m)), cases[i].at_once);
        cleaned(&l, job);
        assert_int_equal(left(&l), cases[i].comes_again);
        assert_int_equal(
            last_row(&l)->state, cases[i].comes_again ? CKPT_GC_WAITING : CKPT_GC_DONE);
        lab_wait(&l, 7 * DAY - 1);
        assert_false(lab_decision(&l, &ev));
        lab_wait(&l, 1);
        assert_int_equal(cleans(&l, job), cases[i].comes_again);
        if (cases[i].comes_again) {
            assert_int_equal(core_ckpt_gc_keep(model_cleaning(l.m)), cases[i].later);
            cleaned(&l, job);
        }
        assert_int_equal(left(&l), 0);
        assert_false(lab_decision(&l, &ev));
        lab_deinit(&l);
    }
}

static void a_job_that_has_nothing_in_the_store_leaves_nothing(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    init(&l);
    struct job_row row = lab_job(1);
    int64_t job = lab_submit(&l, &row);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = job}); /* before it ran */
    lab_join(&l, "n1", 4);
    row.spec.method = CKPT_NONE;
    job = lab_submit(&l, &row);
    lab_plan(&l);
    lab_started(&l, job);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    assert_int_equal(left(&l), 0);
    assert_false(lab_decision(&l, &ev));
    lab_deinit(&l);
}

/* An ended job never runs again: cleaned data cannot be needed. */
static void an_ended_job_cannot_be_queued_again_and_a_queued_one_is_not_cleaned(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    init(&l);
    lab_join(&l, "n1", 4);
    struct job_row row = lab_job(1);
    row.spec.ckpt_after = AFTER_DELETE;
    int64_t job = lab_submit(&l, &row);
    lab_plan(&l);
    lab_started(&l, job);
    lab_saved(&l, job, 1, 10);
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue.job = job});
    lab_ended(&l, job, END_CANCELLED, 85);
    assert_int_equal(left(&l), 0);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_PLACE);
    lab_apply(&l, ev);
    lab_started(&l, job);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    for (int cleaning = 0; cleaning < 3; cleaning++) {
        ev = (struct event){.type = EV_REQUEUE, .requeue.job = job};
        assert_int_equal(lab_try(&l, &ev, NULL), ERR_NOT_FOUND);
        if (cleaning == 0)
            assert_true(cleans(&l, job));
        else if (cleaning == 1)
            cleaned(&l, job);
    }
    lab_deinit(&l);
}

static void one_at_a_time_the_longest_due_first(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    init(&l);
    lab_join(&l, "n1", 4);
    int64_t first = ended_job(&l, AFTER_DELETE, END_SUCCEEDED);
    lab_wait(&l, 1000);
    assert_true(cleans(&l, first));
    int64_t second = ended_job(&l, AFTER_DELETE, END_SUCCEEDED);
    assert_false(lab_decision(&l, &ev));
    ev = (struct event){.type = EV_CLEAN, .clean.job = second};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    cleaned(&l, first);
    cleaned(&l, first); /* reported twice */
    assert_true(cleans(&l, second));
    lab_deinit(&l);
}

static void a_cleaning_that_fails_is_tried_again_later_and_not_for_ever(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    int n_rows = 0, tries = 0;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    int64_t job = ended_job(&l, AFTER_LAST, END_SUCCEEDED);
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = node});
    lab_take(&l);
    while (left(&l) > 0) {
        assert_true(cleans(&l, job));
        lab_wait(&l, 1000);
        failed(&l, job);
        lab_take(&l);
        n_rows += lab_history(&l, "clean-failed") != NULL;
        if (left(&l) == 0)
            break;
        assert_false(lab_decision(&l, &ev));
        int64_t due = l.c.ckpt_gc[l.c.n_ckpt_gc - 1].due_at.ms - l.now.wall.ms;
        assert_in_range(due, 60000, DAY);
        lab_wait(&l, due);
        assert_in_range(++tries, 1, 100);
    }
    assert_int_equal(tries, 39);
    assert_int_equal(n_rows, 2); /* the first time and the last */
    lab_deinit(&l);
}

/* A copy of the database was restored, and the number was issued twice. */
static void another_jobs_checkpoints_are_left_alone(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    int64_t job = ended_job(&l, AFTER_AUTO, END_FAILED);
    lab_apply(&l, (struct event){.type = EV_NODE_DELETE, .node_delete.node = node});
    assert_true(cleans(&l, job));
    ev = (struct event){.type = EV_CLEANED, .cleaned = {.job = job, .end = CLEAN_OTHER_JOB}};
    STR_COPY(ev.cleaned.text, "it is another's");
    lab_take(&l);
    lab_apply(&l, ev);
    assert_int_equal(last_row(&l)->state, CKPT_GC_DONE);
    assert_non_null(lab_history(&l, "clean-failed"));
    assert_null(lab_history(&l, "cleaned"));
    assert_int_equal(left(&l), 0);
    lab_wait(&l, 30 * DAY);
    assert_false(lab_decision(&l, &ev));
    lab_deinit(&l);
}

static void the_cleaning_knows_the_identity_of_the_attempts(void **state)
{
    (void)state;
    struct lab l;
    struct ckpt_known known;
    char identity[CKPT_IDENTITY_MAX];
    init(&l);
    lab_join(&l, "n1", 4);
    struct wall submitted_at = l.now.wall;
    int64_t job = ended_job(&l, AFTER_AUTO, END_FAILED);
    core_ckpt_identity("0123456789abcdef", submitted_at, identity);
    model_ckpt_gc_known(l.m, job, &known);
    assert_string_equal(known.identity, identity);
    assert_int_equal(known.last.attempt, 1);
    assert_int_equal(known.last.sequence, 1);
    lab_deinit(&l);
}

static void it_is_loaded_as_it_was(void **state)
{
    (void)state;
    struct lab l;
    struct err e;
    struct ckpt_gc_row rows[] = {
        {.job = 1,
            .state = CKPT_GC_WAITING,
            .due_at = {1000},
            .last_at = WALL_NONE,
            .after = AFTER_ALL},
        {.job = 2,
            .state = CKPT_GC_CLEANING,
            .due_at = {1},
            .last_at = WALL_NONE,
            .after = AFTER_DELETE},
        {.job = 3, .state = CKPT_GC_CLEANING, .due_at = {1}, .last_at = WALL_NONE},
        {.job = 4, .state = CKPT_GC_DONE},
        {.job = 1, .state = CKPT_GC_WAITING, .last_at = WALL_NONE},
    };
    struct model_counters next = {10, 1, 1, 1, 1};
    lab_init(&l);
    for (int i = 0; i < 5; i++)
        assert_int_equal(model_load_ckpt_gc(l.m, &rows[i], &e), i < 2 ? 0 : ERR_CORRUPT);
    assert_int_equal(model_load_end(l.m, &next, &e), 0);
    assert_int_equal(model_cleaning(l.m)->job, 2);
    cleaned(&l, 2);
    assert_true(cleans(&l, 1));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_requested_checkpoints_stay),
        cmocka_unit_test(a_job_that_has_nothing_in_the_store_leaves_nothing),
        cmocka_unit_test(an_ended_job_cannot_be_queued_again_and_a_queued_one_is_not_cleaned),
        cmocka_unit_test(one_at_a_time_the_longest_due_first),
        cmocka_unit_test(a_cleaning_that_fails_is_tried_again_later_and_not_for_ever),
        cmocka_unit_test(another_jobs_checkpoints_are_left_alone),
        cmocka_unit_test(the_cleaning_knows_the_identity_of_the_attempts),
        cmocka_unit_test(it_is_loaded_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
