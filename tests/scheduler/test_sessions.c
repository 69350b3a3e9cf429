/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent sessions: what a status becomes, what an agent is told and when, over stale messages,
 * restarts, full disks and messages without room.
 */
#include "tests/scheduler/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/engine/sessions_words.h"
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 2000
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* One answer, as far as a test looks at it. */
struct answer {
    size_t n_unneeded;
    int64_t unneeded; /* the first */
    int n, rc;
    struct err e;
    int64_t rev;
    size_t n_attempts, n_scripts, bytes;
    struct shown {
        int64_t job, attempt, acked;
        enum wire_want want;
        enum wire_end reason;
        bool script, needs_secrets;
        int64_t secrets; /* their version; 0: none came */
        int64_t every_ms, saves_asked, limit_ms;
        bool gang_ended;
    } shown[SHOWN_MAX];
};

static void on_answer(void *ctx, const struct err *e, const struct wire_desired *d)
{
    struct answer *a = ctx;
    struct buf text = {0};
    a->n++;
    a->rc = e ? (int)e->kind : 0;
    if (e) {
        a->e = *e;
        return;
    }
    a->rev = d->rev;
    a->n_attempts = d->n_attempts;
    a->n_unneeded = d->n_unneeded;
    a->unneeded = d->n_unneeded ? d->unneeded[0].job : 0;
    a->n_scripts = 0;
    for (size_t i = 0; i < d->n_attempts; i++) {
        const struct wire_desired_attempt *x = &d->attempts[i];
        a->shown[i] = (struct shown){x->job, x->attempt, x->acked_sequence, x->want, x->reason,
            x->script != NULL, x->needs_secrets, x->secrets.version, x->ckpt_every_ms,
            x->saves_asked, x->limit_ms, x->gang_ended};
        if (x->secrets.version)
            assert_string_equal(x->secrets.checkpoint_keys[0], KEY);
        a->n_scripts += x->script != NULL;
    }
    wire_desired_encode(d, &text); /* what does not fit the wire would abort here */
    a->bytes = text.len;
    buf_deinit(&text);
}

/* An agent as the test drives it. */
struct agent {
    struct lab *lab;
    int64_t node, incarnation, seq;
    struct wire_notice notice;
    struct wire_attempt_status attempts[WIRE_ATTEMPTS_MAX];
    size_t n_attempts;
    struct wire_kept kept[2];
    size_t n_kept;
};

static struct agent *agent_of(struct lab *lab, int64_t node)
{
    struct agent *a = mem_alloc(sizeof(*a));
    *a = (struct agent){.lab = lab, .node = node, .incarnation = 100, .notice.deadline = WIRE_NONE};
    return a;
}

static struct wire_attempt_status status_of(int64_t job, int64_t attempt, enum wire_phase phase)
{
    return (struct wire_attempt_status){.job = job,
        .attempt = attempt,
        .phase = phase,
        .started_at = phase >= WIRE_RUNNING ? 1000 : WIRE_NONE,
        .restored_progress = WIRE_NONE,
        .first_done = WIRE_NONE,
        .done = WIRE_NONE,
        .total = WIRE_NONE};
}

static struct wire_attempt_status *tell(
    struct agent *a, int64_t job, int64_t attempt, enum wire_phase phase)
{
    a->attempts[a->n_attempts] = status_of(job, attempt, phase);
    return &a->attempts[a->n_attempts++];
}

static void send(struct agent *a, int64_t have_rev, int64_t wait_ms, struct answer *ret_answer)
{
    struct wire_status st = {.incarnation = a->incarnation,
        .seq = ++a->seq,
        .have_rev = have_rev,
        .wait_ms = wait_ms,
        .notice = a->notice,
        .attempts = a->attempts,
        .n_attempts = a->n_attempts,
        .kept = a->kept,
        .n_kept = a->n_kept};
    memset(ret_answer, 0, sizeof(*ret_answer));
    sessions_status(a->lab->sessions, a->node, &st, on_answer, ret_answer);
    lab_turn(a->lab);
}

/* A node with a session, an agent on it, one running job. */
struct fixture {
    struct lab *lab;
    struct agent *agent;
    struct answer answer, other;
};

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    void *lab;
    lab_setup(&lab);
    f->lab = lab;
    lab_add_sessions(f->lab);
    f->agent = agent_of(f->lab, lab_join(f->lab, "n", 4));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *lab = f->lab;
    lab_teardown(&lab);
    free(f->agent);
    free(f);
    return 0;
}

static struct job *job(struct fixture *f, int64_t id)
{
    return model_job(f->lab->model, id);
}

static struct attempt_row stored_attempt(struct fixture *f, int64_t job_id, int64_t attempt);

/* Job 1 runs on the node as far as agent and belayd know. */
static void run_one_job(struct fixture *f)
{
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    tell(f->agent, 1, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job_attempt(job(f, 1))->row.state, ATTEMPT_RUNNING);
}

struct find {
    int64_t attempt;
    struct attempt_row row;
};

static int find_attempt(void *ctx, const struct attempt_row *row)
{
    struct find *f = ctx;
    if (row->attempt == f->attempt)
        f->row = *row;
    return 0;
}

static struct attempt_row stored_attempt(struct fixture *f, int64_t job_id, int64_t attempt)
{
    struct find q = {.attempt = attempt};
    struct err e;
    assert_int_equal(db_read_attempts(f->lab->reader, job_id, find_attempt, &q, &e), 0);
    assert_int_equal(q.row.attempt, attempt);
    return q.row;
}

/* ---- who may ask ---- */

static void a_node_that_is_not_the_clusters_is_told_so(void **state)
{
    struct fixture *f = *state;
    f->agent->node = 999;
    send(f->agent, 0, 20000, &f->answer);
    assert_int_equal(f->answer.rc, ERR_NOT_FOUND);
    assert_non_null(strstr(f->answer.e.text, "999"));
}

static void a_node_that_is_deleted_while_it_waits_is_told_so(void **state)
{
    struct fixture *f = *state;
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    lab_post(f->lab,
        (struct event){.type = EV_NODE_DELETE, .node_delete = {.node = f->agent->node}}, NULL);
    lab_turn(f->lab);
    assert_int_equal(f->answer.rc, ERR_NOT_FOUND);
}

/* ---- when an answer comes ---- */

static void a_status_is_answered_after_the_commit_of_what_it_told(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    f->lab->by_hand = true;
    tell(f->agent, 1, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer);
    assert_non_null(f->lab->under_way);
    assert_int_equal(f->answer.n, 0);
    lab_commit(f->lab, 0);
    assert_int_equal(f->answer.n, 1);
    assert_true(wall_is_set(stored_attempt(f, 1, 1).started_at));
}

static void nothing_that_is_not_on_disk_is_desired(void **state)
{
    struct fixture *f = *state;
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab); /* placed in the model; its commit is under way */
    assert_non_null(job_attempt(job(f, 1)));
    send(f->agent, 0, 0, &f->other); /* releases nothing, gets nothing */
    lab_advance(f->lab, 60000);      /* the wait is over meanwhile */
    assert_int_equal(f->answer.n + f->other.n, 0);
    lab_commit(f->lab, 0);
    assert_true(f->answer.n == 1 && f->other.n == 1);
    assert_int_equal(f->answer.n_scripts, 1);
}

static void while_the_disk_is_full_nothing_is_desired_at_all(void **state)
{
    struct fixture *f = *state;
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    lab_commit(f->lab, ERR_NO_SPACE);
    send(f->agent, 0, 0, &f->other);
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
    send(f->agent, 0, 20000, &f->answer); /* has none yet */
    assert_int_equal(f->answer.n, 1);
    int64_t rev = f->answer.rev;
    send(f->agent, rev, 0, &f->answer); /* does not want to wait */
    assert_int_equal(f->answer.n, 1);
    send(f->agent, rev - 1, 20000, &f->answer); /* has an old one */
    assert_int_equal(f->answer.n, 1);
    send(f->agent, rev, 3000, &f->answer);
    lab_advance(f->lab, 2999);
    assert_int_equal(f->answer.n, 0);
    lab_advance(f->lab, 1);
    assert_int_equal(f->answer.n, 1);
    send(f->agent, rev, 25000, &f->answer); /* longer than a lease allows */
    lab_advance(f->lab, LAB_SYNC_MS);
    assert_int_equal(f->answer.n, 1);
    send(f->agent, rev, 20000, &f->answer);
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    assert_int_equal(f->answer.n, 1);
    assert_true(f->answer.rev > rev && f->answer.n_attempts == 1);
}

static void one_poll_a_node_waits_and_a_newer_one_releases_it(void **state)
{
    struct fixture *f = *state;
    send(f->agent, 0, 0, &f->answer);
    int64_t rev = f->answer.rev;
    send(f->agent, rev, 20000, &f->answer);
    send(f->agent, rev, 20000, &f->other);
    assert_int_equal(f->answer.n, 1);
    assert_int_equal(f->other.n, 0);
    lab_advance(f->lab, LAB_SYNC_MS);
    assert_int_equal(f->other.n, 1);
    assert_int_equal(f->answer.n, 1);
}

static void at_a_stop_all_that_wait_are_answered(void **state)
{
    struct fixture *f = *state;
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    sessions_release_all(f->lab->sessions);
    assert_int_equal(f->answer.rc, ERR_UNAVAILABLE);
    lab_advance(f->lab, 60000);
    assert_int_equal(f->answer.n, 1);
}

static void revisions_grow_over_a_restart(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        lab_submit(f->lab, 1, NULL);
        lab_turn(f->lab);
    }
    send(f->agent, 0, 0, &f->answer);
    int64_t before = f->answer.rev;
    lab_restart(f->lab);
    send(f->agent, before, 20000, &f->answer);
    assert_int_equal(f->answer.n, 1); /* what it has is another belayd's */
    assert_true(f->answer.rev > before);
}

/* ---- what is desired ---- */

static void the_texts_of_a_job_are_sent_until_the_agent_tells_it(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    for (int i = 0; i < 2; i++) {
        send(f->agent, 0, 0, &f->answer); /* the first reply may have been lost */
        assert_true(f->answer.n_attempts == 1 && f->answer.n_scripts == 1);
        assert_int_equal(f->answer.shown[0].want, WIRE_RUN);
    }
    tell(f->agent, 1, 1, WIRE_STARTING);
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.n_scripts == 0);
    lab_restart(f->lab);
    send(f->agent, 0, 0, &f->answer);
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
    lab_turn(f->lab);
    for (int i = 0; i < 2; i++) {
        send(f->agent, 0, 0, &f->answer);
        assert_true(f->answer.shown[0].secrets == 7 && f->answer.shown[0].needs_secrets);
    }
    struct wire_attempt_status *told = tell(f->agent, 1, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer); /* it has the texts, and lost the secrets */
    assert_true(f->answer.n_scripts == 0 && f->answer.shown[0].secrets == 7);
    told->secrets = 7;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 0);
    f->agent->incarnation++; /* a restarted agent has a record of the attempt, but no secrets */
    told->secrets = 0;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 7);
}

static void other_secrets_replace_those_that_the_agent_has(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets = secrets_of(7);
    run_one_job(f);
    f->agent->attempts[0].secrets = 7;
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    f->lab->secrets.version = 8;
    sessions_touch(f->lab->sessions, f->agent->node);
    assert_true(f->answer.n == 1 && f->answer.shown[0].secrets == 8);
    /* one that is to save and stop needs them no less */
    lab_post(f->lab, (struct event){.type = EV_DRAIN, .drain = {.node = f->agent->node}}, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].secrets, 8);
}

static void an_attempt_waits_for_its_secrets_but_what_the_agent_has_is_not_taken_back(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    f->lab->secrets_late = false;
    f->lab->secrets = secrets_of(7);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0);
    sessions_touch(f->lab->sessions, f->agent->node);
    assert_true(f->answer.n_scripts == 1 && f->answer.shown[0].secrets == 7);
    f->lab->secrets_late = true; /* the next ones: the answer may not have got there, or it did */
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_scripts == 1 && f->answer.shown[0].needs_secrets &&
                f->answer.shown[0].secrets == 0);
    tell(f->agent, 1, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && f->answer.shown[0].secrets == 0);
}

static const struct attempt *attempt_of(struct fixture *f)
{
    return job_attempt(job(f, 1));
}

static void what_waits_for_its_secrets_is_withheld_until_the_agent_may_have_it(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer); /* they are on their way */
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    err_set(&f->lab->secrets_why, ERR_DENIED, "403 of the token service");
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
    assert_string_equal(stored_attempt(f, 1, 1).text, "403 of the token service");
    int n = f->lab->n_commits;
    send(f->agent, 0, 0, &f->answer); /* is known */
    assert_int_equal(f->lab->n_commits, n);
    lab_restart(f->lab);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
    f->lab->secrets_late = false;
    f->lab->secrets = secrets_of(7);
    f->lab->secrets_why = (struct err){0};
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
    f->lab->secrets_late = true; /* the answer may have got there */
    err_set(&f->lab->secrets_why, ERR_UNAVAILABLE, "no answer");
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_scripts == 1 && attempt_of(f)->withheld == WITHHELD_NO);
}

/* The answer to its agent is decided on before the deadline is: one of the two wins, whole. */
static void a_withheld_attempt_that_is_due_is_never_sent_as_well(void **state)
{
    for (int given = 0; given < 2; given++) {
        struct fixture *f;
        void *fresh = NULL;
        if (given) {
            teardown(state);
            setup(&fresh);
            *state = fresh;
        }
        f = *state;
        f->lab->secrets_late = true;
        err_set(&f->lab->secrets_why, ERR_DENIED, "403");
        lab_submit(f->lab, 1, NULL);
        lab_turn(f->lab);
        send(f->agent, 0, 0, &f->answer);
        for (int s = 0; s < 119; s++) {
            lab_advance(f->lab, 1000);
            send(f->agent, 0, 0, &f->answer);
        }
        assert_int_equal(attempt_of(f)->withheld, WITHHELD_DENIED);
        f->lab->secrets_late = !given;
        send(f->agent, 0, 0, &f->answer);
        assert_int_equal(f->answer.n_scripts, given);
        lab_advance(f->lab, 2000);
        assert_int_equal(job(f, 1)->row.end, given ? END_NONE : END_STORE_AWAY);
        assert_int_equal(attempt_of(f) != NULL, given);
    }
}

static void an_attempt_that_needs_a_store_which_cannot_be_used_is_withheld(void **state)
{
    struct fixture *f = *state;
    f->lab->store_fault = "the store has lost its marker";
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_AWAY);
    assert_string_equal(stored_attempt(f, 1, 1).text, "the store has lost its marker");
    f->lab->store_fault = NULL;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    assert_int_equal(attempt_of(f)->withheld, WITHHELD_NO);
}

/* It needs nothing any more: its agent says that it has ended. */
static void a_withheld_attempt_that_is_cancelled_is_told_of_without_secrets(void **state)
{
    struct fixture *f = *state;
    f->lab->secrets_late = true;
    f->lab->store_fault = "the store has lost its marker";
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1, .by = "ann"}}, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 1);
    assert_int_equal(f->answer.shown[0].want, WIRE_STOP);
    assert_int_equal(f->answer.shown[0].secrets, 0);
    assert_false(f->answer.shown[0].needs_secrets);
    tell(f->agent, 1, 1, WIRE_ENDED)->end = WIRE_END_USER;
    send(f->agent, 0, 0, &f->answer);
    assert_null(job(f, 1));
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
    assert_int_equal(a->ckpt_keep, 3);
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
    lab_turn(f->lab);
    sessions_status(f->lab->sessions, f->agent->node, &st, check_texts, &n);
    lab_turn(f->lab);
    assert_int_equal(n, 1);
}

static void a_cancelled_attempt_is_to_stop_and_a_requeued_one_to_save_first(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    lab_post(
        f->lab, (struct event){.type = EV_REQUEUE, .requeue = {.job = 1, .force = true}}, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].want, WIRE_SAVE_STOP);
    assert_int_equal(f->answer.shown[0].reason, WIRE_END_USER);
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1}}, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].want, WIRE_STOP);
}

static void an_end_that_is_known_is_not_desired_any_more(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->n_attempts = 0;
    struct wire_attempt_status *st = tell(f->agent, 1, 1, WIRE_ENDED);
    st->end = WIRE_END_SUCCEEDED;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, 0);
    assert_null(job(f, 1));
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
    sessions_destroy(f->lab->sessions);
    lab_add_sessions(f->lab);
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    db_reader_close(f->lab->reader);
    db_close(empty);
    f->lab->reader = reader;
    assert_int_equal(f->answer.n_attempts, 0);
    assert_int_equal(db_read_job(f->lab->reader, 1, &row, &e), 0);
    assert_int_equal(row.state, JOB_ENDED);
    assert_int_equal(row.end, END_FAILED);
}

/* ---- messages without room ---- */

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
    bool told[JOBS + 1] = {false};
    int messages = 0, n_told = 0;
    int64_t rev = 0;
    free(f->agent);
    f->agent = agent_of(f->lab, lab_join(f->lab, "big", JOBS + 4));
    memset(script, '\n', BYTES);
    memcpy(script, "#!", 2);
    lab_post(f->lab, (struct event){.type = EV_DRAIN, .drain = {.node = 1}}, NULL);
    for (int i = 0; i < JOBS; i++)
        lab_submit_script(f->lab, script);
    lab_turn(f->lab);
    while (n_told < JOBS && messages < 2 * JOBS) {
        send(f->agent, rev, 20000, &f->answer); /* would wait, yet there is more */
        assert_int_equal(f->answer.n, 1);
        assert_true(f->answer.bytes < WIRE_MESSAGE_MAX);
        assert_true(f->answer.n_scripts > 0);
        for (int i = 1; i <= JOBS; i++)
            /* to leave one out would be to kill it */
            assert_true(!told[i] || answer_has(&f->answer, i));
        if (messages++ % 3 == 0)
            continue; /* this reply was lost: the same comes again */
        rev = f->answer.rev;
        for (size_t i = 0; i < f->answer.n_attempts; i++) {
            int64_t id = f->answer.shown[i].job;
            if (!told[id])
                tell(f->agent, id, 1, WIRE_STARTING);
            n_told += !told[id];
            told[id] = true;
        }
    }
    assert_int_equal(n_told, JOBS);
    assert_true(messages > 4);
    send(f->agent, f->answer.rev, 20000, &f->answer);
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
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, WIRE_ATTEMPTS_MAX);
    for (size_t i = 0; i < f->answer.n_attempts; i++)
        tell(f->agent, f->answer.shown[i].job, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_attempts, WIRE_ATTEMPTS_MAX);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    assert_int_equal(f->answer.n, 0); /* no use in asking again at once */
    for (int i = 0; i < 10; i++) {
        f->agent->attempts[i].phase = WIRE_ENDED;
        f->agent->attempts[i].end = WIRE_END_SUCCEEDED;
    }
    send(f->agent, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, WIRE_ATTEMPTS_MAX);
    assert_int_equal(f->other.n_scripts, 10); /* as many as have ended */
}

/* ---- what is told ---- */

static void what_was_told_before_is_not_told_again(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int commits = f->lab->n_commits;
    for (int i = 0; i < 3; i++)
        send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->lab->n_commits, commits);
}

static void an_older_status_is_answered_and_tells_nothing(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    struct wire_attempt_status *st = &f->agent->attempts[0];
    st->phase = WIRE_ENDED;
    st->end = WIRE_END_FAILED;
    f->agent->seq = 0; /* it comes late */
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n == 1 && f->answer.n_attempts == 1);
    f->agent->incarnation--;
    f->agent->seq = 1000;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job(f, 1)->row.state, JOB_RUNNING);
    f->agent->incarnation += 2;
    f->agent->seq = 0; /* a new agent counts anew */
    send(f->agent, 0, 0, &f->answer);
    assert_null(job(f, 1));
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
    send(f->agent, 0, 0, &f->answer);
    struct job *j = job(f, 1);
    assert_true(j->row.last_good.attempt == 1 && j->row.last_good.sequence == 2);
    assert_int_equal(j->row.last_good_progress, 20);
    assert_int_equal(stored_attempt(f, 1, 1).sequence, 2);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_RECLAIMED);
}

static void a_save_that_was_asked_for_is_told_over_a_restart(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_SAVE, .save = {1, "ann"}}, NULL);
    lab_turn(f->lab);
    assert_true(f->answer.n == 1 && f->answer.shown[0].saves_asked == 1);
    assert_int_equal(f->answer.shown[0].want, WIRE_RUN);
    lab_restart(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].saves_asked, 1);
}

static void another_time_limit_is_told_over_a_restart(void **state)
{
    struct fixture *f = *state;
    const struct job_row to = {.spec.time_limit_ms = 7200000}, none = {0};
    run_one_job(f);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].limit_ms, WIRE_NO_LIMIT);
    send(f->agent, f->answer.rev, 20000, &f->answer);
    lab_post(f->lab,
        (struct event){.type = EV_UPDATE,
            .update = {.job = 1, .by = "ann", .fields = UPDATE_BIT(UPDATE_TIME_LIMIT), .to = &to}},
        NULL);
    lab_turn(f->lab);
    /* the one that waited was answered */
    assert_true(f->answer.n == 1 && f->answer.shown[0].limit_ms == 7200000);
    lab_restart(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].limit_ms, 7200000);
    lab_post(f->lab,
        (struct event){.type = EV_UPDATE,
            .update =
                {.job = 1, .by = "ann", .fields = UPDATE_BIT(UPDATE_TIME_LIMIT), .to = &none}},
        NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
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
        .spec.ckpt_keep = 3};
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct wire_checkpoint c[] = {checkpoint(1, 10), checkpoint(2, 20)};
    lab_post(f->lab, (struct event){.type = EV_SUBMIT, .submit = {&row, &texts}}, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].every_ms, core_save_interval_ms(0, 0.05));
    struct wire_attempt_status *st = tell(f->agent, 1, 1, WIRE_RUNNING);
    for (size_t n = 1; n <= 2; n++) {
        st->checkpoints = c;
        st->n_checkpoints = n;
        c[n - 1].took_ms = (int64_t)n * 5000;
        send(f->agent, 0, 0, &f->answer);
        assert_true(f->answer.n_scripts == 0 && f->answer.shown[0].acked == (int64_t)n);
        assert_int_equal(
            f->answer.shown[0].every_ms, core_save_interval_ms((int64_t)n * 5000, 0.05));
    }
}

/* It has not failed, so they go on: but what needs all ranks does not come about any more. */
static void the_other_ranks_are_told_when_one_has_succeeded(void **state)
{
    struct fixture *f = *state;
    struct job_row row = {.spec.name = "job",
        .user = "ann",
        .spec.nodes = 2,
        .spec.need = {.cpus = 1},
        .spec.method = CKPT_COOP,
        .spec.ckpt_keep = 3};
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct agent *other = agent_of(f->lab, lab_join(f->lab, "m", 4));
    lab_post(f->lab, (struct event){.type = EV_SUBMIT, .submit = {&row, &texts}}, NULL);
    lab_turn(f->lab);
    tell(f->agent, 1, 1, WIRE_RUNNING);
    tell(other, 1, 1, WIRE_ENDED)->end = WIRE_END_SUCCEEDED;
    send(f->agent, 0, 0, &f->answer);
    assert_true(f->answer.n_attempts == 1 && !f->answer.shown[0].gang_ended);
    send(other, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, 0);
    send(f->agent, 0, 0, &f->answer);
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
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.shown[0].acked, 2);
    assert_int_equal(job(f, 1)->row.last_good_progress, PROGRESS_NONE);
}

static void progress_is_known_at_once_and_stored_later(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int commits = f->lab->n_commits;
    f->agent->attempts[0].done = 7;
    f->agent->attempts[0].total = 9;
    send(f->agent, 0, 0, &f->answer);
    assert_true(job(f, 1)->row.progress == 7 && job(f, 1)->row.progress_total == 9);
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
    send(f->agent, 0, 0, &f->answer);
    const struct attempt *a = job_attempt(job(f, 1));
    assert_true(a->row.cpu_ms == 1500 && a->row.cpu_user_ms == 1400 && a->cpu_milli == 2250 &&
                a->memory_bytes == 3 << 20 && a->row.memory_peak == 4 << 20);
    assert_int_equal(f->lab->n_commits, commits);
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].end = WIRE_END_SUCCEEDED;
    f->agent->attempts[0].usage =
        (struct wire_usage){.cpu_ms = 1700, .cpu_user_ms = 1500, .memory_peak_bytes = 5 << 20};
    send(f->agent, 0, 0, &f->answer);
    struct attempt_row stored = {0};
    struct err e;
    assert_int_equal(db_read_attempts(f->lab->reader, 1, keep_attempt, &stored, &e), 0);
    assert_true(stored.end == END_SUCCEEDED && stored.cpu_ms == 1700 &&
                stored.cpu_user_ms == 1500 && stored.memory_peak == 5 << 20);
}

static int count_kind(void *ctx, const struct history_row *h)
{
    int *n = ctx;
    *n += str_eq(h->kind, "save-failed");
    return 0;
}

static void a_failed_save_is_told_once(void **state)
{
    struct fixture *f = *state;
    struct err e;
    int n = 0;
    run_one_job(f);
    f->agent->attempts[0].failed_saves = 1;
    STR_COPY(f->agent->attempts[0].save_error, "the store is full");
    send(f->agent, 0, 0, &f->answer);
    send(f->agent, 0, 0, &f->answer);
    f->agent->attempts[0].failed_saves = 2;
    send(f->agent, 0, 0, &f->answer);
    lab_restart(f->lab);
    send(f->agent, 0, 0, &f->answer);
    assert_false(job_attempt(job(f, 1))->save_failed); /* perhaps one was saved since */
    f->agent->attempts[0].failed_saves = 3;
    send(f->agent, 0, 0, &f->answer);
    assert_true(job_attempt(job(f, 1))->save_failed);
    assert_int_equal(db_read_history(f->lab->reader, 1, 0, 100, count_kind, &n, &e), 0);
    assert_int_equal(n, 3);
}

static void a_start_that_is_told_while_it_is_to_stop_counts(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    send(f->agent, 0, 0, &f->answer);
    lab_post(f->lab, (struct event){.type = EV_REQUEUE, .requeue = {.job = 1}}, NULL);
    lab_turn(f->lab);
    tell(f->agent, 1, 1, WIRE_RUNNING);
    send(f->agent, 0, 0, &f->answer);
    assert_true(wall_is_set(job_attempt(job(f, 1))->row.started_at));
}

/* Both sides have the same words, so a row's name is what the wire says of it. */
static void the_wire_has_the_words_of_the_core(void **state)
{
    (void)state;
    for (int i = CKPT_NONE; ckpt_method_names[i]; i++)
        assert_string_equal(
            wire_method_names[sessions_method((enum ckpt_method)i)], ckpt_method_names[i]);
    for (int i = END_NONE + 1; end_kind_names[i]; i++) {
        assert_string_equal(wire_end_names[sessions_reason((enum end_kind)i)], end_kind_names[i]);
        assert_int_equal(sessions_end(sessions_reason((enum end_kind)i)), i);
    }
    assert_int_equal(sessions_reason(END_NONE), WIRE_END_NONE);
    assert_int_equal(sessions_end(WIRE_END_NONE), END_NONE);
    assert_int_equal(sessions_end(WIRE_END_UNKNOWN), END_NONE);
    for (int i = WIRE_END_NONE + 1; i < WIRE_END_UNKNOWN; i++)
        assert_string_equal(end_kind_names[sessions_end((enum wire_end)i)], wire_end_names[i]);
    for (int i = WIRE_NOTICE_NONE + 1; i < WIRE_NOTICE_UNKNOWN; i++)
        assert_string_equal(notice_type_names[sessions_notice((enum wire_notice_kind)i)],
            wire_notice_kind_names[i]);
    assert_null(notice_type_names[WIRE_NOTICE_UNKNOWN]);
    assert_int_equal(sessions_notice(WIRE_NOTICE_UNKNOWN), NOTICE_TYPE_NONE);
    for (int i = WIRE_CRIU_UNSAID + 1; i < WIRE_CRIU_UNKNOWN; i++)
        assert_string_equal(
            criu_ability_names[sessions_criu_ability((enum wire_criu)i)], wire_criu_names[i]);
    assert_null(criu_ability_names[WIRE_CRIU_UNKNOWN]);
    assert_int_equal(sessions_criu_ability(WIRE_CRIU_UNKNOWN), CRIU_UNKNOWN);
}

static void an_unknown_end_counts_as_failed(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].exit_code = 3;
    f->agent->attempts[0].end = WIRE_END_UNKNOWN;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_FAILED);
    assert_int_equal(stored_attempt(f, 1, 1).exit_code, 3);
}

static void what_an_agent_tells_of_others_attempts_changes_nothing(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int64_t other = lab_join(f->lab, "other", 1);
    struct agent *liar = agent_of(f->lab, other);
    struct wire_attempt_status *st = tell(liar, 1, 1, WIRE_ENDED);
    st->end = WIRE_END_FAILED;
    tell(liar, 77, 1, WIRE_RUNNING);
    send(liar, 0, 0, &f->other);
    assert_int_equal(f->other.n_attempts, 0);
    assert_int_equal(job(f, 1)->row.state, JOB_RUNNING);
    free(liar);
}

/* ---- vanished ---- */

static void an_attempt_that_the_agent_lost_is_tried_again(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->n_attempts = 0; /* a wiped disk */
    f->agent->incarnation++;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_NODE_LOST);
    assert_int_equal(job(f, 1)->row.attempts, 2);
}

static void one_that_was_running_before_a_restart_too(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    int64_t before = f->answer.rev;
    lab_restart(f->lab);
    f->agent->n_attempts = 0;
    send(f->agent, before, 0, &f->answer); /* it may have been overtaken by one that told of it */
    assert_int_equal(job(f, 1)->row.state, JOB_RUNNING);
    send(f->agent, f->answer.rev, 0, &f->answer);
    assert_int_equal(stored_attempt(f, 1, 1).end, END_NODE_LOST);
}

static void one_that_the_agent_has_not_told_yet_has_not_vanished(void **state)
{
    struct fixture *f = *state;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    for (int i = 0; i < 3; i++)
        send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job(f, 1)->row.attempts, 1);
    assert_int_equal(f->answer.n_scripts, 1);
}

/* ---- notices ---- */

static void a_notice_is_taken_and_a_lesser_one_after_it_is_not(void **state)
{
    struct fixture *f = *state;
    struct node *n = model_node(f->lab->model, f->agent->node);
    f->agent->notice.kind = WIRE_NOTICE_REBALANCE;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_REBALANCE);
    assert_int_equal(n->row.state, NODE_UP);
    f->agent->notice.kind = WIRE_NOTICE_RECLAIM;
    f->agent->notice.deadline = 1800000120000;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.state, NODE_NOTICED);
    assert_int_equal(n->row.notice_deadline.ms, 1800000120000);
    int commits = f->lab->n_commits;
    f->agent->notice.kind = WIRE_NOTICE_REBALANCE;
    send(f->agent, 0, 0, &f->answer);
    f->agent->notice.kind = WIRE_NOTICE_UNKNOWN;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_RECLAIM);
    assert_int_equal(f->lab->n_commits, commits);
}

/* A machine of one's own that has shut down and is back. */
static void a_notice_that_the_next_agent_does_not_know_is_over(void **state)
{
    struct fixture *f = *state;
    struct node *n = model_node(f->lab->model, f->agent->node);
    assert_int_equal(n->row.instance, CORE_ID_NONE);
    f->agent->notice.kind = WIRE_NOTICE_RECLAIM;
    f->agent->notice.deadline = 1800000120000;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.state, NODE_NOTICED);
    f->agent->notice.kind = WIRE_NOTICE_NONE;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(n->row.notice, NOTICE_TYPE_NONE);
    assert_int_equal(n->row.state, NODE_UP);
}

static void what_is_kept_for_a_job_is_unneeded_once_it_has_ended(void **state)
{
    struct fixture *f = *state;
    run_one_job(f);
    f->agent->kept[0].job = 1;
    f->agent->kept[1].job = 77; /* there is no such job */
    f->agent->n_kept = 2;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 1);
    assert_int_equal(f->answer.unneeded, 77);
    f->agent->n_kept = 1;
    f->agent->attempts[0].phase = WIRE_ENDED;
    f->agent->attempts[0].end = WIRE_END_SUCCEEDED;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 1);
    assert_int_equal(f->answer.unneeded, 1);
    f->agent->n_kept = 0;
    send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_unneeded, 0);
}

static void a_status_is_a_sign_of_life(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        lab_advance(f->lab, LAB_LEASE_MS - 1000);
        send(f->agent, 0, 0, &f->answer);
    }
    assert_int_equal(model_node(f->lab->model, f->agent->node)->row.state, NODE_UP);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_that_is_not_the_clusters_is_told_so),
        TEST(a_node_that_is_deleted_while_it_waits_is_told_so),
        TEST(a_status_is_answered_after_the_commit_of_what_it_told),
        TEST(nothing_that_is_not_on_disk_is_desired),
        TEST(while_the_disk_is_full_nothing_is_desired_at_all),
        TEST(the_current_revision_waits_for_a_change_or_for_its_time),
        TEST(one_poll_a_node_waits_and_a_newer_one_releases_it),
        TEST(at_a_stop_all_that_wait_are_answered),
        TEST(revisions_grow_over_a_restart),
        TEST(the_texts_of_a_job_are_sent_until_the_agent_tells_it),
        TEST(secrets_are_sent_until_the_agent_tells_their_version),
        TEST(other_secrets_replace_those_that_the_agent_has),
        TEST(what_waits_for_its_secrets_is_withheld_until_the_agent_may_have_it),
        TEST(a_withheld_attempt_that_is_due_is_never_sent_as_well),
        TEST(an_attempt_that_needs_a_store_which_cannot_be_used_is_withheld),
        TEST(a_withheld_attempt_that_is_cancelled_is_told_of_without_secrets),
        TEST(an_attempt_waits_for_its_secrets_but_what_the_agent_has_is_not_taken_back),
        TEST(everything_that_starts_a_job_is_in_the_message),
        TEST(a_cancelled_attempt_is_to_stop_and_a_requeued_one_to_save_first),
        TEST(an_end_that_is_known_is_not_desired_any_more),
        TEST(a_job_whose_texts_are_lost_fails_and_says_so),
        TEST(large_scripts_come_in_several_messages_and_none_is_taken_back),
        TEST(more_attempts_than_a_message_takes_are_no_bug),
        TEST(what_was_told_before_is_not_told_again),
        TEST(an_older_status_is_answered_and_tells_nothing),
        TEST(an_end_never_hides_the_save_that_came_with_it),
        TEST(a_save_that_was_asked_for_is_told_over_a_restart),
        TEST(another_time_limit_is_told_over_a_restart),
        TEST(an_automatic_interval_follows_the_last_save),
        TEST(the_other_ranks_are_told_when_one_has_succeeded),
        TEST(saves_are_acknowledged_by_their_sequence),
        TEST(progress_is_known_at_once_and_stored_later),
        TEST(what_is_used_is_known_at_once_and_stored_with_the_end),
        TEST(a_failed_save_is_told_once),
        TEST(a_start_that_is_told_while_it_is_to_stop_counts),
        TEST(the_wire_has_the_words_of_the_core),
        TEST(an_unknown_end_counts_as_failed),
        TEST(what_an_agent_tells_of_others_attempts_changes_nothing),
        TEST(an_attempt_that_the_agent_lost_is_tried_again),
        TEST(one_that_was_running_before_a_restart_too),
        TEST(one_that_the_agent_has_not_told_yet_has_not_vanished),
        TEST(a_notice_is_taken_and_a_lesser_one_after_it_is_not),
        TEST(a_notice_that_the_next_agent_does_not_know_is_over),
        TEST(what_is_kept_for_a_job_is_unneeded_once_it_has_ended),
        TEST(a_status_is_a_sign_of_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
