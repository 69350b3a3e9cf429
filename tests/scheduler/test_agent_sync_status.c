/* SPDX-License-Identifier: Apache-2.0
 *
 * Sync with agents: events derived from a status.
 */
#include "tests/scheduler/agent_sync_rig.h"

#include "base/log.h"
#include "base/str.h"
#include "scheduler/engine/agent_sync_words.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- events from a status ---- */

static void a_repeated_report_posts_nothing(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int commits = f->lab->n_commits;
    for (int i = 0; i < 3; i++)
        agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->lab->n_commits, commits);
}

static void an_older_status_is_answered_and_tells_nothing(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    struct wire_attempt_status *st = &f->agent->attempts[0];
    st->phase = WIRE_ENDED;
    st->end = WIRE_END_FAILED;
    f->agent->seq = 0; /* arrives late */
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n == 1 && f->answer.n_attempts == 1);
    f->agent->incarnation--;
    f->agent->seq = 1000;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job_of(f, 1)->row.state, JOB_RUNNING);
    f->agent->incarnation += 2;
    f->agent->seq = 0; /* a new agent starts at 0 */
    agent_send(f->agent, 0, 0, &f->answer);
    assert_null(job_of(f, 1));
}

static struct wire_checkpoint checkpoint(int64_t sequence, int64_t progress)
{
    return (struct wire_checkpoint){.sequence = sequence,
        .bytes = 1000,
        .stored_bytes = 500,
        .took_ms = 20,
        .pause_ms = WIRE_NONE,
        .progress = progress,
        .saved_at = 5000,
        .cause = WIRE_CAUSE_NOTICE};
}

static void an_end_never_hides_the_save_that_came_with_it(void **state)
{
    struct fixture *f = *state;
    struct wire_checkpoint c[] = {checkpoint(1, 10), checkpoint(2, 20)};
    run_one_job(f);
    struct wire_attempt_status *st = &f->agent->attempts[0];
    st->phase = WIRE_ENDED;
    st->end = WIRE_END_RECLAIMED;
    st->checkpoints = c;
    st->n_checkpoints = 2;
    agent_send(f->agent, 0, 0, &f->answer);
    struct job *j = job_of(f, 1);
    assert_true(j->row.last_good.attempt == 1 && j->row.last_good.sequence == 2);
    assert_int_equal(j->row.last_good_progress, 20);
    assert_int_equal(stored_attempt(f, 1, 1).sequence, 2);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_RECLAIMED);
}

static void a_requested_save_is_sent_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_SAVE, .save = {1, "ann"}}, NULL);
    lab_tick(f->lab);
    assert_true(f->answer.n == 1 && f->answer.shown[0].saves_asked == 1);
    assert_int_equal(f->answer.shown[0].want, WIRE_RUN);
    lab_restart(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].saves_asked, 1);
}

static void a_changed_time_limit_is_sent_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    const struct job_row to = {.spec.time_limit_ms = 7200000}, none = {0};
    run_one_job(f);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].limit_ms, WIRE_NO_LIMIT);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    lab_post(f->lab,
        (struct event){.type = EV_UPDATE,
            .update = {.job = 1, .by = "ann", .fields = UPDATE_BIT(UPDATE_TIME_LIMIT), .to = &to}},
        NULL);
    lab_tick(f->lab);
    /* the waiting request was answered */
    assert_true(f->answer.n == 1 && f->answer.shown[0].limit_ms == 7200000);
    lab_restart(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].limit_ms, 7200000);
    lab_post(f->lab,
        (struct event){.type = EV_UPDATE,
            .update =
                {.job = 1, .by = "ann", .fields = UPDATE_BIT(UPDATE_TIME_LIMIT), .to = &none}},
        NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].limit_ms, WIRE_NO_LIMIT);
}

static void an_automatic_interval_follows_the_last_save(void **state)
{
    struct fixture *f = *state;
    struct job_row row = {.spec.name = "job",
        .user = "ann",
        .spec.nodes = 1,
        .spec.need = {.cpus = 1},
        .spec.method = CKPT_COOP,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3};
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct wire_checkpoint c[] = {checkpoint(1, 10), checkpoint(2, 20)};
    lab_post(f->lab, (struct event){.type = EV_SUBMIT, .submit = {&row, &texts}}, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].every_ms, core_save_interval_ms(0, 0.05));
    struct wire_attempt_status *st = agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    for (size_t n = 1; n <= 2; n++) {
        st->checkpoints = c;
        st->n_checkpoints = n;
        c[n - 1].took_ms = (int64_t)n * 5000;
        agent_send(f->agent, 0, 0, &f->answer);
        assert_true(f->answer.n_scripts == 0 && f->answer.shown[0].acked == (int64_t)n);
        assert_int_equal(
            f->answer.shown[0].every_ms, core_save_interval_ms((int64_t)n * 5000, 0.05));
    }
}

/* It has not failed, so they continue: but collective operations are impossible from now on. */
static void the_other_ranks_are_notified_when_one_has_succeeded(void **state)
{
    struct fixture *f = *state;
    struct job_row row = {.spec.name = "job",
        .user = "ann",
        .spec.nodes = 2,
        .spec.need = {.cpus = 1},
        .spec.method = CKPT_COOP,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 3};
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct agent *other = agent_of(f->lab, lab_join(f->lab, "m", 4));
    lab_post(f->lab, (struct event){.type = EV_SUBMIT, .submit = {&row, &texts}}, NULL);
    lab_tick(f->lab);
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_add_attempt(other, 1, 1, WIRE_ENDED)->end = WIRE_END_SUCCEEDED;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && !f->answer.shown[0].gang_ended);
    agent_send(other, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, 0);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.shown[0].gang_ended);
    assert_int_equal(f->answer.shown[0].want, WIRE_RUN);
    free(other);
}

static void saves_are_acknowledged_by_their_sequence(void **state)
{
    struct fixture *f = *state;
    struct wire_checkpoint c[] = {checkpoint(1, WIRE_NONE), checkpoint(2, WIRE_NONE)};
    run_one_job(f);
    assert_int_equal(f->answer.shown[0].acked, 0);
    f->agent->attempts[0].checkpoints = c;
    f->agent->attempts[0].n_checkpoints = 2;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].acked, 2);
    assert_int_equal(job_of(f, 1)->row.last_good_progress, PROGRESS_NONE);
}

static void progress_is_known_at_once_and_stored_later(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int commits = f->lab->n_commits;
    f->agent->attempts[0].done = 7;
    f->agent->attempts[0].total = 9;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(job_of(f, 1)->row.progress == 7 && job_of(f, 1)->row.progress_total == 9);
    assert_int_equal(f->lab->n_commits, commits);
}

static int keep_attempt(void *ctx, const struct attempt_row *row)
{
    *(struct attempt_row *)ctx = *row;
    return 0;
}

static void what_is_used_is_known_at_once_and_stored_with_the_end(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int commits = f->lab->n_commits;
    f->agent->attempts[0].usage = (struct wire_usage){1500, 1400, 2250, 3 << 20, 4 << 20};
    agent_send(f->agent, 0, 0, &f->answer);
    const struct attempt *a = job_attempt(job_of(f, 1));
    assert_true(a->row.cpu_ms == 1500 && a->row.cpu_user_ms == 1400 && a->cpu_milli == 2250 &&
                a->memory_bytes == 3 << 20 && a->row.memory_peak == 4 << 20);
    assert_int_equal(f->lab->n_commits, commits);
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].end = WIRE_END_SUCCEEDED;
    f->agent->attempts[0].usage =
        (struct wire_usage){.cpu_ms = 1700, .cpu_user_ms = 1500, .memory_peak_bytes = 5 << 20};
    agent_send(f->agent, 0, 0, &f->answer);
    struct attempt_row stored = {0};
    struct err e;
    assert_int_equal(db_read_attempts(f->lab->reader, 1, keep_attempt, &stored, &e), 0);
    assert_true(stored.end == END_SUCCEEDED && stored.cpu_ms == 1700 &&
                stored.cpu_user_ms == 1500 && stored.memory_peak == 5 << 20);
}

struct failures {
    int saves, restores;
    char save[CORE_TEXT_MAX], restore[CORE_TEXT_MAX]; /* texts of the last ones */
};

static int count_failures(void *ctx, const struct history_row *h)
{
    struct failures *n = ctx;
    if (str_eq(h->kind, "save-failed")) {
        n->saves++;
        STR_COPY(n->save, h->text);
    } else if (str_eq(h->kind, "restore-failed")) {
        n->restores++;
        STR_COPY(n->restore, h->text);
    }
    return 0;
}

static struct failures failures_of(struct fixture *f)
{
    struct failures n = {0};
    struct err e;
    assert_int_equal(db_read_history(f->lab->reader, 1, 0, 100, count_failures, &n, &e), 0);
    return n;
}

static void a_failed_save_is_reported_once(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->attempts[0].failed_saves = 1;
    STR_COPY(f->agent->attempts[0].save_error, "the store is full");
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, 0, 0, &f->answer);
    f->agent->attempts[0].failed_saves = 2;
    agent_send(f->agent, 0, 0, &f->answer);
    lab_restart(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_false(job_attempt(job_of(f, 1))->save_failed); /* one may have been saved since */
    f->agent->attempts[0].failed_saves = 3;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(job_attempt(job_of(f, 1))->save_failed);
    assert_int_equal(failures_of(f).saves, 3);
    assert_int_equal(failures_of(f).restores, 0);
}

/* belayd was away meanwhile: an older checkpoint was resumed, and a save of it failed later. */
static void a_restore_that_failed_before_the_start_is_no_failed_save(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    struct wire_attempt_status *st = &f->agent->attempts[0];
    st->failed_saves = st->failed_restores = 1;
    STR_COPY(st->restore_error, "checkpoint 1.2 cannot be resumed here");
    STR_COPY(st->save_error, st->restore_error);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job_attempt(job_of(f, 1))->row.state, ATTEMPT_RUNNING);
    struct failures n = failures_of(f);
    if (n.saves != 0 || n.restores != 1)
        fail_msg("save-failed: %d, restore-failed: %d", n.saves, n.restores);
    assert_string_equal(n.restore, "checkpoint 1.2 cannot be resumed here");
    assert_false(job_attempt(job_of(f, 1))->save_failed);

    lab_restart(f->lab);
    st->failed_saves = 3;
    st->failed_restores = 2;
    STR_COPY(st->restore_error, "checkpoint 1.1 cannot be resumed here");
    STR_COPY(st->save_error, "the store is full");
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, 0, 0, &f->answer);
    n = failures_of(f);
    assert_int_equal(n.saves, 1);
    assert_string_equal(n.save, "the store is full");
    assert_int_equal(n.restores, 2);
    assert_string_equal(n.restore, "checkpoint 1.1 cannot be resumed here");
    assert_true(job_attempt(job_of(f, 1))->save_failed);
}

static void a_start_reported_while_stopping_counts(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_REQUEUE, .requeue = {.job = 1}}, NULL);
    lab_tick(f->lab);
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(wall_is_set(job_attempt(job_of(f, 1))->row.started_at));
}

/* Both sides use the same words, so names in rows equal those on the wire. */
static void the_wire_has_the_words_of_the_core(void **state)
{
    (void)state;
    for (int i = CKPT_NONE; ckpt_method_names[i]; i++)
        assert_string_equal(
            wire_method_names[agent_sync_method((enum ckpt_method)i)], ckpt_method_names[i]);
    for (int i = END_NONE + 1; end_kind_names[i]; i++) {
        assert_string_equal(wire_end_names[agent_sync_reason((enum end_kind)i)], end_kind_names[i]);
        assert_int_equal(agent_sync_end(agent_sync_reason((enum end_kind)i)), i);
    }
    assert_int_equal(agent_sync_reason(END_NONE), WIRE_END_NONE);
    assert_int_equal(agent_sync_end(WIRE_END_NONE), END_NONE);
    assert_int_equal(agent_sync_end(WIRE_END_UNKNOWN), END_NONE);
    for (int i = WIRE_END_NONE + 1; i < WIRE_END_UNKNOWN; i++)
        assert_string_equal(end_kind_names[agent_sync_end((enum wire_end)i)], wire_end_names[i]);
    for (int i = WIRE_NOTICE_NONE + 1; i < WIRE_NOTICE_UNKNOWN; i++)
        assert_string_equal(notice_type_names[agent_sync_notice((enum wire_notice_kind)i)],
            wire_notice_kind_names[i]);
    assert_null(notice_type_names[WIRE_NOTICE_UNKNOWN]);
    assert_int_equal(agent_sync_notice(WIRE_NOTICE_UNKNOWN), NOTICE_TYPE_NONE);
    for (int i = WIRE_CRIU_UNSAID + 1; i < WIRE_CRIU_UNKNOWN; i++)
        assert_string_equal(
            criu_ability_names[agent_sync_criu_ability((enum wire_criu)i)], wire_criu_names[i]);
    assert_null(criu_ability_names[WIRE_CRIU_UNKNOWN]);
    assert_int_equal(agent_sync_criu_ability(WIRE_CRIU_UNKNOWN), CRIU_UNKNOWN);
}

static void an_unknown_end_counts_as_failed(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].exit_code = 3;
    f->agent->attempts[0].end = WIRE_END_UNKNOWN;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_FAILED);
    assert_int_equal(stored_attempt(f, 1, 1).exit_code, 3);
}

static void what_an_agent_tells_of_others_attempts_changes_nothing(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int64_t other = lab_join(f->lab, "other", 1);
    struct agent *liar = agent_of(f->lab, other);
    struct wire_attempt_status *st = agent_add_attempt(liar, 1, 1, WIRE_ENDED);
    st->end = WIRE_END_FAILED;
    agent_add_attempt(liar, 77, 1, WIRE_RUNNING);
    agent_send(liar, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, 0);
    assert_int_equal(job_of(f, 1)->row.state, JOB_RUNNING);
    free(liar);
}

/* ---- full disks ---- */

struct lines {
    int full, space;
};

static void count_line(void *ctx, enum log_level level, const char *line)
{
    struct lines *n = ctx;
    n->full += level == LOG_WARN && strstr(line, "a node's disk is full") &&
               strstr(line, "node=n") && strstr(line, "1 MiB");
    n->space += strstr(line, "a node's disk has space again") != NULL;
}

/* With the end of the attempt that found no space, so that its job is not placed there again. */
static void a_full_disk_is_reported_with_the_end_that_it_caused_and_logged_once(void **state)
{
    struct fixture *f = *state;
    struct lines n = {0};
    log_set_sink(count_line, &n);
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    struct wire_attempt_status *st = agent_add_attempt(f->agent, 1, 1, WIRE_ENDED);
    st->started_at = WIRE_NONE;
    st->end = WIRE_END_CAPACITY;
    f->agent->disk_full = "1 MiB of 16 MiB are free";
    for (int i = 0; i < 3; i++) {
        agent_send(f->agent, 0, 0, &f->answer);
        f->agent->n_attempts = 0;
        lab_advance(f->lab, 10000);
    }
    assert_true(n.full == 1 && n.space == 0);
    assert_int_equal(job_of(f, 1)->row.state, JOB_PENDING);
    assert_int_equal(job_of(f, 1)->row.attempts, 1);
    f->agent->disk_full = NULL;
    for (int i = 0; i < 2; i++)
        agent_send(f->agent, 0, 0, &f->answer);
    assert_true(n.full == 1 && n.space == 1);
    assert_int_equal(job_of(f, 1)->row.state, JOB_RUNNING);
    assert_int_equal(job_of(f, 1)->row.attempts, 2);
    log_set_sink(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_SYNC_TEST(a_repeated_report_posts_nothing),
        AGENT_SYNC_TEST(an_older_status_is_answered_and_tells_nothing),
        AGENT_SYNC_TEST(an_end_never_hides_the_save_that_came_with_it),
        AGENT_SYNC_TEST(a_requested_save_is_sent_again_after_a_restart),
        AGENT_SYNC_TEST(a_changed_time_limit_is_sent_again_after_a_restart),
        AGENT_SYNC_TEST(an_automatic_interval_follows_the_last_save),
        AGENT_SYNC_TEST(the_other_ranks_are_notified_when_one_has_succeeded),
        AGENT_SYNC_TEST(saves_are_acknowledged_by_their_sequence),
        AGENT_SYNC_TEST(progress_is_known_at_once_and_stored_later),
        AGENT_SYNC_TEST(what_is_used_is_known_at_once_and_stored_with_the_end),
        AGENT_SYNC_TEST(a_failed_save_is_reported_once),
        AGENT_SYNC_TEST(a_restore_that_failed_before_the_start_is_no_failed_save),
        AGENT_SYNC_TEST(a_start_reported_while_stopping_counts),
        AGENT_SYNC_TEST(the_wire_has_the_words_of_the_core),
        AGENT_SYNC_TEST(an_unknown_end_counts_as_failed),
        AGENT_SYNC_TEST(what_an_agent_tells_of_others_attempts_changes_nothing),
        AGENT_SYNC_TEST(a_full_disk_is_reported_with_the_end_that_it_caused_and_logged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
