/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs and attempts: users' requests, agents' reports, and stale ones. Ends are in test_ends.c.
 */
#include "tests/core/lifecycle/running.h"
#include "tests/core/shelf.h"

#include "base/str.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/core/model/changes.h"
#include <stdlib.h>
#include <string.h>

static void submit_numbers_and_resets_the_row(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row r = lab_job(2);
    r.id = 77;
    r.state = JOB_ENDED;
    r.attempts = 5;
    r.used[RETRY_FAILED] = 3;
    r.cost_uusd = 9;
    r.last_good = (struct ckpt_ref){4, 4};
    assert_int_equal(lab_submit(&l, &r), 1);
    assert_int_equal(lab_submit(&l, &r), 2);
    lab_take(&l);
    const struct job_row *got = lab_row(&l, 1);
    assert_int_equal(got->state, JOB_PENDING);
    assert_int_equal(
        got->attempts + got->used[RETRY_FAILED] + got->cost_uusd + got->last_good.attempt, 0);
    assert_int_equal(got->progress, PROGRESS_NONE);
    assert_false(wall_is_set(got->started_at) || wall_is_set(got->ended_at) ||
                 wall_is_set(got->last_good_at));
    assert_int_equal(got->submitted_at.ms, l.now.wall.ms);
    assert_int_equal(l.c.n_specs, 2);
    assert_string_equal(l.c.specs[0].script, "#!/bin/sh\ntrue\n");
    assert_int_equal(l.c.next_job, 3);
    assert_string_equal(lab_history(&l, "submitted")->text, "'train' submitted by ann");
    lab_deinit(&l);
}

static void submit_refuses_what_no_node_could_hold(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row bad[] = {lab_job(0), lab_job(1), lab_job(1), lab_job(1), lab_job(1), lab_job(1),
        lab_job(1), lab_job(4097)};
    bad[1].spec.need.gpus = -1;
    bad[2].spec.need.memory_mib = -1;
    bad[3].spec.ckpt_keep = 0;
    bad[4].spec.time_limit_ms = -1;
    bad[5].spec.ckpt_keep = 1001;
    bad[6].spec.market = WISH_ON_DEMAND + 1;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        struct event ev = {.type = EV_SUBMIT, .submit.job = &bad[k]};
        if (lab_try(&l, &ev, NULL) != ERR_INVALID)
            fail_msg("job %zu: %s", k, l.e.text);
    }
    struct model_counts c;
    model_counts(l.m, &c);
    assert_int_equal(c.pending + c.shapes, 0);
    lab_deinit(&l);
}

static void a_pending_job_is_cancelled_at_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t job = lab_submit_cpus(&l, 1);
    assert_int_equal(lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "bob"}}), job);
    assert_null(model_job(l.m, job));
    lab_take(&l);
    assert_int_equal(lab_row(&l, job)->state, JOB_ENDED);
    assert_int_equal(lab_row(&l, job)->end, END_CANCELLED);
    assert_string_equal(lab_history(&l, "cancel")->text, "cancelled by bob");
    struct event again = {.type = EV_CANCEL, .cancel = {job, "bob"}};
    assert_int_equal(lab_try(&l, &again, NULL), ERR_NOT_FOUND);
    lab_deinit(&l);
}

static void a_running_job_is_cancelled_when_its_attempt_has_ended(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {r.job, "ann"}});
    assert_int_equal(row(&r)->state, JOB_CANCELLING);
    const struct attempt_row *a = &job_attempt(model_job(r.l.m, r.job))->row;
    assert_int_equal(a->state, ATTEMPT_STOPPING);
    assert_int_equal(a->stop_reason, END_CANCELLED);
    assert_false(a->save_first);
    /* repeated: no effect */
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {r.job, "ann"}});
    struct event requeue = {.type = EV_REQUEUE, .requeue = {r.job, "ann"}};
    assert_int_equal(lab_try(&r.l, &requeue, NULL), ERR_CONFLICT);
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    lab_take(&r.l);
    assert_int_equal(lab_row(&r.l, r.job)->state, JOB_ENDED);
    assert_int_equal(lab_row(&r.l, r.job)->end, END_CANCELLED);
    assert_int_equal(lab_row(&r.l, r.job)->lost_ms, 0); /* no work is repeated */
    lab_deinit(&r.l);
}

static void a_cancelled_job_that_succeeds_first_has_succeeded(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {r.job, "ann"}});
    lab_ended(&r.l, r.job, END_SUCCEEDED, 0);
    lab_take(&r.l);
    assert_int_equal(lab_row(&r.l, r.job)->end, END_SUCCEEDED);
    lab_deinit(&r.l);
}

static void a_cancel_overrides_a_drain(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_DRAIN, .drain.node = r.node});
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.stop_reason, END_DRAINED);
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {r.job, "ann"}});
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.stop_reason, END_CANCELLED);
    assert_false(job_attempt(model_job(r.l.m, r.job))->row.save_first);
    lab_ended(&r.l, r.job, END_DRAINED, 0);
    assert_null(row(&r));
    lab_deinit(&r.l);
}

static int ask_to_save(struct running *r)
{
    struct event ev = {.type = EV_SAVE, .save = {r->job, "ann"}};
    return lab_try(&r->l, &ev, NULL);
}

static void a_save_is_asked_for_while_there_is_something_to_save(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    for (int n = 1; n <= 2; n++) {
        assert_int_equal(ask_to_save(&r), 0);
        assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.saves_asked, n);
    }
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "save")->text, "ann requested a save");
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.state, ATTEMPT_RUNNING);
    lab_apply(&r.l, (struct event){.type = EV_DRAIN, .drain.node = r.node});
    assert_int_equal(ask_to_save(&r), 0); /* a save is in progress */
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.saves_asked, 2);
    lab_ended(&r.l, r.job, END_DRAINED, 0);
    assert_int_equal(ask_to_save(&r), ERR_CONFLICT); /* pending */
    lab_apply(&r.l, (struct event){.type = EV_UNDRAIN, .undrain.node = r.node});
    lab_plan(&r.l);
    /* another attempt */
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.saves_asked, 0);
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {r.job, "ann"}});
    assert_int_equal(ask_to_save(&r), ERR_CONFLICT); /* the request was dropped */
    model_job(r.l.m, r.job)->row.spec.method = CKPT_NONE;
    assert_int_equal(ask_to_save(&r), ERR_CONFLICT);
    lab_deinit(&r.l);
}

static const struct attempt_row *attempt_of(const struct running *r)
{
    return &job_attempt(model_job(r->l.m, r->job))->row;
}

static void ask_requeue(struct running *r, bool force)
{
    struct event ev = {.type = EV_REQUEUE, .requeue = {.job = r->job, .by = "ann", .force = force}};
    lab_apply(&r->l, ev);
}

static void save_failed(struct running *r, const char *text)
{
    struct event ev = {
        .type = EV_SAVE_FAILED, .save_failed = {.job = r->job, .attempt = 1, .node = r->node}};
    STR_COPY(ev.save_failed.text, text);
    lab_apply(&r->l, ev);
}

/* Of an attempt that has not started nothing can be saved: a checkpoint did not come back. */
static void a_restore_that_fails_is_no_failed_save(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 1, 40);
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    lab_plan(&r.l);
    assert_int_equal(attempt_of(&r)->attempt, 2);
    assert_false(wall_is_set(attempt_of(&r)->started_at));
    lab_take(&r.l);
    lab_apply(&r.l, (struct event){.type = EV_SAVE_FAILED,
                        .save_failed = {r.job, 2, r.node, "checkpoint 1.1 cannot be resumed"}});
    lab_take(&r.l);
    const struct history_row *h = lab_history(&r.l, "restore-failed");
    assert_non_null(h);
    assert_string_equal(h->text, "checkpoint 1.1 cannot be resumed");
    assert_null(lab_history(&r.l, "save-failed"));
    assert_false(job_attempt(model_job(r.l.m, r.job))->save_failed);
    lab_deinit(&r.l);
}

/* belayd was away when an older checkpoint was resumed: it hears of the start at the same time. */
static void a_restore_that_failed_is_no_failed_save_after_the_start_either(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    ask_requeue(&r, false);
    lab_take(&r.l);
    assert_true(wall_is_set(attempt_of(&r)->started_at));
    lab_apply(&r.l, (struct event){.type = EV_SAVE_FAILED,
                        .save_failed = {.job = r.job,
                            .attempt = 1,
                            .node = r.node,
                            .text = "checkpoint 1.1 cannot be resumed",
                            .is_restore = true}});
    lab_take(&r.l);
    assert_non_null(lab_history(&r.l, "restore-failed"));
    assert_null(lab_history(&r.l, "save-failed"));
    assert_null(lab_history(&r.l, "requeue-dropped"));
    assert_false(job_attempt(model_job(r.l.m, r.job))->save_failed);
    lab_deinit(&r.l);
}

static void a_requeue_whose_save_fails_leaves_the_job_running(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    ask_requeue(&r, false);
    lab_take(&r.l);
    save_failed(&r, "the store is full");
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_RUNNING);
    assert_false(wall_is_set(attempt_of(&r)->requeue_asked_at));
    lab_take(&r.l);
    assert_non_null(
        strstr(lab_history(&r.l, "requeue-dropped")->text, "its save failed: the store is full"));
    lab_saved(&r.l, r.job, 1, 40); /* it has ended */
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_RUNNING);
    ask_requeue(&r, true);
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_STOPPING);
    assert_true(attempt_of(&r)->save_first);
    lab_deinit(&r.l);
}

static void a_requeue_without_a_checkpoint_in_time_leaves_the_job_running(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    ask_requeue(&r, false);
    for (int s = 0; s < 600; s += 10) {
        lab_plan(&r.l);
        assert_true(wall_is_set(attempt_of(&r)->requeue_asked_at));
        lab_wait(&r.l, 10000);
        lab_heartbeats(&r.l);
    }
    lab_plan(&r.l);
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_RUNNING);
    assert_false(wall_is_set(attempt_of(&r)->requeue_asked_at));
    lab_take(&r.l);
    assert_non_null(
        strstr(lab_history(&r.l, "requeue-dropped")->text, "it had no new checkpoint "));
    lab_deinit(&r.l);
}

/* The timeout is 600 s plus four times the duration of the last save. */
static void of_two_requeues_the_one_that_saves_faster_is_given_up_first(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t slow = lab_submit_cpus(&l, 1), fast = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    for (int64_t job = slow; job <= fast; job++) {
        lab_started(&l, job);
        lab_saved(&l, job, 1, 10); /* in 100 ms */
    }
    model_job(l.m, slow)->row.save_ms = 10000; /* in 10 s */
    touch_job(l.m, model_job(l.m, slow));
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {.job = slow, .by = "ann"}});
    lab_wait(&l, 5000);
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {.job = fast, .by = "ann"}});
    const int64_t asked_at = l.now.wall.ms;
    for (int k = 0; k < 2; k++) {
        lab_take(&l);
        shelf_put(&s, &l.c);
        model_destroy(l.m);
        l.m = shelf_load(&s, l.now);
        shelf_compare(&s, l.m);
        const struct job *waits = model_job(l.m, k == 0 ? fast : slow);
        const int64_t due = k == 0 ? asked_at + 600400 : asked_at - 5000 + 640000;
        while (wall_is_set(job_attempt(waits)->row.requeue_asked_at)) {
            assert_true(l.now.wall.ms < due);
            lab_wait(&l, due - l.now.wall.ms < 10000 ? due - l.now.wall.ms : 10000);
            lab_heartbeats(&l);
            lab_plan(&l);
        }
        assert_int_equal(l.now.wall.ms, due);
    }
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void a_requeue_without_a_time_to_check_it_is_a_contradiction(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct attempt *a = job_attempt(model_job(r.l.m, r.job));
    a->row.requeue_asked_at = r.l.now.wall;
    assert_int_not_equal(model_check(r.l.m, &r.l.e), 0);
    assert_non_null(strstr(r.l.e.text, "queued again"));
    a->row.requeue_asked_at = WALL_NONE;
    assert_int_equal(model_check(r.l.m, &r.l.e), 0);
    lab_deinit(&r.l);
}

static void a_requeue_gives_way_to_another_stop(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    ask_requeue(&r, false);
    lab_apply(&r.l, (struct event){.type = EV_DRAIN, .drain.node = r.node});
    assert_int_equal(attempt_of(&r)->stop_reason, END_DRAINED);
    assert_false(wall_is_set(attempt_of(&r)->requeue_asked_at));
    save_failed(&r, "the store is full");
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_STOPPING);
    lab_deinit(&r.l);
}

static void what_exits_as_it_is_saved_for_a_requeue_counts_as_requeued(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    ask_requeue(&r, false);
    lab_ended(&r.l, r.job, END_CHECKPOINTED, 85);
    assert_int_equal(row(&r)->state, JOB_PENDING);
    assert_int_equal(row(&r)->end, END_CANCELLED);
    lab_deinit(&r.l);
}

static void what_saves_nothing_is_requeued_at_once(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    model_job(r.l.m, r.job)->row.spec.method = CKPT_NONE;
    ask_requeue(&r, false);
    assert_int_equal(attempt_of(&r)->state, ATTEMPT_STOPPING);
    lab_deinit(&r.l);
}

static void a_requeue_saves_stops_and_queues_again(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_REQUEUE, .requeue = {r.job, "ann"}});
    const struct attempt_row *a = &job_attempt(model_job(r.l.m, r.job))->row;
    assert_int_equal(a->state, ATTEMPT_RUNNING); /* until it is saved */
    assert_int_equal(a->saves_asked, 1);
    assert_true(wall_is_set(a->requeue_asked_at));
    /* repeated: no effect */
    lab_apply(&r.l, (struct event){.type = EV_REQUEUE, .requeue = {r.job, "ann"}});
    assert_int_equal(a->saves_asked, 1);
    lab_saved(&r.l, r.job, 1, 40);
    assert_int_equal(a->state, ATTEMPT_STOPPING);
    assert_int_equal(a->stop_reason, END_CANCELLED);
    assert_true(a->save_first);
    assert_false(wall_is_set(a->requeue_asked_at));
    /* already in progress */
    lab_apply(&r.l, (struct event){.type = EV_REQUEUE, .requeue = {r.job, "ann"}});
    lab_ended(&r.l, r.job, END_FAILED, 143); /* killed by the stop */
    assert_int_equal(row(&r)->state, JOB_PENDING);
    assert_int_equal(row(&r)->end, END_CANCELLED);
    assert_int_equal(row(&r)->used[RETRY_FAILED], 0);
    /* pending: no effect */
    lab_apply(&r.l, (struct event){.type = EV_REQUEUE, .requeue = {r.job, "ann"}});
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "requeued")->text,
        "queued again: resumes at step 40 from checkpoint 1.1");
    lab_plan(&r.l);
    assert_int_equal(row(&r)->attempts, 2);
    lab_deinit(&r.l);
}

static void a_requeue_of_nothing_is_not_found(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct event ev = {.type = EV_REQUEUE, .requeue = {12, "ann"}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_NOT_FOUND);
    lab_deinit(&l);
}

static void placing_makes_a_numbered_attempt_and_takes_the_resources(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), job = lab_submit_cpus(&l, 3);
    lab_apply(&l, (struct event){.type = EV_PLACE, .place = {job, node}});
    const struct attempt_row *a = &job_attempt(model_job(l.m, job))->row;
    assert_int_equal(a->attempt, 1);
    assert_int_equal(a->state, ATTEMPT_ASSIGNED);
    assert_int_equal(a->assigned_at.ms, l.now.wall.ms);
    assert_false(wall_is_set(a->started_at));
    assert_int_equal(a->price_uusd_h, 500000);
    assert_int_equal(model_node(l.m, node)->free.cpus, 1);
    struct event twice = {.type = EV_PLACE, .place = {job, node}};
    assert_int_equal(lab_try(&l, &twice, NULL), ERR_CONFLICT);
    struct event full = {.type = EV_PLACE, .place = {lab_submit_cpus(&l, 2), node}};
    assert_int_equal(lab_try(&l, &full, NULL), ERR_CONFLICT);
    struct event nowhere = {.type = EV_PLACE, .place = {2, 99}};
    assert_int_equal(lab_try(&l, &nowhere, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void a_start_is_notified_once(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct wall first = row(&r)->started_at;
    lab_started(&r.l, r.job);
    lab_take(&r.l);
    assert_null(lab_history(&r.l, "started"));
    assert_int_equal(row(&r)->started_at.ms, first.ms);
    lab_deinit(&r.l);
}

static void the_first_start_dates_the_job(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct wall first = row(&r)->started_at;
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    lab_plan(&r.l);
    lab_wait(&r.l, 500);
    lab_started(&r.l, r.job);
    assert_int_equal(row(&r)->started_at.ms, first.ms);
    assert_true(job_attempt(model_job(r.l.m, r.job))->row.started_at.ms > first.ms);
    lab_deinit(&r.l);
}

static void a_start_while_stopping_is_dated_but_does_not_run(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    lab_started(&l, job);
    assert_int_equal(job_attempt(model_job(l.m, job))->row.state, ATTEMPT_STOPPING);
    assert_true(wall_is_set(job_attempt(model_job(l.m, job))->row.started_at));
    lab_deinit(&l);
}

static void a_resume_from_the_future_is_refused(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct event ev = {.type = EV_ATTEMPT_STARTED,
        .started = {.job = r.job, .attempt = 1, .node = r.node, .restored = {1, 3}}};
    assert_int_equal(lab_try(&r.l, &ev, NULL), ERR_INVALID);
    lab_deinit(&r.l);
}

/* The manifest was committed, but its node was lost before the report. */
static void a_newer_checkpoint_found_in_the_store_counts(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 1, 100);
    lab_ended(&r.l, r.job, END_NODE_LOST, 0);
    lab_plan(&r.l);
    lab_apply(&r.l, (struct event){.type = EV_ATTEMPT_STARTED,
                        .started = {.job = r.job,
                            .attempt = 2,
                            .node = r.node,
                            .restored = {1, 2},
                            .restored_progress = 180}});
    assert_int_equal(row(&r)->last_good.sequence, 2);
    assert_int_equal(row(&r)->last_good_progress, 180);
    lab_deinit(&r.l);
}

static void a_damaged_checkpoint_costs_its_steps_and_is_reported(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 1, 100);
    lab_saved(&r.l, r.job, 2, 150);
    lab_ended(&r.l, r.job, END_RECLAIMED, 85);
    lab_plan(&r.l);
    lab_apply(&r.l, (struct event){.type = EV_ATTEMPT_STARTED,
                        .started = {.job = r.job,
                            .attempt = 2,
                            .node = r.node,
                            .restored = {1, 1},
                            .restored_progress = 100,
                            .restore_ms = 12000,
                            .bytes = 4 << 20,
                            .nearby_bytes = 3 << 20,
                            .damaged = 1}});
    assert_int_equal(row(&r)->lost_steps, 50);
    assert_int_equal(row(&r)->last_good.sequence, 2); /* never decreases; the next save is 2.1 */
    lab_take(&r.l);
    assert_string_equal(
        lab_history(&r.l, "damaged")->text, "1 newer checkpoint did not verify and was set aside");
    assert_int_equal(lab_history(&r.l, "damaged")->a, 1);
    assert_string_equal(lab_history(&r.l, "restored")->text,
        "restored 4.0 MiB in 12s; 1.0 MiB were fetched, the rest was on the node");
    assert_int_equal(lab_history(&r.l, "restored")->b, 3 << 20);
    const struct attempt_row *a = &job_attempt(model_job(r.l.m, r.job))->row;
    assert_int_equal(a->restored_bytes, 4 << 20);
    assert_int_equal(a->nearby_bytes, 3 << 20);
    lab_deinit(&r.l);
}

static void stale_reports_change_nothing(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    lab_plan(&r.l); /* attempt 2 */
    lab_take(&r.l);
    struct event stale[] = {
        ended(&r, 1, r.node),
        ended(&r, 3, r.node),
        ended(&r, 2, r.node + 1),
        {.type = EV_ATTEMPT_ENDED,
            .ended = {.job = 99, .attempt = 1, .node = r.node, .end = END_FAILED}},
        {.type = EV_ATTEMPT_STARTED, .started = {.job = r.job, .attempt = 1, .node = r.node}},
        {.type = EV_CHECKPOINT, .checkpoint = {.job = r.job, .node = r.node, .ref = {1, 9}}},
        {.type = EV_CHECKPOINT, .checkpoint = {.job = r.job, .node = r.node + 1, .ref = {2, 1}}},
        {.type = EV_CHECKPOINT, .checkpoint = {.job = 99, .node = r.node, .ref = {1, 1}}},
        {.type = EV_SAVE_FAILED, .save_failed = {.job = r.job, .attempt = 1, .node = r.node}},
        {.type = EV_NO_CREDENTIALS, .no_credentials = {.job = r.job, .attempt = 1, .node = r.node}},
        {.type = EV_PROGRESS, .progress = {.job = r.job, .attempt = 1, .done = 5}},
        {.type = EV_PROGRESS, .progress = {.job = 99, .attempt = 1, .done = 5}},
    };
    for (size_t k = 0; k < sizeof stale / sizeof stale[0]; k++)
        lab_apply(&r.l, stale[k]);
    lab_take(&r.l);
    assert_true(changes_is_empty(&r.l.c));
    assert_int_equal(row(&r)->progress, PROGRESS_NONE);
    lab_deinit(&r.l);
}

static void an_absurd_end_is_refused(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct event none = ended(&r, 1, r.node), beyond = ended(&r, 1, r.node);
    none.ended.end = END_NONE;
    beyond.ended.end = (enum end_kind)(END_DRILLED + 1);
    assert_int_equal(lab_try(&r.l, &none, NULL), ERR_INVALID);
    assert_int_equal(lab_try(&r.l, &beyond, NULL), ERR_INVALID);
    struct event negative = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = r.job, .node = r.node, .ref = {1, 1}, .took_ms = -1}};
    assert_int_equal(lab_try(&r.l, &negative, NULL), ERR_INVALID);
    assert_int_equal(row(&r)->state, JOB_RUNNING);
    lab_deinit(&r.l);
}

static void checkpoints_only_go_forward(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 2, 100);
    lab_saved(&r.l, r.job, 1, 50);  /* stale */
    lab_saved(&r.l, r.job, 2, 999); /* repeated */
    assert_int_equal(row(&r)->last_good.sequence, 2);
    assert_int_equal(row(&r)->last_good_progress, 100);
    assert_int_equal(row(&r)->save_ms, 100);
    assert_int_equal(row(&r)->ckpt_bytes, 1000);
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_checkpoints, 1);
    const struct history_row *h = lab_history(&r.l, "saved");
    assert_string_equal(h->text, "saved 1000 B in 100ms at step 100 (periodic)");
    assert_int_equal(h->a, 1000);
    assert_int_equal(h->b, 100);
    lab_deinit(&r.l);
}

static void what_the_program_waited_for_is_lost_to_saves_and_sets_the_interval(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct event ev = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = r.job,
            .node = r.node,
            .ref = {1, 1},
            .bytes = 1000,
            .took_ms = 60000,
            .pause_ms = 20,
            .progress = 5,
            .cause = "periodic"}};
    assert_int_equal(lab_try(&r.l, &ev, NULL), 0);
    const struct attempt *a = job_attempt(model_job(r.l.m, r.job));
    assert_int_equal(row(&r)->save_ms, 60000);
    assert_int_equal(row(&r)->pause_ms, 20);
    assert_int_equal(a->row.save_ms, 20);
    assert_int_equal(
        core_interval_ms(a), 240000); /* Young's interval is below a minute, but a save takes one */
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "saved")->text,
        "saved 1000 B in 1m00s at step 5 (periodic); the program was paused for 20ms");
    ev.checkpoint.ref.sequence = 2;
    ev.checkpoint.took_ms = 2000;
    assert_int_equal(lab_try(&r.l, &ev, NULL), 0);
    assert_int_equal(core_interval_ms(a), core_save_interval_ms(20, 0.05));
    ev.checkpoint.ref.sequence = 3;
    ev.checkpoint.took_ms = 3600000;
    assert_int_equal(lab_try(&r.l, &ev, NULL), 0);
    assert_int_equal(core_interval_ms(a), 1800000);
    ev.checkpoint.pause_ms = -1;
    assert_int_equal(lab_try(&r.l, &ev, NULL), ERR_INVALID);
    lab_deinit(&r.l);
}

static void a_save_is_never_dated_in_the_future(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_CHECKPOINT,
                        .checkpoint = {.job = r.job,
                            .node = r.node,
                            .ref = {1, 1},
                            .progress = PROGRESS_NONE,
                            .saved_at = {r.l.now.wall.ms + 60000},
                            .cause = "program"}});
    assert_int_equal(row(&r)->last_good_at.ms, r.l.now.wall.ms);
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "saved")->text, "saved 0 B in 0ms (program)");
    lab_deinit(&r.l);
}

static void progress_is_kept_in_memory_until_something_is_stored(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l, (struct event){.type = EV_PROGRESS, .progress = {r.job, 1, 70, 1000}});
    assert_int_equal(row(&r)->progress, 70);
    lab_take(&r.l);
    assert_true(changes_is_empty(&r.l.c));
    lab_apply(&r.l, (struct event){.type = EV_SAVE_FAILED,
                        .save_failed = {r.job, 1, r.node, "the disk is full"}});
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "save-failed")->text, "the disk is full");
    lab_deinit(&r.l);
}

static void texts_from_outside_are_kept_whole_or_cut_cleanly(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct event ev = ended(&r, 1, r.node);
    ev.ended.end = END_FAILED;
    ev.ended.exit_code = 1;
    for (size_t k = 0; k + 3 < CORE_TEXT_MAX; k += 3)
        memcpy(ev.ended.text + k, "\xe2\x82\xac", 4);
    lab_apply(&r.l, ev);
    lab_take(&r.l);
    const char *text = lab_history(&r.l, "ended")->text;
    assert_true(strlen(text) > CORE_TEXT_MAX - 5);
    assert_true(str_is_utf8(text, strlen(text)));
    lab_deinit(&r.l);
}

static void a_command_in_a_job_is_in_its_history(void **state)
{
    (void)state;
    struct lab l;
    struct event ev = {.type = EV_ENTER, .enter = {.by = "ann", .text = "sh"}};
    struct outcome out = {0};
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    ev.enter.job = lab_submit_cpus(&l, 4);
    ev.now = l.now;
    assert_int_equal(core_apply(l.m, &ev, &out, &l.e), ERR_CONFLICT);
    assert_non_null(strstr(l.e.text, "is not running"));
    lab_plan(&l);
    assert_int_equal(core_apply(l.m, &ev, &out, &l.e), ERR_CONFLICT);
    assert_non_null(strstr(l.e.text, "only being started"));
    lab_apply(&l, (struct event){.type = EV_ATTEMPT_STARTED,
                      .started = {.job = ev.enter.job,
                          .attempt = 1,
                          .node = node,
                          .restored_progress = PROGRESS_NONE}});
    assert_int_equal(core_apply(l.m, &ev, &out, &l.e), 0);
    assert_int_equal(out.id, ev.enter.job);
    ev.enter.rank = 1;
    assert_int_equal(core_apply(l.m, &ev, &out, &l.e), ERR_NOT_FOUND);
    ev.enter.job = 4711;
    assert_int_equal(core_apply(l.m, &ev, &out, &l.e), ERR_NOT_FOUND);
    lab_deinit(&l);
}

static void live_jobs_between_two_numbers_are_found_in_order(void **state)
{
    (void)state;
    struct lab l;
    int64_t *ids;
    lab_init(&l);
    for (int k = 0; k < 10; k++)
        lab_submit_cpus(&l, 1);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = 4});
    static const struct {
        int64_t first, last;
        size_t n;
    } cases[] = {{1, 10, 9}, {3, 5, 2}, {4, 4, 0}, {10, INT64_MAX - 1, 1}, {11, INT64_MAX - 1, 0},
        {5000000, 5999999, 0}, {1, INT64_MAX - 1, 9}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        size_t n = model_jobs_between(l.m, cases[k].first, cases[k].last, &ids);
        assert_int_equal(n, cases[k].n);
        for (size_t i = 0; i < n; i++)
            assert_true(model_job(l.m, ids[i]) && ids[i] >= cases[k].first &&
                        ids[i] <= cases[k].last && (i == 0 || ids[i] > ids[i - 1]));
        free(ids);
    }
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_jobs_between_two_numbers_are_found_in_order),
        cmocka_unit_test(a_command_in_a_job_is_in_its_history),
        cmocka_unit_test(submit_numbers_and_resets_the_row),
        cmocka_unit_test(submit_refuses_what_no_node_could_hold),
        cmocka_unit_test(a_pending_job_is_cancelled_at_once),
        cmocka_unit_test(a_running_job_is_cancelled_when_its_attempt_has_ended),
        cmocka_unit_test(a_cancelled_job_that_succeeds_first_has_succeeded),
        cmocka_unit_test(a_cancel_overrides_a_drain),
        cmocka_unit_test(a_save_is_asked_for_while_there_is_something_to_save),
        cmocka_unit_test(a_requeue_saves_stops_and_queues_again),
        cmocka_unit_test(a_restore_that_fails_is_no_failed_save),
        cmocka_unit_test(a_restore_that_failed_is_no_failed_save_after_the_start_either),
        cmocka_unit_test(a_requeue_whose_save_fails_leaves_the_job_running),
        cmocka_unit_test(a_requeue_without_a_checkpoint_in_time_leaves_the_job_running),
        cmocka_unit_test(of_two_requeues_the_one_that_saves_faster_is_given_up_first),
        cmocka_unit_test(a_requeue_without_a_time_to_check_it_is_a_contradiction),
        cmocka_unit_test(a_requeue_gives_way_to_another_stop),
        cmocka_unit_test(what_exits_as_it_is_saved_for_a_requeue_counts_as_requeued),
        cmocka_unit_test(what_saves_nothing_is_requeued_at_once),
        cmocka_unit_test(a_requeue_of_nothing_is_not_found),
        cmocka_unit_test(placing_makes_a_numbered_attempt_and_takes_the_resources),
        cmocka_unit_test(a_start_is_notified_once),
        cmocka_unit_test(the_first_start_dates_the_job),
        cmocka_unit_test(a_start_while_stopping_is_dated_but_does_not_run),
        cmocka_unit_test(a_resume_from_the_future_is_refused),
        cmocka_unit_test(a_newer_checkpoint_found_in_the_store_counts),
        cmocka_unit_test(a_damaged_checkpoint_costs_its_steps_and_is_reported),
        cmocka_unit_test(stale_reports_change_nothing),
        cmocka_unit_test(an_absurd_end_is_refused),
        cmocka_unit_test(checkpoints_only_go_forward),
        cmocka_unit_test(what_the_program_waited_for_is_lost_to_saves_and_sets_the_interval),
        cmocka_unit_test(a_save_is_never_dated_in_the_future),
        cmocka_unit_test(progress_is_kept_in_memory_until_something_is_stored),
        cmocka_unit_test(texts_from_outside_are_kept_whole_or_cut_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
