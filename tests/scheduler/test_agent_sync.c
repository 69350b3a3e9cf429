/* SPDX-License-Identifier: Apache-2.0
 *
 * Sync with agents: authorisation, time of responses, stale messages, restarts and full disks; lost
 * attempts, notices.
 */
#include "tests/scheduler/agent_sync_rig.h"

#include <string.h>

/* ---- authorisation ---- */

static void an_unknown_node_is_refused(void **state)
{
    struct fixture *f = *state;
    f->agent->node = 999;
    agent_send(f->agent, 0, 20000, &f->answer);
    assert_int_equal(f->answer.rc, ERR_NOT_FOUND);
    assert_non_null(strstr(f->answer.e.text, "999"));
}

static void a_node_deleted_while_it_waits_is_refused(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    lab_post(f->lab,
        (struct event){.type = EV_NODE_DELETE, .node_delete = {.node = f->agent->node}}, NULL);
    lab_tick(f->lab);
    assert_int_equal(f->answer.rc, ERR_NOT_FOUND);
}

/* ---- time of responses ---- */

static void a_status_is_answered_after_its_commit(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    f->lab->by_hand = true;
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_non_null(f->lab->under_way);
    assert_int_equal(f->answer.n, 0);
    lab_commit(f->lab, 0);
    assert_int_equal(f->answer.n, 1);
    assert_true(wall_is_set(stored_attempt(f, 1, 1).started_at));
}

static void nothing_that_is_not_on_disk_is_desired(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab); /* placed in the model; its commit is in progress */
    assert_non_null(job_attempt(job_of(f, 1)));
    agent_send(f->agent, 0, 0, &f->other); /* releases nothing, gets nothing */
    lab_advance(f->lab, 60000);            /* the wait is over meanwhile */
    assert_int_equal(f->answer.n + f->other.n, 0);
    lab_commit(f->lab, 0);
    assert_true(f->answer.n == 1 && f->other.n == 1);
    assert_int_equal(f->answer.n_scripts, 1);
}

static void while_the_disk_is_full_nothing_is_desired_at_all(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    lab_commit(f->lab, ERR_NO_SPACE);
    agent_send(f->agent, 0, 0, &f->other);
    assert_int_equal(f->other.rc, ERR_NO_SPACE);
    for (int i = 0; i < 8; i++) {
        lab_advance(f->lab, 4000);
        if (f->lab->under_way)
            lab_commit(f->lab, ERR_NO_SPACE);
    }
    assert_int_equal(f->answer.n, 1);
    assert_int_equal(f->answer.rc, ERR_NO_SPACE);
}

static void the_current_revision_waits_for_a_change_or_for_its_time(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 20000, &f->answer); /* has no revision yet */
    assert_int_equal(f->answer.n, 1);
    int64_t rev = f->answer.rev;
    agent_send(f->agent, rev, 0, &f->answer); /* does not wait */
    assert_int_equal(f->answer.n, 1);
    agent_send(f->agent, rev - 1, 20000, &f->answer); /* has an old revision */
    assert_int_equal(f->answer.n, 1);
    agent_send(f->agent, rev, 3000, &f->answer);
    lab_advance(f->lab, 2999);
    assert_int_equal(f->answer.n, 0);
    lab_advance(f->lab, 1);
    assert_int_equal(f->answer.n, 1);
    agent_send(f->agent, rev, 25000, &f->answer); /* exceeds the lease */
    lab_advance(f->lab, LAB_SYNC_MS);
    assert_int_equal(f->answer.n, 1);
    agent_send(f->agent, rev, 20000, &f->answer);
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    assert_int_equal(f->answer.n, 1);
    assert_true(f->answer.rev > rev && f->answer.n_attempts == 1);
}

static void one_poll_a_node_waits_and_a_newer_one_releases_it(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 0, &f->answer);
    int64_t rev = f->answer.rev;
    agent_send(f->agent, rev, 20000, &f->answer);
    agent_send(f->agent, rev, 20000, &f->other);
    assert_int_equal(f->answer.n, 1);
    assert_int_equal(f->other.n, 0);
    lab_advance(f->lab, LAB_SYNC_MS);
    assert_int_equal(f->other.n, 1);
    assert_int_equal(f->answer.n, 1);
}

static void at_a_stop_all_that_wait_are_answered(void **state)
{
    struct fixture *f = *state;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    agent_sync_release_all(f->lab->agent_sync);
    assert_int_equal(f->answer.rc, ERR_UNAVAILABLE);
    lab_advance(f->lab, 60000);
    assert_int_equal(f->answer.n, 1);
}

static void revisions_grow_over_a_restart(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        lab_submit(f->lab, 1, NULL);
        lab_tick(f->lab);
    }
    agent_send(f->agent, 0, 0, &f->answer);
    int64_t before = f->answer.rev;
    lab_restart(f->lab);
    agent_send(f->agent, before, 20000, &f->answer);
    assert_int_equal(f->answer.n, 1); /* its revision is from another belayd */
    assert_true(f->answer.rev > before);
}

/* ---- lost attempts ---- */

static void an_attempt_that_the_agent_lost_is_tried_again(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->n_attempts = 0; /* a wiped disk */
    f->agent->incarnation++;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_NODE_LOST);
    assert_int_equal(job_of(f, 1)->row.attempts, 2);
}

static void one_that_was_running_before_a_restart_too(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int64_t before = f->answer.rev;
    lab_restart(f->lab);
    f->agent->n_attempts = 0;
    agent_send(
        f->agent, before, 0, &f->answer); /* possibly overtaken by a status with the attempt */
    assert_int_equal(job_of(f, 1)->row.state, JOB_RUNNING);
    agent_send(f->agent, f->answer.rev, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_NODE_LOST);
}

static void an_attempt_not_yet_reported_has_not_vanished(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    for (int i = 0; i < 3; i++)
        agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job_of(f, 1)->row.attempts, 1);
    assert_int_equal(f->answer.n_scripts, 1);
}

/* ---- notices ---- */

static void a_notice_is_taken_and_a_lesser_one_after_it_is_not(void **state)
{
    struct fixture *f = *state;
    struct node *n = model_node(f->lab->model, f->agent->node);
    f->agent->notice.kind = WIRE_NOTICE_REBALANCE;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_REBALANCE);
    assert_int_equal(n->row.state, NODE_UP);
    f->agent->notice.kind = WIRE_NOTICE_RECLAIM;
    f->agent->notice.deadline = 1800000120000;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.state, NODE_NOTICED);
    assert_int_equal(n->row.notice_deadline.ms, 1800000120000);
    int commits = f->lab->n_commits;
    f->agent->notice.kind = WIRE_NOTICE_REBALANCE;
    agent_send(f->agent, 0, 0, &f->answer);
    f->agent->notice.kind = WIRE_NOTICE_UNKNOWN;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_RECLAIM);
    assert_int_equal(f->lab->n_commits, commits);
}

/* A reserved node that shut down and returned. */
static void a_notice_that_the_next_agent_does_not_know_is_over(void **state)
{
    struct fixture *f = *state;
    struct node *n = model_node(f->lab->model, f->agent->node);
    assert_int_equal(n->row.instance, CORE_ID_NONE);
    f->agent->notice.kind = WIRE_NOTICE_RECLAIM;
    f->agent->notice.deadline = 1800000120000;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.state, NODE_NOTICED);
    f->agent->notice.kind = WIRE_NOTICE_NONE;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_NONE);
    assert_int_equal(n->row.state, NODE_UP);
}

static void what_is_kept_for_a_job_is_unneeded_once_it_has_ended(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->kept[0].job = 1;
    f->agent->kept[1].job = 77; /* unknown job */
    f->agent->n_kept = 2;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 1);
    assert_int_equal(f->answer.unneeded, 77);
    f->agent->n_kept = 1;
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].end = WIRE_END_SUCCEEDED;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 1);
    assert_int_equal(f->answer.unneeded, 1);
    f->agent->n_kept = 0;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 0);
}

static void a_status_is_a_sign_of_life(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        lab_advance(f->lab, LAB_LEASE_MS - 1000);
        agent_send(f->agent, 0, 0, &f->answer);
    }
    assert_int_equal(model_node(f->lab->model, f->agent->node)->row.state, NODE_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_SYNC_TEST(an_unknown_node_is_refused),
        AGENT_SYNC_TEST(a_node_deleted_while_it_waits_is_refused),
        AGENT_SYNC_TEST(a_status_is_answered_after_its_commit),
        AGENT_SYNC_TEST(nothing_that_is_not_on_disk_is_desired),
        AGENT_SYNC_TEST(while_the_disk_is_full_nothing_is_desired_at_all),
        AGENT_SYNC_TEST(the_current_revision_waits_for_a_change_or_for_its_time),
        AGENT_SYNC_TEST(one_poll_a_node_waits_and_a_newer_one_releases_it),
        AGENT_SYNC_TEST(at_a_stop_all_that_wait_are_answered),
        AGENT_SYNC_TEST(revisions_grow_over_a_restart),
        AGENT_SYNC_TEST(an_attempt_that_the_agent_lost_is_tried_again),
        AGENT_SYNC_TEST(one_that_was_running_before_a_restart_too),
        AGENT_SYNC_TEST(an_attempt_not_yet_reported_has_not_vanished),
        AGENT_SYNC_TEST(a_notice_is_taken_and_a_lesser_one_after_it_is_not),
        AGENT_SYNC_TEST(a_notice_that_the_next_agent_does_not_know_is_over),
        AGENT_SYNC_TEST(what_is_kept_for_a_job_is_unneeded_once_it_has_ended),
        AGENT_SYNC_TEST(a_status_is_a_sign_of_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
