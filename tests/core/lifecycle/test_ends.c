/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to a job when an attempt ends: retries of every end, their number, lost work, and
 * notifications.
 */
#include "tests/core/lifecycle/running.h"
#include "scheduler/core/forecast/explain.h"

#include "base/str.h"
#include <string.h>

static void every_end_has_its_retry(void **state)
{
    (void)state;
    static const struct {
        enum end_kind end;
        bool again;
    } rules[] = {
        {END_SUCCEEDED, false},
        {END_FAILED, true /* one retry in lab_job */},
        {END_CANCELLED, true},
        {END_TIMEOUT, false},
        {END_RECLAIMED, true},
        {END_NODE_LOST, true},
        {END_CAPACITY, true},
        {END_EVICTED, true},
        {END_BUDGET, true},
        {END_WINDOW, true},
        {END_DRAINED, true},
        {END_CHECKPOINTED, true},
        {END_STORE, true},
        {END_STORE_AWAY, true},
        {END_DRILLED, true},
    };
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
        struct running r;
        start(&r);
        lab_ended(&r.l, r.job, rules[k].end, 3);
        lab_take(&r.l);
        const struct job_row *j = lab_row(&r.l, r.job);
        if ((j->state == JOB_PENDING) != rules[k].again)
            fail_msg("%s", end_kind_names[rules[k].end]);
        assert_int_equal(j->end, rules[k].end);
        assert_int_equal(j->exit_code, 3);
        assert_int_equal(j->used[RETRY_FAILED], rules[k].end == END_FAILED);
        assert_int_equal(j->used[RETRY_NODE_LOST], rules[k].end == END_NODE_LOST);
        assert_int_equal(j->used_checkpointed, rules[k].end == END_CHECKPOINTED);
        assert_int_equal(
            j->reclaims, rules[k].end == END_NODE_LOST || rules[k].end == END_RECLAIMED);
        assert_int_equal(wall_is_set(j->ended_at), !rules[k].again);
        assert_int_equal(r.l.c.n_attempts, 1);
        assert_int_equal(r.l.c.attempts[0].state, ATTEMPT_ENDED);
        lab_deinit(&r.l);
    }
}

/* Runs for two minutes and ends, n times; the job must exist before each. */
static void run_and_end(struct running *r, int n, enum end_kind end, int exit_code)
{
    for (int k = 0; k < n; k++) {
        assert_int_equal(row(r)->state, JOB_RUNNING);
        lab_wait(&r->l, 120000);
        lab_heartbeats(&r->l);
        lab_ended(&r->l, r->job, end, exit_code);
        lab_plan(&r->l);
    }
}

static int64_t pause_of(struct running *r, enum end_kind end)
{
    lab_ended(&r->l, r->job, end, 1);
    lab_plan(&r->l);
    return row(r)->state == JOB_RUNNING ? 0 : row(r)->spec.begin_at.ms - r->l.now.wall.ms;
}

static void what_fails_at_once_is_tried_again_ever_later(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    row(&r)->spec.retries.n[RETRY_FAILED] = 1000;
    assert_int_equal(pause_of(&r, END_NODE_LOST), 0);
    for (int64_t k = 0, least = 2000; k < 12;
         k++, least = least * 2 < 300000 ? least * 2 : 300000) {
        int64_t pause = pause_of(&r, k % 2 ? END_NODE_LOST : END_FAILED);
        assert_in_range(pause, least, least + least / 4);
        lab_wait(&r.l, pause - 1);
        lab_heartbeats(&r.l);
        lab_plan(&r.l);
        assert_int_equal(row(&r)->state, JOB_PENDING);
        lab_wait(&r.l, 1);
        lab_plan(&r.l);
        assert_int_equal(row(&r)->state, JOB_RUNNING);
    }
    /* reclaims are not caused by the job */
    assert_int_equal(pause_of(&r, END_RECLAIMED), 0);
    assert_int_equal(pause_of(&r, END_FAILED), 0);
    lab_wait(&r.l, 60000); /* it ran for a while */
    lab_heartbeats(&r.l);
    assert_int_equal(pause_of(&r, END_FAILED), 0);
    assert_int_equal(pause_of(&r, END_FAILED), 0);
    row(&r)->spec.finish_ms = r.l.now.wall.ms + 86400000;
    assert_int_equal(pause_of(&r, END_FAILED), 0);
    lab_deinit(&r.l);
}

static void failures_use_up_their_retries_and_reclaims_do_not(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    run_and_end(&r, 50, END_RECLAIMED, 0);
    run_and_end(&r, 2, END_FAILED, 7); /* the first, and its one retry */
    assert_null(row(&r));
    lab_take(&r.l);
    assert_int_equal(lab_row(&r.l, r.job)->end, END_FAILED);
    assert_int_equal(lab_row(&r.l, r.job)->reclaims, 50);
    assert_string_equal(lab_history(&r.l, "ended")->text, "failed with exit code 7");
    lab_deinit(&r.l);
}

static void start_with(struct running *r, struct retries wish)
{
    lab_init(&r->l);
    r->node = lab_join(&r->l, "n1", 4);
    struct job_row row = lab_job(4);
    row.spec.retries = wish;
    r->job = lab_submit(&r->l, &row);
    lab_plan(&r->l);
    lab_wait(&r->l, 1000);
    lab_started(&r->l, r->job);
    lab_take(&r->l);
}

static void each_end_has_a_budget_of_its_own(void **state)
{
    (void)state;
    static const enum end_kind ends[RETRY_KINDS] = {
        END_FAILED, END_TIMEOUT, END_NODE_LOST, END_RECLAIMED, END_EVICTED, END_DRAINED};
    for (int k = 0; k < RETRY_KINDS; k++) {
        struct running r;
        start_with(&r, (struct retries){{1, 1, 1, 1, 1, 1}});
        run_and_end(&r, 1, ends[(k + 1) % RETRY_KINDS], 0); /* another one */
        assert_int_equal(retries_left(row(&r), (enum retry_kind)k), 1);
        run_and_end(&r, 2, ends[k], 3);
        assert_null(row(&r));
        lab_take(&r.l);
        assert_int_equal(lab_row(&r.l, r.job)->end, ends[k]);
        assert_int_equal(lab_row(&r.l, r.job)->used[k], 1);
        lab_deinit(&r.l);
    }
}

static void a_job_without_requeue_ends_with_whatever_ends_it(void **state)
{
    (void)state;
    static const enum end_kind ends[] = {END_FAILED, END_TIMEOUT, END_NODE_LOST, END_RECLAIMED,
        END_EVICTED, END_DRAINED, END_CHECKPOINTED};
    const int32_t no = RETRIES_NEVER;
    for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
        struct running r;
        start_with(&r, (struct retries){{no, no, no, no, no, no}});
        struct event requeue = {.type = EV_REQUEUE, .requeue = {r.job, "ann"}};
        assert_int_equal(lab_try(&r.l, &requeue, NULL), ERR_CONFLICT);
        lab_ended(&r.l, r.job, ends[k], 85);
        assert_null(row(&r));
        lab_take(&r.l);
        assert_int_equal(
            lab_row(&r.l, r.job)->end, ends[k] == END_CHECKPOINTED ? END_FAILED : ends[k]);
        lab_deinit(&r.l);
    }
}

static void what_would_queue_it_again_is_refused_without_requeue(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    struct job_row j = lab_job(1);
    for (int k = 0; k < RETRY_KINDS; k++)
        j.spec.retries.n[k] = RETRIES_NEVER;
    j.spec.drill_tries = 1;
    struct event submit = {.type = EV_SUBMIT, .submit.job = &j};
    assert_int_equal(lab_try(&r.l, &submit, NULL), ERR_INVALID);
    j.spec.drill_tries = 0;
    assert_int_equal(lab_try(&r.l, &submit, NULL), 0);
    lab_deinit(&r.l);
}

static struct event delivered(const struct outbox_row *r, bool failed, bool is_permanent)
{
    struct event ev = {.type = EV_DELIVERED,
        .delivered = {
            .event = r->event, .failed = failed, .is_permanent = is_permanent, .retry_ms = 1000}};
    STR_COPY(ev.delivered.target, r->target);
    return ev;
}

/* NULL if it was delivered or given up. */
static const struct outbox_row *find_letter(
    const struct model *m, int64_t event, const char *target)
{
    const struct outbox_row *r = NULL;
    while ((r = core_outbox_next(m, r)) && (r->event != event || !str_eq(r->target, target)))
        ;
    return r;
}

static void a_notification_is_repeated_until_it_is_delivered(void **state)
{
    (void)state;
    struct running r;
    lab_init(&r.l);
    r.node = lab_join(&r.l, "n1", 4);
    struct job_row row = lab_job(4);
    row.spec.mail = 1 << NOTIFY_FAIL;
    row.spec.urls = 2;
    row.spec.retries.n[RETRY_FAILED] = RETRIES_NEVER;
    r.job = lab_submit(&r.l, &row);
    lab_plan(&r.l);
    lab_take(&r.l);
    lab_started(&r.l, r.job);
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_outbox, 2); /* the URLs get the start */
    lab_ended(&r.l, r.job, END_FAILED, 3);
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_outbox, 3); /* in the batch of the end */
    const struct outbox_row mail = r.l.c.outbox[0];
    assert_string_equal(mail.target, "mail");
    assert_int_equal(mail.kind, NOTIFY_FAIL);
    assert_int_equal(mail.exit_code, 3);
    assert_int_equal(r.l.c.outbox[2].event, mail.event);
    lab_apply(&r.l, delivered(&mail, true, false));
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_outbox, 1);
    assert_int_equal(r.l.c.outbox[0].tries, 1);
    assert_int_equal(r.l.c.outbox[0].due_at.ms, r.l.now.wall.ms + 1000);
    lab_apply(&r.l, delivered(&mail, false, false));
    lab_apply(&r.l, delivered(&mail, false, false)); /* reported twice: no effect */
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_outbox_done, 1);
    assert_null(find_letter(r.l.m, mail.event, "mail"));
    const struct outbox_row *url = find_letter(r.l.m, mail.event, "url:1");
    assert_non_null(url);
    lab_apply(&r.l, delivered(url, true, true));
    lab_take(&r.l);
    assert_int_equal(r.l.c.n_outbox_done, 1);
    assert_non_null(lab_history(&r.l, "not-told"));
    lab_deinit(&r.l);
}

static void each_part_of_the_time_limit_is_notified_once(void **state)
{
    (void)state;
    struct running r;
    lab_init(&r.l);
    r.node = lab_join(&r.l, "n1", 4);
    struct job_row row = lab_job(4);
    row.spec.mail = 1 << NOTIFY_TIME_LIMIT_50 | 1 << NOTIFY_TIME_LIMIT_90;
    row.spec.time_limit_ms = 10000; /* less than a lease */
    r.job = lab_submit(&r.l, &row);
    lab_plan(&r.l);
    lab_started(&r.l, r.job);
    lab_take(&r.l);
    static const struct {
        int64_t wait_ms;
        size_t n;
    } moments[] = {{4999, 0}, {1, 1}, {3000, 0}, {1000, 1}, {500, 0}};
    for (size_t k = 0; k < sizeof moments / sizeof moments[0]; k++) {
        lab_wait(&r.l, moments[k].wait_ms);
        lab_plan(&r.l);
        lab_take(&r.l);
        assert_int_equal(r.l.c.n_outbox, moments[k].n);
    }
    lab_deinit(&r.l);
}

static void retry_wishes_are_a_number(void **state)
{
    (void)state;
    struct retries job, pool, got;
    struct retry_options o = {0};
    struct err e;
    assert_int_equal(retries_parse("", &job, &e), 0);
    assert_int_equal(retries_parse("failed=2,node-lost=unlimited,timeout=0", &pool, &e), 0);
    assert_int_equal(retries_parse("failed=7,evicted=3,timeout=9", &o.defaults, &e), 0);
    assert_int_equal(retries_resolve(&job, &pool, &o, &got, &e), 0);
    assert_int_equal(got.n[RETRY_FAILED], 2);
    assert_int_equal(got.n[RETRY_TIMEOUT], 0);
    assert_int_equal(got.n[RETRY_NODE_LOST], RETRIES_UNLIMITED);
    assert_int_equal(got.n[RETRY_EVICTED], 3);
    assert_int_equal(got.n[RETRY_DRAINED], RETRIES_UNLIMITED);
    assert_int_equal(retries_parse("failed=1,reclaimed=0", &o.max, &e), 0);
    job.n[RETRY_EVICTED] = RETRIES_DEFAULT;
    assert_int_equal(retries_resolve(&job, &pool, &o, &got, &e), 0);
    assert_int_equal(got.n[RETRY_FAILED], 1);
    assert_int_equal(got.n[RETRY_RECLAIMED], 0);
    assert_int_equal(got.n[RETRY_EVICTED], RETRIES_UNLIMITED);
    job.n[RETRY_FAILED] = 2;
    assert_int_equal(retries_resolve(&job, &pool, &o, &got, &e), ERR_INVALID);
    assert_non_null(
        strstr(e.text, "an end as failed than belayd's configuration allows, at most 1"));
}

static void retry_wishes_have_a_text(void **state)
{
    (void)state;
    static const char *const good[] = {"", "failed=2", "failed=0,timeout=1000,node-lost=unlimited",
        "failed=unlimited,timeout=unlimited,node-lost=unlimited,reclaimed=unlimited,evicted="
        "unlimited,drained=unlimited"};
    static const char *const bad[] = {"failed", "failed=", "failed=1001", "failed=-1",
        "failed=1,failed=1", "crashed=1", "=1", ",", "failed=1,,timeout=1", "failed=1;timeout=1",
        "node-lost-and-much-more-than-that=1"};
    char out[RETRIES_TEXT_MAX];
    struct retries r;
    struct err e;
    for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
        assert_int_equal(retries_parse(good[k], &r, &e), 0);
        retries_format(&r, out);
        assert_string_equal(out, good[k]);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (retries_parse(bad[k], &r, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[k]);
}

static void losing_nodes_for_ever_comes_to_an_end(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    run_and_end(&r, 100 + 1, END_NODE_LOST, 0);
    assert_null(row(&r));
    lab_take(&r.l);
    assert_int_equal(lab_row(&r.l, r.job)->end, END_NODE_LOST);
    lab_deinit(&r.l);
}

static void code_85_without_a_checkpoint_comes_to_an_end(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    run_and_end(&r, JOB_CHECKPOINTED_MAX, END_CHECKPOINTED, 85);
    assert_null(row(&r));
    lab_take(&r.l);
    assert_int_equal(lab_row(&r.l, r.job)->end, END_FAILED);
    assert_int_equal(r.l.c.attempts[r.l.c.n_attempts - 1].end, END_FAILED);
    assert_non_null(strstr(lab_history(&r.l, "ended")->text, "without a new checkpoint"));
    lab_deinit(&r.l);
}

static void code_85_with_checkpoints_goes_on_for_ever(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    run_and_end(&r, 2, END_CHECKPOINTED, 85);
    for (int k = 1; k <= 10; k++) {
        lab_saved(&r.l, r.job, 1, 10 * k);
        run_and_end(&r, 1, END_CHECKPOINTED, 85);
        assert_int_equal(row(&r)->used_checkpointed, 0);
    }
    lab_deinit(&r.l);
}

static void a_stopped_attempt_counts_as_what_it_was_stopped_for(void **state)
{
    (void)state;
    static const struct {
        enum end_kind reported, counted;
    } rules[] = {
        {END_FAILED, END_DRAINED},
        {END_TIMEOUT, END_DRAINED},
        {END_CHECKPOINTED, END_DRAINED},
        {END_DRAINED, END_DRAINED},
        {END_SUCCEEDED, END_SUCCEEDED},
        {END_RECLAIMED, END_RECLAIMED},
        {END_NODE_LOST, END_NODE_LOST},
    };
    for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
        struct running r;
        start(&r);
        lab_apply(&r.l, (struct event){.type = EV_DRAIN, .drain.node = r.node});
        lab_ended(&r.l, r.job, rules[k].reported, 1);
        lab_take(&r.l);
        assert_int_equal(lab_row(&r.l, r.job)->end, rules[k].counted);
        lab_deinit(&r.l);
    }
}

static void lost_work_is_counted_from_the_last_checkpoint(void **state)
{
    (void)state;
    struct running r;
    start(&r); /* it has run for 9 s */
    lab_apply(&r.l, (struct event){.type = EV_PROGRESS, .progress = {r.job, 1, 90, PROGRESS_NONE}});
    lab_ended(&r.l, r.job, END_NODE_LOST, 0);
    assert_int_equal(row(&r)->lost_ms, 9000);
    assert_int_equal(row(&r)->lost_steps, 90);
    assert_int_equal(row(&r)->progress, PROGRESS_NONE);
    lab_plan(&r.l);
    lab_started(&r.l, r.job);
    lab_wait(&r.l, 5000);
    lab_saved(&r.l, r.job, 1, 50);
    lab_wait(&r.l, 2000);
    lab_apply(&r.l, (struct event){.type = EV_PROGRESS, .progress = {r.job, 2, 70, PROGRESS_NONE}});
    lab_ended(&r.l, r.job, END_NODE_LOST, 0);
    assert_int_equal(row(&r)->lost_ms, 9000 + 2000);
    assert_int_equal(row(&r)->lost_steps, 90 + 20);
    assert_int_equal(row(&r)->progress, 50);
    lab_plan(&r.l);
    lab_started(&r.l, r.job);
    lab_wait(&r.l, 3000); /* nothing saved in this one: all of it is lost */
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    assert_int_equal(row(&r)->lost_ms, 14000);
    lab_deinit(&r.l);
}

static void a_save_covers_what_came_before_it(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 1, 90);
    lab_wait(&r.l, 300); /* until it was reported */
    lab_ended(&r.l, r.job, END_RECLAIMED, JOB_EXIT_CHECKPOINTED);
    assert_int_equal(row(&r)->lost_ms, 0);
    lab_plan(&r.l);
    lab_started(&r.l, r.job);
    lab_saved(&r.l, r.job, 1, 95);
    lab_wait(&r.l, 4000);
    lab_apply(&r.l,
        (struct event){.type = EV_SAVE_FAILED, .save_failed = {r.job, 2, r.node, "no space"}});
    lab_ended(&r.l, r.job, END_RECLAIMED, JOB_EXIT_CHECKPOINTED); /* the agent assumed a save */
    assert_int_equal(row(&r)->lost_ms, 4000);
    lab_deinit(&r.l);
}

/* Another attempt would meet the same store; a hold for it uses no retries, and never fails the
 * job. */
static void a_job_whose_store_is_at_fault_is_held_until_it_is_released(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    for (int no_requeue = 0; no_requeue < 2; no_requeue++) {
        struct running r;
        if (no_requeue)
            start_with(&r, (struct retries){{RETRIES_NEVER, RETRIES_NEVER, RETRIES_NEVER,
                               RETRIES_NEVER, RETRIES_NEVER, RETRIES_NEVER}});
        else
            start(&r);
        lab_ended(&r.l, r.job, END_STORE, 0);
        lab_plan(&r.l);
        assert_int_equal(row(&r)->state, JOB_PENDING);
        assert_int_equal(row(&r)->hold, HOLD_STORE);
        lab_take(&r.l);
        assert_string_equal(lab_history(&r.l, "held")->text,
            "held: attempt 1 could not use the store of its checkpoints; after that is fixed, "
            "belay release 1 lets it continue");
        assert_true(core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX) > 0);
        assert_string_equal(reasons[0].code, "store");
        lab_apply(&r.l, (struct event){.type = EV_RELEASE, .release = {.job = r.job, .by = "ann"}});
        lab_plan(&r.l);
        assert_int_equal(row(&r)->state, JOB_RUNNING);
        lab_deinit(&r.l);
    }
}

/* Ends a start that found no space, after took_ms; returns the pause. */
static int64_t end_without_space(struct running *r, int64_t took_ms)
{
    while (took_ms > 0) {
        lab_wait(&r->l, took_ms < 10000 ? took_ms : 10000);
        lab_heartbeats(&r->l);
        took_ms -= 10000;
    }
    lab_ended(&r->l, r->job, END_CAPACITY, 0);
    assert_int_equal(row(r)->state, JOB_PENDING);
    int64_t pause = row(r)->spec.begin_at.ms - r->l.now.wall.ms;
    return pause > 0 ? pause : 0;
}

static void wait_and_plan(struct running *r, int64_t pause)
{
    for (; pause > 0; pause -= 10000) {
        lab_wait(&r->l, pause < 10000 ? pause : 10000);
        lab_heartbeats(&r->l);
    }
    lab_plan(&r->l);
    assert_int_equal(row(r)->state, JOB_RUNNING);
}

/* The program never ran, and the node is not lost, so no retry is used. After five such starts in a
 * row, each after a longer pause, the user has to act. A release allows five more. */
static void a_job_that_no_node_has_space_for_is_held_after_five_starts(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    struct running r;
    start(&r);
    for (int k = 0; k < 10; k++) {
        const int64_t pause = end_without_space(&r, k % 2 ? 90000 : 1000);
        const struct job_row *j = row(&r);
        assert_int_equal(j->end, END_CAPACITY);
        for (int kind = 0; kind < RETRY_KINDS; kind++)
            assert_int_equal(j->used[kind], 0);
        assert_int_equal(j->reclaims, 0);
        assert_true(k % 5 == 0 ? pause == 0 : pause >= 30000 << (k % 5 - 1));
        assert_int_equal(j->hold, k % 5 == 4 ? HOLD_USER : HOLD_NONE);
        if (k % 5 == 4) {
            lab_take(&r.l);
            assert_string_equal(lab_history(&r.l, "held")->text,
                "held: no node could start it, 5 times in a row (belay show 1 says why); fix that "
                "or "
                "ask for less, then belay release 1");
            assert_true(core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX) > 0);
            assert_string_equal(reasons[0].code, "no-room");
            lab_wait(&r.l, 3600000);
            lab_heartbeats(&r.l);
            lab_plan(&r.l);
            assert_int_equal(row(&r)->state, JOB_PENDING);
            lab_apply(
                &r.l, (struct event){.type = EV_RELEASE, .release = {.job = r.job, .by = "ann"}});
        } else if (pause > 0) {
            core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX);
            assert_non_null(strstr(reasons[0].text, "held after 5 such ends"));
        }
        lab_take(&r.l);
        wait_and_plan(&r, k % 5 == 4 ? 0 : pause);
    }
    lab_ended(&r.l, r.job, END_CAPACITY, 0);
    lab_take(&r.l);
    assert_string_equal(lab_history(&r.l, "ended")->text, "its node could not start it");
    lab_deinit(&r.l);
}

static void another_end_begins_the_count_of_starts_without_space_again(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    for (int k = 0; k < 12; k++) {
        int64_t pause = end_without_space(&r, 1000);
        assert_int_equal(row(&r)->hold, HOLD_NONE);
        wait_and_plan(&r, pause);
        if (k % 4 < 3)
            continue;
        lab_ended(&r.l, r.job, END_CANCELLED, 0);
        wait_and_plan(&r, 0);
    }
    lab_deinit(&r.l);
}

/* A job too large for one node may fit on another. A node whose disk is full for all jobs gets no
 * work anyway, and may have space again in a minute. */
static void a_job_avoids_the_node_that_had_no_space_for_it_alone(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    for (int is_full = 0; is_full < 2; is_full++) {
        struct running r;
        start(&r);
        int64_t other = lab_join(&r.l, "n2", 4);
        struct event full = {.type = EV_DISK, .disk = {.node = r.node, .full = "it is full"}};
        if (is_full)
            lab_apply(&r.l, full);
        assert_int_equal(end_without_space(&r, 0), 0);
        assert_int_equal(job_side(model_job(r.l.m, r.job))->avoid, is_full ? CORE_ID_NONE : r.node);
        core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX);
        assert_string_equal(reasons[0].code, is_full ? "ready" : "no-room-away");
        if (!is_full)
            assert_string_equal(reasons[0].text,
                "for up to 10 minutes it waits for another node than that of attempt 1, which "
                "could not start it (belay show 1 says why)");
        lab_plan(&r.l);
        assert_int_equal(lab_node_of(&r.l, r.job), other);
        lab_deinit(&r.l);
    }
}

/* The store may be unreachable from one node only. No retry is used, and each delay is longer. */
static void a_job_whose_nodes_cannot_use_the_store_is_held_after_three(void **state)
{
    (void)state;
    struct running r;
    int64_t waited_ms = 0;
    start(&r);
    for (int n = 1; n <= JOB_STORE_MAX; n++) {
        lab_apply(&r.l, (struct event){.type = EV_STORE_REFUSED,
                            .store_refused = {.job = r.job,
                                .attempt = row(&r)->attempts,
                                .node = r.node,
                                .tries = n,
                                .text = "403"}});
        lab_ended(&r.l, r.job, END_STORE_AWAY, 0);
        assert_int_equal(row(&r)->state, JOB_PENDING);
        assert_int_equal(row(&r)->hold, n < JOB_STORE_MAX ? HOLD_NONE : HOLD_STORE);
        assert_int_equal(row(&r)->end, n < JOB_STORE_MAX ? END_STORE_AWAY : END_STORE);
        assert_int_equal(row(&r)->used[RETRY_FAILED] + row(&r)->used[RETRY_NODE_LOST], 0);
        if (n == JOB_STORE_MAX)
            break;
        assert_true(row(&r)->spec.begin_at.ms - r.l.now.wall.ms > waited_ms);
        waited_ms = row(&r)->spec.begin_at.ms - r.l.now.wall.ms;
        lab_wait(&r.l, waited_ms);
        lab_heartbeats(&r.l);
        lab_plan(&r.l);
        assert_int_equal(row(&r)->state, JOB_RUNNING);
    }
    lab_deinit(&r.l);
}

/* Ends its attempt, and waits for the next try. */
static void end_store_away(struct running *r)
{
    lab_ended(&r->l, r->job, END_STORE_AWAY, 0);
    assert_int_equal(row(r)->state, JOB_PENDING);
    lab_wait(&r->l, row(r)->spec.begin_at.ms - r->l.now.wall.ms);
    lab_heartbeats(&r->l);
    lab_plan(&r->l);
}

static void the_node_that_cannot_use_the_store_is_not_tried_next(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    int64_t other = lab_join(&r.l, "n2", 4);
    end_store_away(&r);
    assert_int_equal(lab_node_of(&r.l, r.job), other);
    assert_int_equal(job_side(model_job(r.l.m, r.job))->avoid, CORE_ID_NONE);
    end_store_away(&r);
    assert_int_equal(lab_node_of(&r.l, r.job), r.node);
    lab_deinit(&r.l);
}

/* A machine is launched for it. If none comes, its former node is allowed after ten minutes. */
static void a_job_waits_a_limited_time_for_another_node(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    for (int comes = 0; comes < 2; comes++) {
        struct running r;
        start(&r);
        lab_elastic(&r.l, "burst", 1, "m5", 4);
        end_store_away(&r);
        assert_int_equal(lab_node_of(&r.l, r.job), CORE_ID_NONE);
        assert_true(core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX) > 0);
        assert_string_equal(reasons[0].code, "store-away");
        assert_non_null(strstr(reasons[0].text, "another node than that of attempt 1"));
        if (comes) {
            int64_t machine = lab_bring_up(&r.l, 1, 4);
            lab_plan(&r.l);
            assert_int_equal(lab_node_of(&r.l, r.job), machine);
        }
        int k = 0;
        for (; k < 62 && lab_node_of(&r.l, r.job) == CORE_ID_NONE; k++) {
            lab_wait(&r.l, 10000);
            lab_heartbeats(&r.l);
            lab_plan(&r.l);
        }
        assert_int_equal(lab_node_of(&r.l, r.job) == r.node, !comes);
        assert_true(comes ? k == 0 : k > 55);
        lab_deinit(&r.l);
    }
}

static void a_job_that_is_cancelled_avoids_no_node_any_more(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_join(&r.l, "n2", 4);
    lab_ended(&r.l, r.job, END_STORE_AWAY, 0);
    assert_int_equal(job_side(model_job(r.l.m, r.job))->avoid, r.node);
    lab_apply(&r.l, (struct event){.type = EV_CANCEL, .cancel = {.job = r.job, .by = "ann"}});
    lab_wait(&r.l, 3600000);
    lab_heartbeats(&r.l);
    lab_plan(&r.l);
    assert_null(row(&r));
    struct event late = {.type = EV_AVOIDED, .avoided.job = r.job};
    assert_int_equal(lab_try(&r.l, &late, NULL), ERR_CONFLICT);
    lab_deinit(&r.l);
}

/* Reports of an attempt before it begins are in the history once per reason, and in `why` and its
 * row until it begins. */
static void an_attempt_that_cannot_use_the_store_says_so(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    struct running r;
    start(&r);
    lab_ended(&r.l, r.job, END_CANCELLED, 0);
    lab_plan(&r.l);
    int64_t attempt = row(&r)->attempts;
    for (int n = 1; n <= 3; n++)
        lab_apply(&r.l, (struct event){.type = EV_STORE_REFUSED,
                            .store_refused = {.job = r.job,
                                .attempt = attempt,
                                .node = r.node,
                                .tries = n,
                                .text = "403 AccessDenied"}});
    lab_take(&r.l);
    int n_rows = 0;
    for (size_t i = 0; i < r.l.c.n_history; i++)
        n_rows += str_eq(r.l.c.history[i].kind, "store-refused");
    assert_int_equal(n_rows, 1);
    assert_true(core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(reasons[0].code, "store-refused");
    assert_non_null(strstr(reasons[0].text, "(3 tries so far): 403 AccessDenied"));
    lab_started(&r.l, r.job);
    core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX);
    assert_string_equal(reasons[0].code, "running");
    lab_deinit(&r.l);
}

static void a_job_whose_work_is_given_up_starts_from_nothing(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_saved(&r.l, r.job, 1, 50);
    assert_int_equal(row(&r)->last_good.sequence, 1);
    lab_ended(&r.l, r.job, END_STORE, 0);
    lab_apply(&r.l, (struct event){.type = EV_RELEASE,
                        .release = {.job = r.job, .by = "ann", .from_scratch = true}});
    assert_int_equal(row(&r)->last_good.attempt, 0);
    assert_int_equal(row(&r)->from_attempt, 2);
    assert_true(row(&r)->progress == PROGRESS_NONE);
    lab_plan(&r.l);
    assert_int_equal(row(&r)->state, JOB_RUNNING);
    struct event again = {
        .type = EV_RELEASE, .release = {.job = r.job, .by = "ann", .from_scratch = true}};
    assert_int_equal(lab_try(&r.l, &again, NULL), ERR_CONFLICT);
    lab_started(&r.l, r.job);
    lab_saved(&r.l, r.job, 1, 10);
    assert_int_equal(row(&r)->last_good.attempt, 2);
    /* a running attempt is not saved first, and a save during the stop does not count */
    lab_apply(&r.l, (struct event){.type = EV_REQUEUE,
                        .requeue = {.job = r.job, .by = "ann", .from_scratch = true}});
    assert_int_equal(row(&r)->from_attempt, 3);
    lab_saved(&r.l, r.job, 2, 20);
    assert_int_equal(row(&r)->last_good.attempt, 0);
    lab_ended(&r.l, r.job, END_CANCELLED, 0);
    lab_plan(&r.l);
    assert_int_equal(row(&r)->attempts, 3);
    lab_deinit(&r.l);
}

static void a_hold_for_the_store_does_not_replace_one_of_people(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    lab_apply(&r.l,
        (struct event){.type = EV_HOLD, .hold = {.job = r.job, .by = "root", .by_operator = true}});
    lab_ended(&r.l, r.job, END_STORE, 0);
    lab_plan(&r.l);
    assert_int_equal(row(&r)->hold, HOLD_OPERATOR);
    lab_deinit(&r.l);
}

static void the_oldest_job_keeps_its_place_when_it_comes_back(void **state)
{
    (void)state;
    struct running r;
    start(&r);
    int64_t younger = lab_submit_cpus(&r.l, 4);
    lab_plan(&r.l);
    lab_ended(&r.l, r.job, END_RECLAIMED, 0);
    lab_plan(&r.l);
    assert_int_equal(lab_node_of(&r.l, r.job), r.node);
    assert_int_equal(lab_node_of(&r.l, younger), CORE_ID_NONE);
    lab_deinit(&r.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_end_has_its_retry),
        cmocka_unit_test(what_fails_at_once_is_tried_again_ever_later),
        cmocka_unit_test(failures_use_up_their_retries_and_reclaims_do_not),
        cmocka_unit_test(each_end_has_a_budget_of_its_own),
        cmocka_unit_test(a_job_without_requeue_ends_with_whatever_ends_it),
        cmocka_unit_test(what_would_queue_it_again_is_refused_without_requeue),
        cmocka_unit_test(a_notification_is_repeated_until_it_is_delivered),
        cmocka_unit_test(each_part_of_the_time_limit_is_notified_once),
        cmocka_unit_test(retry_wishes_are_a_number),
        cmocka_unit_test(retry_wishes_have_a_text),
        cmocka_unit_test(losing_nodes_for_ever_comes_to_an_end),
        cmocka_unit_test(code_85_without_a_checkpoint_comes_to_an_end),
        cmocka_unit_test(code_85_with_checkpoints_goes_on_for_ever),
        cmocka_unit_test(a_stopped_attempt_counts_as_what_it_was_stopped_for),
        cmocka_unit_test(lost_work_is_counted_from_the_last_checkpoint),
        cmocka_unit_test(a_save_covers_what_came_before_it),
        cmocka_unit_test(a_job_whose_store_is_at_fault_is_held_until_it_is_released),
        cmocka_unit_test(a_job_that_no_node_has_space_for_is_held_after_five_starts),
        cmocka_unit_test(another_end_begins_the_count_of_starts_without_space_again),
        cmocka_unit_test(a_job_avoids_the_node_that_had_no_space_for_it_alone),
        cmocka_unit_test(a_job_whose_nodes_cannot_use_the_store_is_held_after_three),
        cmocka_unit_test(the_node_that_cannot_use_the_store_is_not_tried_next),
        cmocka_unit_test(a_job_waits_a_limited_time_for_another_node),
        cmocka_unit_test(a_job_that_is_cancelled_avoids_no_node_any_more),
        cmocka_unit_test(an_attempt_that_cannot_use_the_store_says_so),
        cmocka_unit_test(a_job_whose_work_is_given_up_starts_from_nothing),
        cmocka_unit_test(a_hold_for_the_store_does_not_replace_one_of_people),
        cmocka_unit_test(the_oldest_job_keeps_its_place_when_it_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
