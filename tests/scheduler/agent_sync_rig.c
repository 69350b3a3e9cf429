/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/agent_sync_rig.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

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
    a->prefetch.job = d->prefetch.job;
    a->prefetch.attempt = d->prefetch.attempt;
    a->prefetch.sequence = d->prefetch.sequence;
    a->prefetch.secrets = d->prefetch.secrets.version;
    for (size_t i = 0; i < d->n_attempts; i++) {
        const struct wire_desired_attempt *x = &d->attempts[i];
        a->shown[i] = (struct shown){x->job, x->attempt, x->acked_sequence, x->want, x->reason,
            x->script != NULL, x->needs_secrets, x->secrets.version, x->ckpt_every_ms,
            x->saves_asked, x->limit_ms, x->gang_ended};
        if (x->secrets.version)
            assert_string_equal(x->secrets.checkpoint_keys[0], KEY);
        a->n_scripts += x->script != NULL;
    }
    wire_desired_encode(d, &text); /* aborts if the message exceeds the wire's limits */
    a->bytes = text.len;
    buf_deinit(&text);
}

struct agent *agent_of(struct lab *lab, int64_t node)
{
    struct agent *a = mem_alloc(sizeof(*a));
    *a = (struct agent){.lab = lab, .node = node, .incarnation = 100, .notice.deadline = WIRE_NONE};
    return a;
}

struct wire_attempt_status status_of(int64_t job, int64_t attempt, enum wire_phase phase)
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

struct wire_attempt_status *agent_add_attempt(
    struct agent *a, int64_t job, int64_t attempt, enum wire_phase phase)
{
    a->attempts[a->n_attempts] = status_of(job, attempt, phase);
    return &a->attempts[a->n_attempts++];
}

void agent_send(struct agent *a, int64_t have_rev, int64_t wait_ms, struct answer *ret_answer)
{
    struct wire_status st = {.incarnation = a->incarnation,
        .seq = ++a->seq,
        .have_rev = have_rev,
        .wait_ms = wait_ms,
        .notice = a->notice,
        .attempts = a->attempts,
        .n_attempts = a->n_attempts,
        .kept = a->kept,
        .n_kept = a->n_kept,
        .prefetched = a->prefetched};
    STR_COPY(st.disk_full, a->disk_full);
    memset(ret_answer, 0, sizeof(*ret_answer));
    agent_sync_status(a->lab->agent_sync, a->node, &st, on_answer, ret_answer);
    lab_tick(a->lab);
}

int agent_sync_setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    void *lab;
    lab_setup(&lab);
    f->lab = lab;
    lab_add_agent_sync(f->lab);
    f->agent = agent_of(f->lab, lab_join(f->lab, "n", 4));
    *state = f;
    return 0;
}

int agent_sync_teardown(void **state)
{
    struct fixture *f = *state;
    void *lab = f->lab;
    lab_teardown(&lab);
    free(f->agent);
    free(f);
    return 0;
}

struct job *job_of(struct fixture *f, int64_t id)
{
    return model_job(f->lab->model, id);
}

void run_one_job(struct fixture *f)
{
    lab_submit(f->lab, 1, NULL);
    lab_tick(f->lab);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(f->answer.n_scripts, 1);
    agent_add_attempt(f->agent, 1, 1, WIRE_RUNNING);
    agent_send(f->agent, 0, 0, &f->answer);
    assert_int_equal(job_attempt(job_of(f, 1))->row.state, ATTEMPT_RUNNING);
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

struct attempt_row stored_attempt(struct fixture *f, int64_t job_id, int64_t attempt)
{
    struct find q = {.attempt = attempt};
    struct err e;
    assert_int_equal(db_read_attempts(f->lab->reader, job_id, find_attempt, &q, &e), 0);
    assert_int_equal(q.row.attempt, attempt);
    return q.row;
}
