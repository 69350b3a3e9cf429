/* SPDX-License-Identifier: Apache-2.0
 *
 * Sync with agents: desired state and secrets for agents, and messages at their size limit.
 */
#include "tests/scheduler/agent_sync_rig.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* ---- desired state ---- */

static void the_texts_of_a_job_are_sent_until_the_agent_tells_it(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    for (int i = 0; i < 2; i++) {
        agent_send(f->agent, 0, 0, &f->answer); /* the first response may have been lost */
        assert_true(f->answer.n_attempts == 1 && f->answer.n_scripts == 1);
        assert_int_equal(f->answer.shown[0].want, WIRE_RUN);
    }
    agent_add_attempt(f->agent, 1, 1, WIRE_STARTING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.n_scripts == 0);
    lab_restart(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.n_scripts == 0);
}

/* ---- secrets ---- */

static struct wire_secrets secrets_of(int64_t version)
{
    static char key[] = KEY, *keys[] = {key};
    return (struct wire_secrets){
        .version = version, .checkpoint_keys = keys, .n_checkpoint_keys = 1, .encrypts = true};
}

static void secrets_are_sent_until_the_agent_tells_their_version(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets = secrets_of(7);
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    for (int i = 0; i < 2; i++) {
        agent_send(f->agent, 0, 0, &f->answer);
        assert_true(f->answer.shown[0].secrets == 7 && f->answer.shown[0].needs_secrets);
    }
    struct wire_attempt_status *desired = agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer); /* it has the texts, and lost the secrets */
    assert_true(f->answer.n_scripts == 0 && f->answer.shown[0].secrets == 7);
    desired->secrets = 7;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 0);
    f->agent->incarnation++; /* a restarted agent has a record of the attempt, but no secrets */
    desired->secrets = 0;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 7);
}

static void other_secrets_replace_those_that_the_agent_has(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets = secrets_of(7);
    run_one_job(f);
    f->agent->attempts[0].secrets = 7;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    f->lab->secrets.version = 8;
    agent_sync_touch(f->lab->agent_sync, f->agent->node);
    assert_true(f->answer.n == 1 && f->answer.shown[0].secrets == 8);
    /* an attempt to be saved and stopped also needs them */
    lab_post(f->lab, (struct event){.type = EV_DRAIN, .drain = {.node = f->agent->node}}, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 8);
}

static void an_attempt_waits_for_its_secrets_but_what_the_agent_has_is_not_taken_back(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    f->lab->secrets_late = false;
    f->lab->secrets = secrets_of(7);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    agent_sync_touch(f->lab->agent_sync, f->agent->node);
    assert_true(f->answer.n_scripts == 1 && f->answer.shown[0].secrets == 7);
    f->lab->secrets_late = true; /* the next version: the response may have been lost, or not */
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_scripts == 1 && f->answer.shown[0].needs_secrets &&
                f->answer.shown[0].secrets == 0);
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.shown[0].secrets == 0);
}

static const struct attempt *attempt_of(struct fixture *f)
{
    return job_attempt(job_of(f, 1));
}

static void what_waits_for_its_secrets_is_withheld_until_the_agent_may_have_it(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer); /* requested */
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    err_set(&f->lab->secrets_why, ERR_DENIED, "403 of the token service");
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
    assert_string_equal(stored_attempt(f, 1, 1).text, "403 of the token service");
    int n = f->lab->n_commits;
    agent_send(f->agent, 0, 0, &f->answer); /* already reported */
    assert_int_equal(f->lab->n_commits, n);
    lab_restart(f->lab);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
    f->lab->secrets_late = false;
    f->lab->secrets = secrets_of(7);
    f->lab->secrets_why = (struct err){0};
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    f->lab->secrets_late = true; /* the response may have arrived */
    err_set(&f->lab->secrets_why, ERR_UNAVAILABLE, "no answer");
    agent_send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_scripts == 1 && attempt_of(f)->withheld == WITHHELD_NO);
}

/* The answer to its agent is decided before the deadline: exactly one of the two takes effect. */
static void a_withheld_attempt_that_is_due_is_never_sent_as_well(void **state)
{
    for (int given = 0; given < 2; given++) {
        struct fixture *f;
        void *fresh = NULL;
        if (given) {
            agent_sync_teardown(state);
            agent_sync_setup(&fresh);
            *state = fresh;
        }
        f = *state;
        f->lab->secrets_late = true;
        err_set(&f->lab->secrets_why, ERR_DENIED, "403");
        lab_submit(f->lab, 1, NULL);
        lab_tick(f->lab);
        agent_send(f->agent, 0, 0, &f->answer);
        for (int s = 0; s < 119; s++) {
            lab_advance(f->lab, 1000);
            agent_send(f->agent, 0, 0, &f->answer);
        }
        assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
        f->lab->secrets_late = !given;
        agent_send(f->agent, 0, 0, &f->answer);
        assert_int_equal(f->answer.n_scripts, given);
        lab_advance(f->lab, 2000);
        assert_int_equal(job_of(f, 1)->row.end, given ? END_NONE : END_STORE_AWAY);
        assert_int_equal(attempt_of(f) != NULL, given);
    }
}

static void an_attempt_that_needs_a_store_which_cannot_be_used_is_withheld(void **state)
{
    struct fixture *f = *state;
    f->lab->store_fault = "the store has lost its marker";
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_AWAY);
    assert_string_equal(stored_attempt(f, 1, 1).text, "the store has lost its marker");
    f->lab->store_fault = NULL;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
}

/* It needs no secrets: its agent only reports its end. */
static void a_cancelled_withheld_attempt_is_sent_without_secrets(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    f->lab->store_fault = "the store has lost its marker";
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1, .by = "ann"}}, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 1);
    assert_int_equal(f->answer.shown[0].want, WIRE_STOP);
    assert_int_equal(f->answer.shown[0].secrets, 0);
    assert_false(f->answer.shown[0].needs_secrets);
    agent_add_attempt(f->agent, 1, 1, WIRE_ENDED)->end = WIRE_END_CANCELLED;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_null(job_of(f, 1));
}

static void check_texts(void *ctx, const struct err *e, const struct wire_desired *d)
{
    int *n = ctx;
    assert_null(e);
    const struct wire_desired_attempt *a = &d->attempts[0];
    assert_string_equal(a->script, "#!/bin/sh\n#SBATCH -c 1\n");
    assert_true(a->slurm_env);
    assert_string_equal(a->cluster, "lab");
    assert_string_equal(a->pool, "base");
    assert_int_equal(a->n_args, 2);
    assert_string_equal(a->args[0], "a");
    assert_string_equal(a->args[1], "");
    assert_int_equal(a->n_env, 1);
    assert_string_equal(a->env[0].name, "K");
    assert_string_equal(a->env[0].value, "v");
    assert_string_equal(a->cwd, "/data");
    assert_int_equal(a->method, WIRE_METHOD_SIGNAL);
    assert_int_equal(a->ckpt_every_ms, 60000);
    assert_int_equal(a->options.ckpt_keep, 3);
    assert_string_equal(a->user, "ann");
    assert_int_equal(d->lease_ms, LAB_LEASE_MS);
    ++*n;
}

static void everything_that_starts_a_job_is_in_the_message(void **state)
{
    struct fixture *f = *state;
    struct wire_status st = {.incarnation = 1, .seq = 1, .notice.deadline = WIRE_NONE};
    int n = 0;
    lab_submit_script(f->lab, "#!/bin/sh\n#SBATCH -c 1\n");
    lab_tick(f->lab);
    agent_sync_status(f->lab->agent_sync, f->agent->node, &st, check_texts, &n);
    lab_tick(f->lab);
    assert_int_equal(n, 1);
}

static void a_cancelled_attempt_is_to_stop_and_a_requeued_one_to_save_first(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    lab_post(
        f->lab, (struct event){.type = EV_REQUEUE, .requeue = {.job = 1, .force = true}}, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].want, WIRE_SAVE_STOP);
    assert_int_equal(f->answer.shown[0].reason, WIRE_END_CANCELLED);
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1}}, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].want, WIRE_STOP);
}

static void an_end_that_is_known_is_not_desired_any_more(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->n_attempts = 0;
    struct wire_attempt_status *st = agent_add_attempt(f->agent, 1, 1, WIRE_ENDED);
    st->end = WIRE_END_SUCCEEDED;
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_null(job_of(f, 1));
    assert_int_equal(stored_attempt(f, 1, 1).end, END_SUCCEEDED);
}

static void a_job_whose_texts_are_lost_fails_and_says_so(void **state)
{
    struct fixture *f = *state;
    struct db_reader *reader = f->lab->reader;
    struct db *empty;
    struct job_row row;
    struct err e;
    assert_int_equal(db_open(":memory:", &empty, &e), 0);
    assert_int_equal(db_reader_of(empty, &f->lab->reader, &e), 0);
    agent_sync_destroy(f->lab->agent_sync);
    lab_add_agent_sync(f->lab);
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    db_reader_close(f->lab->reader);
    db_close(empty);
    f->lab->reader = reader;
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(db_read_job(f->lab->reader, 1, &row, &e), 0);
    assert_int_equal(row.state, JOB_ENDED);
    assert_int_equal(row.end, END_FAILED);
}

/* ---- size limits of messages ---- */

static bool answer_has(const struct answer *a, int64_t job_id)
{
    for (size_t i = 0; i < a->n_attempts; i++)
        if (a->shown[i].job == job_id)
            return true;
    return false;
}

static void large_scripts_come_in_several_messages_and_none_is_taken_back(void **state)
{
    struct fixture *f = *state;
    enum { JOBS = 40, BYTES = 400000 };
    char *script = mem_alloc(BYTES + 1);
    bool desired[JOBS + 1] = {false};
    int messages = 0, n_desired = 0;
    int64_t rev = 0;
    free(f->agent);
    f->agent = agent_of(f->lab, lab_join(f->lab, "big", JOBS + 4));
    memset(script, '\n', BYTES);
    memcpy(script, "#!", 2);
    lab_post(f->lab, (struct event){.type = EV_DRAIN, .drain = {.node = 1}}, NULL);
    for (int i = 0; i < JOBS; i++)
        lab_submit_script(f->lab, script);
    lab_tick(f->lab);
    while (n_desired < JOBS && messages < 2 * JOBS) {
        agent_send(f->agent, rev, 20000, &f->answer); /* would wait, but more is left */
        assert_int_equal(f->answer.n, 1);
        assert_true(f->answer.bytes < WIRE_MESSAGE_MAX);
        assert_true(f->answer.n_scripts > 0);
        for (int i = 1; i <= JOBS; i++)
            /* omitting one would kill it */
            assert_true(!desired[i] || answer_has(&f->answer, i));
        if (messages++ % 3 == 0)
            continue; /* this response was lost: it is repeated */
        rev = f->answer.rev;
        for (size_t i = 0; i < f->answer.n_attempts; i++) {
            int64_t id = f->answer.shown[i].job;
            if (!desired[id])
                agent_add_attempt(f->agent, id, 1, WIRE_STARTING);
            n_desired += !desired[id];
            desired[id] = true;
        }
    }
    assert_int_equal(n_desired, JOBS);
    assert_true(messages > 4);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0); /* now it waits */
    free(script);
}

static void more_attempts_than_a_message_takes_are_no_bug(void **state)
{
    struct fixture *f = *state;
    enum { JOBS = WIRE_ATTEMPTS_MAX + 100 };
    free(f->agent);
    f->agent = agent_of(f->lab, lab_join(f->lab, "huge", JOBS + 4));
    lab_post(f->lab, (struct event){.type = EV_DRAIN, .drain = {.node = 1}}, NULL);
    for (int i = 0; i < JOBS; i++)
        lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, WIRE_ATTEMPTS_MAX);
    for (size_t i = 0; i < f->answer.n_attempts; i++)
        agent_add_attempt(f->agent, f->answer.shown[i].job, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, WIRE_ATTEMPTS_MAX);
    agent_send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0); /* an immediate retry is useless */
    for (int i = 0; i < 10; i++) {
        f->agent->attempts[i].phase = WIRE_ENDED;
        f->agent->attempts[i].end = WIRE_END_SUCCEEDED;
    }
    agent_send(f->agent, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, WIRE_ATTEMPTS_MAX);
    assert_int_equal(f->other.n_scripts, 10); /* as many as have ended */
}

/* ---- prefetching ---- */

static void assert_prefetch(const struct answer *a, int64_t sequence, int64_t secrets)
{
    assert_int_equal(a->prefetch.job, 1);
    assert_int_equal(a->prefetch.attempt, 1);
    assert_int_equal(a->prefetch.sequence, sequence);
    assert_int_equal(a->prefetch.secrets, secrets);
}

static void a_node_is_told_what_to_fetch_until_the_job_is_elsewhere(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets = secrets_of(7);
    run_one_job(f);
    struct wire_checkpoint saved = {
        .sequence = 3, .progress = WIRE_NONE, .pause_ms = WIRE_NONE, .saved_at = 1000};
    f->agent->attempts[0].checkpoints = &saved;
    f->agent->attempts[0].n_checkpoints = 1;
    agent_send(f->agent, 0, 0, &f->answer);
    struct agent *next = agent_of(f->lab, lab_join(f->lab, "next", 4));
    agent_send(next, 0, 0, &f->other);
    assert_int_equal(f->other.prefetch.job, 0);
    agent_send(next, f->other.rev, 20000, &f->other);
    assert_int_equal(f->other.n, 0);
    lab_post(f->lab,
        (struct event){
            .type = EV_PREFETCH, .prefetch = {.job = 1, .node = next->node, .ref.attempt = 1}},
        NULL);
    lab_tick(f->lab);
    assert_int_equal(f->other.n, 1); /* at once */
    assert_prefetch(&f->other, 3, 7);
    f->lab->secrets_late = true; /* or the store cannot be used: not now */
    agent_send(next, 0, 0, &f->other);
    assert_prefetch(&f->other, 0, 0);
    f->lab->secrets_late = false;
    f->lab->store_fault = "the store is away";
    agent_send(next, 0, 0, &f->other);
    assert_prefetch(&f->other, 0, 0);
    f->lab->store_fault = NULL;
    next->prefetched = (struct wire_prefetched){.job = 1, .attempt = 1};
    agent_send(next, 0, 0, &f->other); /* under way */
    assert_false(job_attempt(job_of(f, 1))->prefetch.is_over);
    next->prefetched.sequence = 3;
    agent_send(next, 0, 0, &f->other);
    assert_true(job_attempt(job_of(f, 1))->prefetch.is_over);
    assert_prefetch(&f->other, 3, 7);
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1, .by = "ann"}}, NULL);
    lab_tick(f->lab);
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].end = WIRE_END_CANCELLED;
    agent_send(f->agent, 0, 0, &f->answer);
    agent_send(next, 0, 0, &f->other);
    assert_int_equal(f->other.prefetch.job, 0);
    free(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        AGENT_SYNC_TEST(the_texts_of_a_job_are_sent_until_the_agent_tells_it),
        AGENT_SYNC_TEST(secrets_are_sent_until_the_agent_tells_their_version),
        AGENT_SYNC_TEST(other_secrets_replace_those_that_the_agent_has),
        AGENT_SYNC_TEST(what_waits_for_its_secrets_is_withheld_until_the_agent_may_have_it),
        AGENT_SYNC_TEST(a_withheld_attempt_that_is_due_is_never_sent_as_well),
        AGENT_SYNC_TEST(an_attempt_that_needs_a_store_which_cannot_be_used_is_withheld),
        AGENT_SYNC_TEST(a_cancelled_withheld_attempt_is_sent_without_secrets),
        AGENT_SYNC_TEST(an_attempt_waits_for_its_secrets_but_what_the_agent_has_is_not_taken_back),
        AGENT_SYNC_TEST(everything_that_starts_a_job_is_in_the_message),
        AGENT_SYNC_TEST(a_node_is_told_what_to_fetch_until_the_job_is_elsewhere),
        AGENT_SYNC_TEST(a_cancelled_attempt_is_to_stop_and_a_requeued_one_to_save_first),
        AGENT_SYNC_TEST(an_end_that_is_known_is_not_desired_any_more),
        AGENT_SYNC_TEST(a_job_whose_texts_are_lost_fails_and_says_so),
        AGENT_SYNC_TEST(large_scripts_come_in_several_messages_and_none_is_taken_back),
        AGENT_SYNC_TEST(more_attempts_than_a_message_takes_are_no_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
