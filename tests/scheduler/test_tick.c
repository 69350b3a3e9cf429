/* SPDX-License-Identifier: Apache-2.0
 *
 * The tick: nothing leaves before its commit; a full disk refuses and recovers; any other failure
 * is fatal.
 */
#include "tests/scheduler/lab.h"

#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static struct job *job(struct lab *lab, int64_t id)
{
    return model_job(lab->model, id);
}

/* ---- durable before visible ---- */

static void a_reply_comes_after_its_commit_and_once(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r = {0};
    lab->by_hand = true;
    lab_submit(lab, 1, &r);
    assert_int_equal(r.n, 0); /* never inside tick_post */
    lab_tick(lab);
    assert_non_null(lab->under_way);
    assert_int_equal(r.n, 0);
    assert_int_equal(lab->n_effects, 0);
    lab_commit(lab, 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.at_commit, 1);
    assert_int_equal(r.id, 1);
    assert_int_equal(lab->n_effects, 1);
    assert_null(lab->under_way);
}

static void what_was_answered_is_in_the_database(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r = {0};
    struct job_row row;
    struct spec_change spec;
    struct err e;
    lab_submit(lab, 3, &r);
    lab_tick(lab);
    assert_int_equal(db_read_job(lab->reader, r.id, &row, &e), 0);
    assert_int_equal(row.spec.need.cpus, 3);
    assert_string_equal(row.user, "ann");
    assert_int_equal(db_read_spec(lab->reader, r.id, &spec, &e), 0);
    assert_string_equal(spec.script, "#!/bin/sh\ntrue\n");
    spec_change_deinit(&spec);
}

static void posts_of_one_tick_share_one_commit_and_keep_their_order(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r[50] = {0};
    lab->by_hand = true;
    for (int i = 0; i < 50; i++)
        lab_submit(lab, 1, &r[i]);
    lab_tick(lab);
    lab_commit(lab, 0);
    assert_int_equal(lab->n_commits, 1);
    for (int i = 0; i < 50; i++)
        assert_true(r[i].n == 1 && r[i].id == i + 1);
}

static void posts_during_a_commit_wait_for_the_next_and_do_not_touch_the_model(void **state)
{
    struct lab *lab = *state;
    struct lab_reply first = {0}, second = {0};
    lab->by_hand = true;
    lab_submit(lab, 1, &first);
    lab_tick(lab);
    lab_submit(lab, 1, &second);
    lab_advance(lab, 5000);
    assert_non_null(job(lab, 1));
    assert_null(job(lab, 2));
    assert_int_equal(first.n + second.n, 0);
    lab_commit(lab, 0);
    assert_int_equal(first.n, 1);
    assert_int_equal(second.n, 0);
    assert_non_null(job(lab, 2)); /* posted events are applied at once */
    lab_commit(lab, 0);
    assert_int_equal(second.n, 1);
    assert_int_equal(second.at_commit, 2);
}

static void a_refused_event_has_the_reason_and_changes_nothing(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r = {0};
    lab->by_hand = true;
    lab_post(lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 77}}, &r);
    lab_tick(lab);
    assert_int_equal(r.n, 1); /* nothing to commit: answered at once */
    assert_int_equal(r.rc, ERR_NOT_FOUND);
    assert_non_null(strstr(r.e.text, "77"));
    assert_null(lab->under_way);
}

static void what_is_only_in_memory_needs_no_commit(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r = {0};
    int64_t node = lab_join(lab, "n", 1);
    lab->by_hand = true;
    lab_post(lab, (struct event){.type = EV_HEARTBEAT, .heartbeat = {.node = node}}, &r);
    lab_tick(lab);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.rc, 0);
    assert_null(lab->under_way);
}

/* ---- scheduling of work ---- */

struct work {
    struct lab *lab;
    int runs;
    size_t tokens;
};

static int put_two_tokens(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct work *w = ctx;
    struct token_row row = {.created_at = {1}, .expires_at = WALL_NONE, .used_at = WALL_NONE};
    (void)e;
    w->runs++;
    STR_COPY(row.hash, "one");
    tick_put_token(t, &row);
    STR_COPY(row.hash, "two");
    tick_put_token(t, &row);
    tick_tokens(t, &w->tokens);
    *ret_id = 42;
    return 0;
}

static int fail_it(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    (void)ctx, (void)t, (void)ret_id;
    return err_set(e, ERR_DENIED, "no");
}

struct work_reply {
    struct work work;
    struct lab_reply reply;
};

static void on_work(void *ctx, const struct err *e, int64_t id)
{
    struct work_reply *w = ctx;
    lab_on_reply(&w->reply, e, id);
}

static void work_runs_in_the_tick_and_is_answered_after_its_commit(void **state)
{
    struct lab *lab = *state;
    struct work_reply w = {.work = {.lab = lab}, .reply = {.lab = lab}};
    struct token_row stored;
    struct err e;
    lab->by_hand = true;
    tick_post_work(lab->tick, put_two_tokens, on_work, &w);
    assert_int_equal(w.work.runs, 0);
    lab_tick(lab);
    assert_int_equal(w.work.runs, 1);
    assert_int_equal(w.work.tokens, 2);
    assert_int_equal(w.reply.n, 0);
    lab_commit(lab, 0);
    assert_int_equal(w.reply.n, 1);
    assert_int_equal(w.reply.id, 42);
    assert_int_equal(db_read_token_by_hash(lab->reader, "two", &stored, &e), 0);
    size_t n;
    tick_tokens(lab->tick, &n);
    assert_int_equal(n, 0);
}

static void work_that_fails_is_answered_with_its_error(void **state)
{
    struct lab *lab = *state;
    struct work_reply w = {.reply = {.lab = lab}};
    tick_post_work(lab->tick, fail_it, on_work, &w);
    lab_tick(lab);
    assert_int_equal(w.reply.n, 1);
    assert_int_equal(w.reply.rc, ERR_DENIED);
}

static void when_durable_waits_for_the_commit_under_way_and_for_what_its_tick_decides(void **state)
{
    struct lab *lab = *state;
    struct lab_reply submit = {0}, durable = {.lab = lab};
    lab->by_hand = true;
    lab_submit(lab, 1, &submit);
    lab_tick(lab);
    tick_when_durable(lab->tick, lab_on_reply, &durable);
    lab_tick(lab);
    assert_int_equal(durable.n, 0);
    lab_commit(lab, 0);
    assert_int_equal(durable.n, 1);
    assert_int_equal(durable.rc, 0);
}

/* ---- decisions ---- */

static void decisions_of_a_tick_are_in_its_commit(void **state)
{
    struct lab *lab = *state;
    struct attempt_row a = {0};
    struct lab_reply r = {0};
    lab_join(lab, "n", 4);
    lab->by_hand = true;
    lab_submit(lab, 1, &r);
    lab_tick(lab);
    assert_int_equal(lab->under_way->changes.n_attempts, 1);
    a = lab->under_way->changes.attempts[0];
    assert_true(a.job == 1 && a.attempt == 1);
    lab_commit(lab, 0);
}

static void time_alone_makes_a_tick_when_a_lease_is_over(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 4);
    lab_advance(lab, LAB_LEASE_MS - 1);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_UP);
    lab_advance(lab, 2);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_LOST);
}

static void no_node_is_lost_because_belayd_was_stopped(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 4);
    vtimers_stall(&lab->vt, 2 * LAB_LEASE_MS);
    lab_tick(lab);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_UP);
    lab_advance(lab, LAB_LEASE_MS - 1);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_UP);
    lab_advance(lab, 2);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_LOST);
}

/* ---- a full disk ---- */

static void a_full_disk_keeps_the_batch_and_refuses_what_is_new(void **state)
{
    static struct lab_reply kept; /* answered when the tick is destroyed, after the test */
    struct lab *lab = *state;
    struct lab_reply waiting = {0}, new = {0}, heartbeat = {0};
    lab->by_hand = true;
    lab_submit(lab, 1, &kept);
    lab_tick(lab);
    lab_submit(lab, 1, &waiting);
    lab_commit(lab, ERR_NO_SPACE);
    assert_true(tick_is_full(lab->tick));
    assert_int_equal(kept.n, 0); /* in the batch: its outcome is open */
    assert_int_equal(waiting.rc, ERR_NO_SPACE);
    assert_non_null(strstr(waiting.e.text, "free some space"));
    lab_submit(lab, 1, &new);
    lab_post(lab, (struct event){.type = EV_HEARTBEAT, .heartbeat = {.node = 1}}, &heartbeat);
    lab_tick(lab);
    assert_int_equal(new.rc, ERR_NO_SPACE);
    assert_int_equal(heartbeat.rc, ERR_NO_SPACE);
    assert_null(job(lab, 2));
    assert_int_equal(lab->n_effects, 0);
    assert_int_equal(lab->n_fatal, 0);
}

static void it_is_tried_again_until_there_is_space_and_then_all_goes_on(void **state)
{
    struct lab *lab = *state;
    struct lab_reply kept = {0}, new = {0};
    struct job_row row;
    struct err e;
    static const int64_t waits_ms[] = {1000, 2000, 4000, 5000, 5000};
    lab->by_hand = true;
    lab_submit(lab, 1, &kept);
    lab_tick(lab);
    const struct db_batch *batch = lab->under_way;
    lab_commit(lab, ERR_NO_SPACE);
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        lab_advance(lab, waits_ms[i] - 1);
        assert_null(lab->under_way);
        lab_advance(lab, 1);
        assert_ptr_equal(lab->under_way, batch);
        if (i < 4)
            lab_commit(lab, ERR_NO_SPACE);
    }
    lab_submit(lab, 1, &new); /* during the retry: it may still succeed */
    lab_tick(lab);
    assert_int_equal(new.n, 0);
    lab_commit(lab, 0);
    assert_false(tick_is_full(lab->tick));
    assert_int_equal(kept.n, 1);
    assert_int_equal(kept.rc, 0);
    assert_int_equal(lab->n_effects, 1);
    lab_commit(lab, 0);
    assert_int_equal(new.rc, 0);
    assert_int_equal(db_read_job(lab->reader, kept.id, &row, &e), 0);
    assert_int_equal(db_read_job(lab->reader, new.id, &row, &e), 0);
}

/* Heartbeats were refused meanwhile: that is not a fault of the nodes. */
static void no_node_is_lost_because_the_disk_was_full_for_long(void **state)
{
    struct lab *lab = *state;
    struct lab_reply r = {0};
    int64_t node = lab_join(lab, "n", 1);
    lab->by_hand = true;
    lab_submit(lab, 1, &r);
    lab_tick(lab);
    lab_commit(lab, ERR_NO_SPACE);
    for (int i = 0; i < 20; i++) {
        lab_advance(lab, 5000);
        if (lab->under_way)
            lab_commit(lab, i < 19 ? ERR_NO_SPACE : 0);
    }
    lab->by_hand = false;
    if (lab->under_way)
        lab_commit(lab, 0);
    assert_false(tick_is_full(lab->tick));
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_UP);
    assert_int_equal(job(lab, 1)->row.state, JOB_RUNNING);
    lab_advance(lab, LAB_LEASE_MS - 1);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_UP);
    lab_advance(lab, 2);
    assert_int_equal(model_node(lab->model, node)->row.state, NODE_LOST);
}

/* ---- any other failure ---- */

static void any_other_failed_commit_is_fatal_and_nothing_leaves(void **state)
{
    static const enum err_kind kinds[] = {ERR_IO, ERR_CORRUPT, ERR_TIMEOUT, ERR_INTERNAL};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        void *fresh;
        struct lab_reply r = {0};
        lab_setup(&fresh);
        struct lab *lab = fresh;
        lab->by_hand = true;
        lab_submit(lab, 1, &r);
        lab_tick(lab);
        lab_commit(lab, kinds[i]);
        assert_int_equal(lab->n_fatal, 1);
        assert_int_equal(lab->fatal.kind, kinds[i]);
        assert_int_equal(lab->n_effects, 0);
        assert_int_equal(r.n, 0);
        lab_teardown(&fresh);
    }
}

/* ---- ends and restarts ---- */

static void a_waiter_at_the_end_gets_an_unknown_outcome(void **state)
{
    struct lab *lab = *state;
    struct lab_reply under_way = {0}, waiting = {0};
    lab->by_hand = true;
    lab_submit(lab, 1, &under_way);
    lab_tick(lab);
    lab_submit(lab, 1, &waiting);
    tick_destroy(lab->tick);
    lab->tick = NULL;
    assert_int_equal(under_way.rc, ERR_UNAVAILABLE);
    assert_int_equal(waiting.rc, ERR_UNAVAILABLE);
    assert_int_equal(under_way.n + waiting.n, 2);
}

static void numbers_go_on_after_a_restart(void **state)
{
    struct lab *lab = *state;
    struct lab_reply a = {0}, lost = {0}, b = {0};
    lab_submit(lab, 1, &a);
    lab_tick(lab);
    lab->by_hand = true;
    lab_submit(lab, 1, &lost); /* dies with its commit in progress, unanswered */
    lab_tick(lab);
    lab->by_hand = false;
    lab_restart(lab);
    assert_int_equal(lost.rc, ERR_UNAVAILABLE);
    assert_non_null(job(lab, 1));
    assert_null(job(lab, 2));
    lab_submit(lab, 1, &b);
    lab_tick(lab);
    assert_int_equal(b.id, 2); /* that number was never reported */
}

static void statistics_count_what_happened(void **state)
{
    struct lab *lab = *state;
    struct tick_stats s0, s;
    tick_get_stats(lab->tick, &s0);
    lab->by_hand = true;
    lab_submit(lab, 1, NULL);
    lab_submit(lab, 1, NULL);
    lab_tick(lab);
    lab_advance(lab, 30);
    lab_commit(lab, 0);
    tick_get_stats(lab->tick, &s);
    assert_int_equal(s.commits - s0.commits, 1);
    assert_int_equal(s.events - s0.events, 2);
    assert_true(s.commit_seconds.sum - s0.commit_seconds.sum > 0.0299);
    assert_true(s.commit_seconds.sum - s0.commit_seconds.sum < 0.0301);
    assert_int_equal(histogram_count(&s.commit_seconds), s.commits);
    assert_int_equal(s.inbox_max, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_comes_after_its_commit_and_once),
        TEST(what_was_answered_is_in_the_database),
        TEST(posts_of_one_tick_share_one_commit_and_keep_their_order),
        TEST(posts_during_a_commit_wait_for_the_next_and_do_not_touch_the_model),
        TEST(a_refused_event_has_the_reason_and_changes_nothing),
        TEST(what_is_only_in_memory_needs_no_commit),
        TEST(work_runs_in_the_tick_and_is_answered_after_its_commit),
        TEST(work_that_fails_is_answered_with_its_error),
        TEST(when_durable_waits_for_the_commit_under_way_and_for_what_its_tick_decides),
        TEST(decisions_of_a_tick_are_in_its_commit),
        TEST(time_alone_makes_a_tick_when_a_lease_is_over),
        TEST(no_node_is_lost_because_belayd_was_stopped),
        TEST(a_full_disk_keeps_the_batch_and_refuses_what_is_new),
        TEST(it_is_tried_again_until_there_is_space_and_then_all_goes_on),
        TEST(no_node_is_lost_because_the_disk_was_full_for_long),
        cmocka_unit_test(any_other_failed_commit_is_fatal_and_nothing_leaves),
        TEST(a_waiter_at_the_end_gets_an_unknown_outcome),
        TEST(numbers_go_on_after_a_restart),
        TEST(statistics_count_what_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
