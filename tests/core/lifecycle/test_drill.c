/* SPDX-License-Identifier: Apache-2.0
 *
 * Drills: what is certified, where a drilled job resumes, and interruptions.
 */
#include "tests/core/lab.h"
#include "tests/core/shelf.h"

#include "base/str.h"
#include <signal.h>
#include <string.h>

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A job that runs on the first of two nodes, at step 60. */
struct drilled {
    struct lab l;
    int64_t node, other, job;
};

static void report_progress(struct drilled *d, int64_t done)
{
    const struct job *j = model_job(d->l.m, d->job);
    lab_apply(&d->l,
        (struct event){.type = EV_PROGRESS, .progress = {d->job, j->row.attempts, done, 1000}});
}

static void start_with(struct drilled *d, struct job_row row, bool two_nodes)
{
    lab_init(&d->l);
    d->node = lab_join(&d->l, "n1", 4);
    d->other = two_nodes ? lab_join(&d->l, "n2", 4) : CORE_ID_NONE;
    STR_COPY(row.script_key, KEY);
    d->job = lab_submit(&d->l, &row);
    lab_plan(&d->l);
    assert_int_equal(lab_node_of(&d->l, d->job), d->node);
    lab_started(&d->l, d->job);
    lab_wait(&d->l, 10000);
    report_progress(d, 60);
    lab_take(&d->l);
}

static void start(struct drilled *d)
{
    start_with(d, lab_job(4), true);
}

static int try_drill(struct drilled *d, bool without_notice)
{
    struct event ev = {.type = EV_DRILL, .drill = {d->job, "ann", without_notice}};
    return lab_try(&d->l, &ev, NULL);
}

static void drill(struct drilled *d)
{
    assert_int_equal(try_drill(d, false), 0);
    const struct attempt_row *a = &job_attempt(model_job(d->l.m, d->job))->row;
    assert_int_equal(a->state, ATTEMPT_STOPPING);
    assert_int_equal(a->stop_reason, END_DRILLED);
    assert_true(a->save_first);
}

static void save_and_end(struct drilled *d)
{
    lab_wait(&d->l, 1000);
    lab_saved(&d->l, d->job, 1, 61);
    lab_wait(&d->l, 500);
    lab_ended(&d->l, d->job, END_DRILLED, 85);
}

static void resume(struct drilled *d)
{
    lab_wait(&d->l, 2000);
    lab_plan(&d->l);
    lab_started(&d->l, d->job);
}

/* The last row of its drill. */
static struct drill_row row(struct drilled *d)
{
    static const struct drill_row none = {0};
    lab_take(&d->l);
    return d->l.c.n_drills ? d->l.c.drills[d->l.c.n_drills - 1] : none;
}

static bool is_certified(const struct drilled *d)
{
    const struct job *j = model_job(d->l.m, d->job);
    return wall_is_set(j->certified_at);
}

static void end(struct drilled *d)
{
    lab_deinit(&d->l);
}

static void a_job_that_goes_on_where_it_was_is_certified(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    save_and_end(&d);
    assert_int_equal(model_job(d.l.m, d.job)->row.state, JOB_PENDING);
    resume(&d);
    assert_int_equal(lab_node_of(&d.l, d.job), d.other);
    assert_false(is_certified(&d));
    lab_wait(&d.l, 1500);
    report_progress(&d, 62);
    struct drill_row r = row(&d);
    assert_string_equal(r.text, "resumes in 3.5s at step 62, loses 0 steps: 1000 B, saved in "
                                "100ms, were restored on another node");
    assert_int_equal(r.state, DRILL_PASSED);
    assert_int_equal(r.killed_at.ms - r.asked_at.ms, 1500);
    assert_int_equal(r.resume_ms, 3500);
    assert_int_equal(r.saved.attempt * 1000 + r.saved.sequence, 1001);
    assert_int_equal(r.saved_progress, 61);
    assert_int_equal(r.restore_ms, 500);
    assert_int_equal(r.resumed_attempt, 2);
    assert_string_equal(r.version, BELAY_VERSION);
    assert_string_equal(lab_history(&d.l, "drill-passed")->text, r.text);
    const struct job_row *j = &model_job(d.l.m, d.job)->row;
    assert_int_equal(
        j->reclaims + j->used[RETRY_FAILED] + j->used[RETRY_NODE_LOST] + j->used_checkpointed, 0);
    assert_int_equal(j->drills, 1);
    assert_true(is_certified(&d));
    end(&d);
}

static void a_job_that_begins_again_is_not(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    save_and_end(&d);
    resume(&d);
    report_progress(&d, 1);
    struct drill_row r = row(&d);
    assert_int_equal(r.state, DRILL_FAILED);
    assert_non_null(
        strstr(r.text, "it was at step 1 after the resume, and its checkpoint 1.1 at step 61"));
    assert_false(is_certified(&d));
    assert_int_equal(model_job(d.l.m, d.job)->row.state, JOB_RUNNING);
    end(&d);
}

/* The agent was cut off: its first report is already beyond the checkpoint. */
static void the_first_report_after_the_resume_decides(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    save_and_end(&d);
    resume(&d);
    lab_apply(&d.l, (struct event){.type = EV_PROGRESS,
                        .progress = {.job = d.job,
                            .attempt = 2,
                            .done = 900,
                            .total = 1000,
                            .has_first = true,
                            .first = 1}});
    assert_int_equal(row(&d).state, DRILL_FAILED);
    end(&d);
}

static void a_job_that_does_not_save_is_not(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    lab_ended(&d.l, d.job, END_DRILLED, 143);
    struct drill_row r = row(&d);
    assert_int_equal(r.state, DRILL_FAILED);
    assert_non_null(strstr(r.text, "it did not save on request"));
    assert_int_equal(model_job(d.l.m, d.job)->row.state, JOB_PENDING);
    assert_int_equal(model_job(d.l.m, d.job)->row.lost_steps, 60); /* the cost is visible */
    end(&d);
}

static void a_job_that_fails_after_the_resume_is_not(void **state)
{
    (void)state;
    struct drilled d;
    start_with(&d,
        (struct job_row){.spec.nodes = 1,
            .spec.name = "x",
            .user = "u",
            .spec.need = {4, 0, 100},
            .spec.method = CKPT_COOP,
            .spec.ckpt_signal = SIGUSR1,
            .spec.ckpt_keep = 1},
        true);
    drill(&d);
    save_and_end(&d);
    resume(&d);
    lab_ended(&d.l, d.job, END_FAILED, 7);
    struct drill_row r = row(&d);
    assert_int_equal(r.state, DRILL_FAILED);
    assert_non_null(strstr(r.text, "failed with exit code 7"));
    assert_null(model_job(d.l.m, d.job));
    end(&d);
}

static void a_checkpoint_that_does_not_come_back_is_a_failure(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    save_and_end(&d);
    lab_plan(&d.l);
    lab_apply(&d.l, (struct event){.type = EV_ATTEMPT_STARTED,
                        .started = {.job = d.job,
                            .attempt = 2,
                            .node = d.other,
                            .damaged = 1,
                            .restored_progress = PROGRESS_NONE}});
    struct drill_row r = row(&d);
    assert_int_equal(r.state, DRILL_FAILED);
    assert_non_null(strstr(r.text, "from checkpoint 0.0 and not from 1.1"));
    end(&d);
}

static void without_notice_the_checkpoint_before_is_what_counts(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    assert_int_equal(try_drill(&d, true), ERR_CONFLICT); /* there is none yet */
    lab_saved(&d.l, d.job, 1, 50);
    assert_int_equal(try_drill(&d, true), 0);
    assert_false(job_attempt(model_job(d.l.m, d.job))->row.save_first);
    lab_ended(&d.l, d.job, END_DRILLED, 137);
    resume(&d);
    report_progress(&d, 51);
    struct drill_row r = row(&d);
    assert_int_equal(r.state, DRILL_PASSED);
    assert_int_equal(r.lost_steps, 10);
    assert_true(r.without_notice);
    end(&d);
}

static void a_program_without_progress_reports_has_to_stay_up(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct drilled d;
        start(&d);
        model_job(d.l.m, d.job)->row.progress = PROGRESS_NONE;
        drill(&d);
        lab_saved(&d.l, d.job, 1, PROGRESS_NONE);
        lab_ended(&d.l, d.job, END_DRILLED, 85);
        resume(&d);
        assert_int_equal(job_side(model_job(d.l.m, d.job))->drill->row.state, DRILL_RESUMED);
        lab_heartbeats(&d.l);
        if (how == 0) {
            lab_wait(&d.l, 29000);
            assert_int_equal(lab_plan(&d.l), 0);
            lab_wait(&d.l, 1000);
            lab_heartbeats(&d.l);
            assert_int_equal(lab_plan(&d.l), 1);
        } else if (how == 1) {
            lab_saved(&d.l, d.job, 1, PROGRESS_NONE);
        } else {
            lab_ended(&d.l, d.job, END_SUCCEEDED, 0);
        }
        struct drill_row r = row(&d);
        assert_int_equal(r.state, DRILL_PASSED);
        assert_int_equal(r.lost_steps, PROGRESS_NONE);
        assert_int_equal(how == 1 || r.resume_ms == 2000, 1);
        end(&d);
    }
}

static void a_program_that_fell_silent_is_not_certified(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    save_and_end(&d);
    resume(&d);
    for (int k = 0; k < 180; k++) {
        lab_wait(&d.l, 10000);
        lab_heartbeats(&d.l);
        lab_plan(&d.l);
    }
    assert_int_equal(row(&d).state, DRILL_FAILED);
    end(&d);
}

/* Each leaves a job that continues as without the drill, or has ended as it would have. */
static void other_stops_interrupt_a_drill(void **state)
{
    (void)state;
    static const struct {
        int stage; /* 0 stopping, 1 queued, 2 resumed */
        enum end_kind end;
        enum job_state then;
    } cases[] = {{0, END_SUCCEEDED, JOB_ENDED}, {0, END_RECLAIMED, JOB_PENDING},
        {0, END_NODE_LOST, JOB_PENDING}, {0, END_CANCELLED, JOB_ENDED},
        {1, END_CANCELLED, JOB_ENDED}, {2, END_CANCELLED, JOB_ENDED},
        {2, END_RECLAIMED, JOB_PENDING}, {2, END_NODE_LOST, JOB_PENDING},
        {2, END_SUCCEEDED, JOB_ENDED}, {2, END_TIMEOUT, JOB_ENDED}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct drilled d;
        start(&d);
        drill(&d);
        if (cases[k].stage > 0)
            save_and_end(&d);
        if (cases[k].stage > 1)
            resume(&d);
        if (cases[k].end == END_CANCELLED)
            lab_apply(&d.l, (struct event){.type = EV_CANCEL, .cancel = {d.job, "ann"}});
        if (cases[k].stage != 1)
            lab_ended(&d.l, d.job, cases[k].end, 0);
        const struct job *j = model_job(d.l.m, d.job);
        assert_int_equal(j ? j->row.state : JOB_ENDED, cases[k].then);
        assert_true(!j || !job_side(j)->drill);
        assert_int_equal(row(&d).state, DRILL_INTERRUPTED);
        if (j && j->row.reclaims == 0)
            fail_msg("case %zu: a real reclaim is one", k);
        end(&d);
    }
}

static void without_another_node_the_same_node_is_used(void **state)
{
    (void)state;
    struct drilled d;
    start_with(&d, lab_job(4), false);
    drill(&d);
    save_and_end(&d);
    assert_int_equal(job_side(model_job(d.l.m, d.job))->avoid, CORE_ID_NONE);
    resume(&d);
    assert_int_equal(lab_node_of(&d.l, d.job), d.node);
    report_progress(&d, 61);
    assert_non_null(strstr(row(&d).text, "on the same node, as there was no other"));
    end(&d);
}

/* A machine is launched for it although its former one is empty; other jobs may use that. */
static void another_machine_is_launched_for_it(void **state)
{
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        struct drilled d;
        start_with(&d, lab_job(4), false);
        lab_elastic(&d.l, "burst", 2, "m5", 4);
        drill(&d);
        save_and_end(&d);
        assert_int_equal(job_side(model_job(d.l.m, d.job))->avoid, d.node);
        assert_int_equal(lab_plan(&d.l), 1);
        struct reason reasons[EXPLAIN_REASONS_MAX];
        assert_true(core_explain(d.l.m, d.l.now, d.job, reasons, EXPLAIN_REASONS_MAX) > 1);
        assert_string_equal(reasons[0].code, "drill");
        int64_t second = lab_submit_cpus(&d.l, 4);
        assert_int_equal(lab_plan(&d.l), 1);
        assert_int_equal(lab_node_of(&d.l, second), d.node);
        lab_started(&d.l, second);
        if (comes) {
            int64_t machine = lab_bring_up(&d.l, 1, 4);
            lab_plan(&d.l);
            assert_int_equal(lab_node_of(&d.l, d.job), machine);
        } else {
            lab_ended(&d.l, second, END_SUCCEEDED, 0);
            for (int k = 0; k < 62 && lab_node_of(&d.l, d.job) == CORE_ID_NONE; k++) {
                assert_int_equal(job_side(model_job(d.l.m, d.job))->avoid, d.node);
                lab_wait(&d.l, 10000);
                lab_heartbeats(&d.l);
                lab_plan(&d.l);
            }
            assert_int_equal(lab_node_of(&d.l, d.job), d.node);
        }
        end(&d);
    }
}

static void a_job_submitted_with_a_drill_is_drilled_once(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct drilled d;
        struct job_row r = lab_job(4);
        r.spec.drill_tries = DRILL_TRIES_DEFAULT;
        start_with(&d, r, true);
        assert_int_equal(lab_plan(&d.l), 0);
        if (how == 0) {
            lab_saved(&d.l, d.job, 1, 60);
        } else if (how == 1) {
            lab_wait(&d.l, 50000);
            lab_heartbeats(&d.l);
            report_progress(&d, 300);
        } else {
            for (int k = 0; k < 59; k++) {
                lab_wait(&d.l, 10000);
                lab_heartbeats(&d.l);
                assert_int_equal(lab_plan(&d.l), k == 58);
            }
        }
        if (how < 2)
            assert_int_equal(lab_plan(&d.l), 1);
        assert_int_equal(job_side(model_job(d.l.m, d.job))->drill->row.state, DRILL_STOPPING);
        lab_saved(&d.l, d.job, 2, 400);
        lab_ended(&d.l, d.job, END_DRILLED, 85);
        resume(&d);
        report_progress(&d, 400);
        assert_int_equal(row(&d).state, DRILL_PASSED);
        assert_int_equal(model_job(d.l.m, d.job)->row.spec.drill_tries, 0);
        lab_saved(&d.l, d.job, 1, 500);
        assert_int_equal(lab_plan(&d.l), 0);
        end(&d);
    }
}

static void one_that_is_interrupted_is_tried_three_times(void **state)
{
    (void)state;
    struct drilled d;
    struct job_row r = lab_job(4);
    r.spec.drill_tries = DRILL_TRIES_DEFAULT;
    start_with(&d, r, true);
    for (int k = 0; k < 4; k++) {
        lab_saved(&d.l, d.job, 1, 100 + k);
        assert_int_equal(lab_plan(&d.l), k < 3);
        if (k == 3)
            break;
        lab_ended(&d.l, d.job, END_NODE_LOST, 0);
        assert_int_equal(row(&d).state, DRILL_INTERRUPTED);
        resume(&d);
    }
    end(&d);
}

static void what_cannot_be_drilled_is_refused(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    drill(&d);
    assert_int_equal(try_drill(&d, false), ERR_CONFLICT); /* twice */
    save_and_end(&d);
    assert_int_equal(try_drill(&d, false), ERR_CONFLICT); /* queued */
    d.job = 77;
    assert_int_equal(try_drill(&d, false), ERR_NOT_FOUND);
    end(&d);

    start_with(&d,
        (struct job_row){.spec.nodes = 1,
            .spec.name = "x",
            .user = "u",
            .spec.need = {4, 0, 100},
            .spec.ckpt_signal = SIGUSR1,
            .spec.ckpt_keep = 1},
        true);
    assert_int_equal(try_drill(&d, false), ERR_CONFLICT); /* it saves nothing */
    struct job_row r = {.spec.nodes = 1,
        .spec.name = "x",
        .user = "u",
        .spec.need = {4, 0, 100},
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 1,
        .spec.drill_tries = 1};
    struct event ev = {.type = EV_SUBMIT, .submit.job = &r};
    assert_int_equal(lab_try(&d.l, &ev, NULL), ERR_INVALID);
    end(&d);

    start(&d);
    report_progress(&d, 0);
    assert_int_equal(try_drill(&d, false), ERR_CONFLICT);
    report_progress(&d, 5);
    lab_notice(&d.l, d.node, NOTICE_TYPE_RECLAIM, 60000);
    assert_int_equal(try_drill(&d, false), ERR_CONFLICT);
    end(&d);
}

static void the_newest_drill_of_a_script_decides(void **state)
{
    (void)state;
    struct drilled d;
    start(&d);
    struct job_row twin = lab_job(1), stranger = lab_job(1);
    STR_COPY(twin.script_key, KEY);
    STR_COPY(stranger.script_key, "another");
    int64_t pending = lab_submit(&d.l, &twin), other = lab_submit(&d.l, &stranger);
    for (int good = 1; good >= 0; good--) {
        assert_int_equal(try_drill(&d, false), 0);
        lab_saved(&d.l, d.job, 1, 100);
        lab_ended(&d.l, d.job, END_DRILLED, 85);
        resume(&d);
        report_progress(&d, good ? 101 : 3);
        assert_int_equal(wall_is_set(model_job(d.l.m, pending)->certified_at), good);
        assert_false(wall_is_set(model_job(d.l.m, other)->certified_at));
        int64_t later = lab_submit(&d.l, &twin);
        assert_int_equal(wall_is_set(model_job(d.l.m, later)->certified_at), good);
        report_progress(&d, 200);
    }
    end(&d);
}

static int compare(struct drilled *d, const struct drill_row *r, bool equal)
{
    struct event ev = {.type = EV_DRILL_COMPARED,
        .compared = {.drill = r, .with = 41, .equal = equal, .by = "ann", .text = "exit code 1"}};
    return lab_try(&d->l, &ev, NULL);
}

/* The job has ended by then; a different result revokes the certificate. */
static void a_result_is_compared_after_the_end(void **state)
{
    (void)state;
    struct drilled d;
    struct job_row twin = lab_job(1);
    STR_COPY(twin.script_key, KEY);
    start(&d);
    drill(&d);
    save_and_end(&d);
    resume(&d);
    report_progress(&d, 62);
    struct drill_row r = row(&d);
    lab_ended(&d.l, d.job, END_SUCCEEDED, 0);
    assert_null(model_job(d.l.m, d.job));
    assert_int_equal(compare(&d, &r, true), 0);
    r = row(&d);
    assert_int_equal(r.state * 100 + r.compared_with, DRILL_PASSED * 100 + 41);
    assert_int_equal(lab_history(&d.l, "drill-compared")->job, d.job);
    assert_string_equal(lab_history(&d.l, "drill-compared")->text,
        "for ann: its result equals that of job 41, which ran undisturbed");
    assert_true(wall_is_set(model_job(d.l.m, lab_submit(&d.l, &twin))->certified_at));
    lab_wait(&d.l, 5000);
    assert_int_equal(compare(&d, &r, false), 0);
    r = row(&d);
    assert_int_equal(r.state, DRILL_FAILED);
    assert_int_equal(r.ended_at.ms, d.l.now.wall.ms); /* newer than any passed drill */
    assert_string_equal(r.text, "it resumed, but its result differs from that of job 41, which ran "
                                "undisturbed: exit code 1");
    assert_false(wall_is_set(model_job(d.l.m, lab_submit(&d.l, &twin))->certified_at));
    assert_int_equal(compare(&d, &r, true), ERR_CONFLICT); /* a failed one stays failed */
    end(&d);
}

/* ---- pools that require a drill ---- */

/* belayd may restart at every stage. */
static void a_drill_outlives_a_restart(void **state)
{
    (void)state;
    struct drilled d;
    struct shelf s = {0};
    start_with(&d, lab_job(4), false);
    lab_deinit(&d.l);
    lab_init(&d.l);
    lab_elastic(&d.l, "burst", 2, "m5", 4);
    d.node = lab_join(&d.l, "n1", 4);
    struct job_row r = lab_job(4);
    STR_COPY(r.script_key, KEY);
    d.job = lab_submit(&d.l, &r);
    for (int stage = 0; stage < 6; stage++) {
        if (stage == 0) {
            lab_plan(&d.l);
            lab_started(&d.l, d.job);
            report_progress(&d, 60);
            drill(&d);
        } else if (stage == 1) {
            save_and_end(&d);
        } else if (stage == 2) {
            assert_int_equal(job_side(model_job(d.l.m, d.job))->avoid, d.node);
            assert_int_equal(lab_plan(&d.l), 1);
            lab_bring_up(&d.l, 1, 4);
            lab_plan(&d.l);
        } else if (stage == 3) {
            lab_started(&d.l, d.job);
        } else if (stage == 4) {
            report_progress(&d, 62);
            assert_null(job_side(model_job(d.l.m, d.job))->drill);
        } else {
            assert_true(is_certified(&d));
        }
        lab_take(&d.l);
        shelf_put(&s, &d.l.c);
        model_destroy(d.l.m);
        planner_destroy(d.l.p);
        d.l.m = shelf_load(&s, d.l.now);
        d.l.p = planner_create();
        shelf_compare(&s, d.l.m);
    }
    assert_int_equal(s.n_drills, 1);
    assert_int_equal(s.drills[0].state, DRILL_PASSED);
    shelf_deinit(&s);
    end(&d);
}

/* ---- programs that start over, without a drill ---- */

/* The attempt ends, and the next one has a node. */
static void restart_attempt(struct drilled *d)
{
    lab_ended(&d->l, d->job, END_RECLAIMED, 0);
    lab_plan(&d->l);
}

/* Restored at a step, continues at another soon after, and has reached `upto` when it saves. */
static void attempt(struct drilled *d, int64_t attempt, int64_t saved, int64_t begins, int64_t upto)
{
    const struct job_row *r = &model_job(d->l.m, d->job)->row;
    lab_apply(&d->l, (struct event){.type = EV_ATTEMPT_STARTED,
                         .started = {.job = d->job,
                             .attempt = attempt,
                             .node = lab_node_of(&d->l, d->job),
                             .restored = r->last_good,
                             .restored_progress = saved}});
    report_progress(d, begins);
    report_progress(d, begins + 1);
    report_progress(d, upto);
    lab_saved(&d->l, d->job, 1, upto);
}

static void a_job_that_starts_over_repeatedly_is_held_with_the_reason(void **state)
{
    (void)state;
    struct drilled d;
    lab_init(&d.l);
    d.node = lab_join(&d.l, "n1", 4);
    struct job_row row = lab_job(4);
    d.job = lab_submit(&d.l, &row);
    lab_plan(&d.l);
    lab_started(&d.l, d.job);
    report_progress(&d, 60);
    lab_saved(&d.l, d.job, 1, 60);
    restart_attempt(&d);
    const struct job_row *r = &model_job(d.l.m, d.job)->row;
    attempt(&d, 2, 60, 0, 50);
    assert_int_equal(r->no_progress, 1);
    restart_attempt(&d);
    /* it resumed once, but not beyond its maximum: inconclusive */
    attempt(&d, 3, 50, 50, 55);
    assert_int_equal(r->no_progress, 1);
    restart_attempt(&d);
    attempt(&d, 4, 55, 0, 61); /* it exceeded all earlier progress from the beginning */
    assert_int_equal(r->no_progress, 0);
    restart_attempt(&d);
    for (int i = 5; i < 5 + LAB_NO_PROGRESS_MAX; i++) {
        assert_int_equal(r->hold, HOLD_NONE);
        lab_take(&d.l);
        attempt(&d, i, r->last_good_progress, 0, 20 - i);
        assert_int_equal(r->no_progress, i - 4);
        lab_take(&d.l);
        assert_non_null(lab_history(&d.l, "in-vain"));
        restart_attempt(&d);
    }
    assert_int_equal(r->state, JOB_PENDING);
    assert_int_equal(r->hold, HOLD_USER);
    lab_apply(&d.l, (struct event){.type = EV_RELEASE, .release = {.job = d.job, .by = "ann"}});
    assert_int_equal(r->no_progress, 0);
    lab_plan(&d.l);
    assert_int_equal(r->state, JOB_RUNNING);
    lab_deinit(&d.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_goes_on_where_it_was_is_certified),
        cmocka_unit_test(a_job_that_begins_again_is_not),
        cmocka_unit_test(the_first_report_after_the_resume_decides),
        cmocka_unit_test(a_job_that_does_not_save_is_not),
        cmocka_unit_test(a_job_that_fails_after_the_resume_is_not),
        cmocka_unit_test(a_checkpoint_that_does_not_come_back_is_a_failure),
        cmocka_unit_test(without_notice_the_checkpoint_before_is_what_counts),
        cmocka_unit_test(a_program_without_progress_reports_has_to_stay_up),
        cmocka_unit_test(a_program_that_fell_silent_is_not_certified),
        cmocka_unit_test(other_stops_interrupt_a_drill),
        cmocka_unit_test(without_another_node_the_same_node_is_used),
        cmocka_unit_test(another_machine_is_launched_for_it),
        cmocka_unit_test(a_job_submitted_with_a_drill_is_drilled_once),
        cmocka_unit_test(one_that_is_interrupted_is_tried_three_times),
        cmocka_unit_test(what_cannot_be_drilled_is_refused),
        cmocka_unit_test(the_newest_drill_of_a_script_decides),
        cmocka_unit_test(a_result_is_compared_after_the_end),
        cmocka_unit_test(a_drill_outlives_a_restart),
        cmocka_unit_test(a_job_that_starts_over_repeatedly_is_held_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
