/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-node jobs: all ranks start or none, they save and stop together, and form one attempt.
 */
#include "tests/core/ranks.h"

#include "scheduler/core/lifecycle/attempts.h"

static const struct job_row *row(const struct trio *t)
{
    return &model_job(t->l.m, t->job)->row;
}

static void all_ranks_start_or_none(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_join(&l, "a", 8);
    int64_t job = lab_submit_nodes(&l, 3, 2, 0), small = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job))); /* although node a has capacity for all of it */
    assert_int_equal(lab_node_of(&l, small), a);
    int64_t b = lab_join(&l, "b", 2);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job)));
    int64_t c = lab_join(&l, "c", 2);
    lab_plan(&l);
    assert_int_equal(ranks_node_of(&l, job, 0), b); /* the tightest first */
    assert_int_equal(ranks_node_of(&l, job, 1), c);
    assert_int_equal(ranks_node_of(&l, job, 2), a);
    assert_int_equal(model_node(l.m, a)->free.cpus, 4);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "placed")->text, "attempt 1 on b (owned) and 2 more");
    lab_deinit(&l);
}

static void a_place_must_be_for_all_ranks_on_different_nodes(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_join(&l, "a", 8), b = lab_join(&l, "b", 8), job = lab_submit_nodes(&l, 2, 1, 0);
    struct event bad[] = {
        {.type = EV_PLACE, .place = {.job = job, .node = a}},
        {.type = EV_PLACE, .place = {.job = job, .node = a, .more = (int64_t[]){a}, .n_more = 1}},
        {.type = EV_PLACE,
            .place = {.job = job, .node = a, .more = (int64_t[]){b, 99}, .n_more = 2}},
        {.type = EV_PLACE, .place = {.job = job, .node = a, .more = (int64_t[]){99}, .n_more = 1}},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_int_equal(lab_try(&l, &bad[k], NULL), ERR_CONFLICT);
    assert_int_equal(model_job(l.m, job)->row.attempts, 0);
    lab_deinit(&l);
}

/* The premium for sharing an offer separates single-node jobs, but not the nodes of one job. If a
 * zone is exhausted, others are used, unless the job names one. */
static void a_gang_is_launched_in_one_zone_while_that_has_machines(void **state)
{
    (void)state;
    static const char *const asked[] = {"", "constraint=z1", "constraint=z2"};
    for (int i = 0; i < 3; i++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 8, "m5", 4);
        struct offer_row z2 = {.pool = "burst",
            .zone = "z2",
            .type = "m5",
            .market = MARKET_SPOT,
            .total = {.cpus = 4, .memory_mib = 16384},
            .price_uusd_h = LAB_SPOT_UUSD_H,
            .on_demand_uusd_h = LAB_ON_DEMAND_UUSD_H};
        int64_t second = lab_apply(&l, (struct event){.type = EV_OFFER, .offer = &z2});
        struct pool_row p = lab_pool(&l, "burst");
        p.spread_pct = 10;
        lab_set_pool(&l, p);
        struct job_row r = lab_job(4);
        r.spec.nodes = 4;
        int64_t job = lab_submit_asking(&l, &r, asked[i]);
        lab_plan(&l);
        assert_int_equal(lab_launches(&l, 1), i == 2 ? 0 : 4);
        assert_int_equal(lab_launches(&l, second), i == 2 ? 4 : 0);
        lab_apply(
            &l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {4, true, "no capacity"}});
        lab_plan(&l);
        for (int64_t k = 1; k <= 5; k++)
            if (k != 4 && model_instance(l.m, k))
                lab_bring_up(&l, k, 4);
        lab_plan(&l);
        assert_int_equal(model_job(l.m, job)->row.state, i == 2 ? JOB_PENDING : JOB_RUNNING);
        for (int n = 0; n < 4 && i < 2; n++) {
            const char *zone = model_node(l.m, ranks_node_of(&l, job, n))->instance->row.zone;
            /* the fifth machine, the fourth node */
            assert_string_equal(zone, i == 0 && ranks_node_of(&l, job, n) == 4 ? "z2" : "z1");
        }
        lab_deinit(&l);
    }
}

static void a_gang_stays_in_one_pool(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_apply(&l, (struct event){.type = EV_LAUNCH, .launch.offer = 1});
    lab_bring_up(&l, 1, 4);
    lab_join(&l, "a", 4);
    int64_t job = lab_submit_nodes(&l, 2, 2, 0);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job)));
    lab_join(&l, "b", 4);
    lab_plan(&l);
    assert_string_equal(ranks_get(&l, job, 0)->node->row.pool, "base");
    assert_string_equal(ranks_get(&l, job, 1)->node->row.pool, "base");
    lab_deinit(&l);
}

static void a_gang_succeeds_when_all_ranks_have(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    ranks_ended(&t.l, t.job, 1, END_SUCCEEDED, 0);
    assert_int_equal(row(&t)->state, JOB_RUNNING);
    assert_int_equal(ranks_get(&t.l, t.job, 0)->row.state, ATTEMPT_RUNNING);
    ranks_ended(&t.l, t.job, 0, END_SUCCEEDED, 0);
    ranks_ended(&t.l, t.job, 2, END_SUCCEEDED, 0);
    lab_take(&t.l);
    assert_null(model_job(t.l.m, t.job));
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    assert_string_equal(lab_history(&t.l, "ended")->text, "rank 2: succeeded after 0ms");
    lab_deinit(&t.l);
}

static void a_rank_that_fails_stops_the_others_and_decides_the_end(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    ranks_ended(&t.l, t.job, 1, END_FAILED, 7);
    for (int32_t n = 0; n < 3; n += 2) {
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.state, ATTEMPT_STOPPING);
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_false(ranks_get(&t.l, t.job, n)->row.save_first);
    }
    ranks_ended(&t.l, t.job, 0, END_FAILED, 143); /* by the stop */
    assert_int_equal(row(&t)->used[RETRY_FAILED], 0);
    ranks_ended(&t.l, t.job, 2, END_FAILED, 143);
    assert_int_equal(row(&t)->state, JOB_PENDING); /* it has one retry */
    assert_int_equal(row(&t)->end, END_FAILED);
    assert_int_equal(row(&t)->exit_code, 7);
    assert_int_equal(row(&t)->used[RETRY_FAILED], 1);
    assert_int_equal(row(&t)->gang_end, END_NONE);
    lab_plan(&t.l);
    assert_int_equal(row(&t)->attempts, 2);
    ranks_ended(&t.l, t.job, 2, END_FAILED, 8);
    ranks_ended(&t.l, t.job, 1, END_FAILED, 9); /* the first end decides */
    ranks_ended(&t.l, t.job, 0, END_FAILED, 143);
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->state, JOB_ENDED);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_FAILED);
    assert_int_equal(lab_row(&t.l, t.job)->exit_code, 8);
    lab_deinit(&t.l);
}

static void a_notice_makes_all_ranks_save_and_stop(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    int64_t doomed = ranks_node_of(&t.l, t.job, 2);
    lab_notice(&t.l, doomed, NOTICE_TYPE_RECLAIM, 30000);
    /* its agent stops it by itself */
    assert_int_equal(ranks_get(&t.l, t.job, 2)->row.state, ATTEMPT_RUNNING);
    for (int32_t n = 0; n < 2; n++) {
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_true(ranks_get(&t.l, t.job, n)->row.save_first);
    }
    for (int32_t n = 0; n < 3; n++)
        ranks_saved(&t.l, t.job, n, 1, 500);
    ranks_ended(&t.l, t.job, 0, END_GANG, 85);
    ranks_ended(&t.l, t.job, 2, END_RECLAIMED, 85);
    ranks_ended(&t.l, t.job, 1, END_GANG, 85);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_RECLAIMED);
    assert_int_equal(row(&t)->reclaims, 1);
    assert_int_equal(row(&t)->lost_steps, 0);
    assert_int_equal(row(&t)->last_good_progress, 500);
    lab_take(&t.l);
    assert_int_equal(t.l.c.n_checkpoints, 1); /* of the gang, not of each rank */
    lab_deinit(&t.l);
}

/* The last rank to end is the cause of the others' stop. */
static void after_a_notice_the_gang_ends_as_reclaimed_whichever_rank_ends_first(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    lab_notice(&t.l, ranks_node_of(&t.l, t.job, 1), NOTICE_TYPE_RECLAIM, 30000);
    for (int32_t n = 0; n < 3; n++)
        ranks_saved(&t.l, t.job, n, 1, 500);
    ranks_ended(&t.l, t.job, 0, END_GANG, 85);
    assert_int_equal(ranks_get(&t.l, t.job, 1)->row.stop_reason, END_GANG);
    ranks_ended(&t.l, t.job, 2, END_GANG, 85);
    ranks_ended(&t.l, t.job, 1, END_GANG, 143); /* it was stopped like them */
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_RECLAIMED);
    assert_int_equal(row(&t)->reclaims, 1);
    lab_deinit(&t.l);
}

static void a_lost_node_stops_the_others_at_once(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    ranks_saved(&t.l, t.job, 0, 1, 100);
    int64_t lost = ranks_node_of(&t.l, t.job, 0);
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(ranks_get(&t.l, t.job, 1)->row.stop_reason, END_GANG);
    assert_false(ranks_get(&t.l, t.job, 1)->row.save_first);
    assert_int_equal(row(&t)->gang_end, END_NODE_LOST);
    ranks_ended(&t.l, t.job, 1, END_GANG, 143);
    ranks_ended(&t.l, t.job, 2, END_GANG, 143);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->used[RETRY_NODE_LOST], 1);
    lab_deinit(&t.l);
}

/* The other programs fail as soon as the connection breaks; the loss of the node is known only when
 * its lease expires. */
static void a_lost_node_counts_before_failures_of_other_ranks(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    ranks_saved(&t.l, t.job, 0, 1, 100);
    int64_t lost = ranks_node_of(&t.l, t.job, 1);
    ranks_ended(&t.l, t.job, 2, END_FAILED, 1);
    ranks_ended(&t.l, t.job, 0, END_FAILED, 1);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->exit_code, 0);
    assert_int_equal(row(&t)->used[RETRY_FAILED], 0);
    lab_deinit(&t.l);
}

static void a_cancel_stops_all_ranks_and_is_the_end(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    lab_apply(&t.l, (struct event){.type = EV_CANCEL, .cancel = {t.job, "ann"}});
    ranks_ended(&t.l, t.job, 0, END_FAILED, 143);
    assert_int_equal(ranks_get(&t.l, t.job, 1)->row.stop_reason, END_CANCELLED);
    ranks_ended(&t.l, t.job, 1, END_FAILED, 143);
    ranks_ended(&t.l, t.job, 2, END_FAILED, 143);
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_CANCELLED);
    lab_deinit(&t.l);
}

static void requeues_and_drains_stop_all_ranks(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    lab_apply(&t.l, (struct event){.type = EV_DRAIN, .drain.node = ranks_node_of(&t.l, t.job, 1)});
    for (int32_t n = 0; n < 3; n++) {
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.stop_reason, END_DRAINED);
        assert_true(ranks_get(&t.l, t.job, n)->row.save_first);
    }
    lab_deinit(&t.l);
}

static void machines_are_launched_for_all_ranks_or_none(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 8);
    int64_t job = lab_submit_nodes(&l, 4, 2, 0);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 0); /* three of four are useless */
    struct pool_row p = lab_pool(&l, "burst");
    p.max_nodes = 4;
    lab_set_pool(&l, p);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 4); /* one rank per machine, of any size */
    for (int64_t i = 1; i <= 4; i++) {
        assert_null(job_attempt(model_job(l.m, job)));
        lab_bring_up(&l, i, 8);
        lab_plan(&l);
    }
    assert_int_equal(lab_launches(&l, 1), 4);
    assert_int_equal(ranks_node_of(&l, job, 3), 4);
    lab_deinit(&l);
}

/* The first to join are idle for longer than the idle timeout before the last joins. */
static void nodes_that_wait_for_the_rest_are_not_idle(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 4);
    int64_t job = lab_submit_nodes(&l, 3, 4, 0);
    lab_plan(&l);
    int64_t first = lab_bring_up(&l, 1, 4);
    lab_bring_up(&l, 2, 4);
    lab_launched(&l, 3);
    lab_plan(&l);
    for (int k = 0; k < 20; k++) {
        lab_wait(&l, LAB_LEASE_MS / 2);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_int_equal(model_node(l.m, first)->row.state, NODE_UP);
    assert_int_equal(lab_launches(&l, 1), 3);
    lab_join_instance(&l, 3, 4);
    lab_plan(&l);
    assert_int_equal(ranks_node_of(&l, job, 2), 3);
    ranks_ended(&l, job, 0, END_CANCELLED, 0);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    ranks_ended(&l, job, 1, END_CANCELLED, 0);
    ranks_ended(&l, job, 2, END_CANCELLED, 0);
    lab_wait(&l, LAB_IDLE_MS + LAB_COOLDOWN_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_null(model_node(l.m, first)); /* no job waits for it any more */
    lab_deinit(&l);
}

static void free_nodes_count_before_machines_are_launched(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t first = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_ended(&l, first, END_SUCCEEDED, 0); /* leaves an idle machine */
    lab_submit_nodes(&l, 3, 4, 0);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 3); /* one more for the first job, two for the gang */
    lab_deinit(&l);
}

/* The first pool gets enough machines for the gang, but for other jobs. The gang still waits for
 * its own machines in the second pool; if it took those, the other jobs would need new ones. */
static void machines_for_other_jobs_do_not_draw_a_gang_away(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "first", 1, "m5", 4);
    lab_elastic(&l, "second", 2, "m5", 4);
    lab_submit_pool(&l, 4, "first", WISH_ANY);
    int64_t job = lab_submit_nodes(&l, 2, 4, 0);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 1);
    assert_int_equal(lab_launches(&l, 3), 2);
    struct pool_row p = lab_pool(&l, "first");
    p.max_nodes = 4;
    lab_set_pool(&l, p);
    int64_t late = lab_submit_pool(&l, 4, "first", WISH_ANY);
    lab_plan(&l); /* also compares each decision with that of a planner without memory */
    assert_int_equal(lab_launches(&l, 1), 2);
    for (int64_t i = 1; i <= 4; i++) {
        lab_bring_up(&l, i, 4);
        lab_plan(&l);
    }
    assert_int_equal(lab_launches(&l, 1), 2);
    assert_int_equal(lab_launches(&l, 3), 2);
    assert_string_equal(ranks_get(&l, job, 1)->node->pool->row.name, "second");
    assert_int_not_equal(lab_node_of(&l, late), CORE_ID_NONE);
    lab_deinit(&l);
}

static void a_replacement_is_launched_while_a_gang_with_a_notice_still_runs(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t job = lab_submit_nodes(&l, 3, 4, 0);
    lab_plan(&l);
    for (int64_t i = 1; i <= 3; i++)
        lab_bring_up(&l, i, 4);
    lab_plan(&l);
    for (int32_t n = 0; n < 3; n++)
        ranks_started(&l, job, n);
    lab_notice(&l, ranks_node_of(&l, job, 1), NOTICE_TYPE_RECLAIM, 120000);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 4);
    lab_deinit(&l);
}

/* One checkpoint for all of it, reported by one rank, and one verdict. */
static void a_gang_is_drilled_as_a_whole(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    lab_apply(&t.l, (struct event){.type = EV_PROGRESS,
                        .progress = {.job = t.job, .attempt = 1, .done = 50, .total = 100}});
    lab_apply(&t.l, (struct event){.type = EV_DRILL, .drill = {.job = t.job, .by = "ann"}});
    for (int32_t n = 0; n < 3; n++)
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.stop_reason, END_DRILLED);
    lab_wait(&t.l, 1000);
    ranks_saved(&t.l, t.job, 0, 1, 50);
    for (int32_t n = 0; n < 3; n++)
        ranks_ended(&t.l, t.job, n, END_DRILLED, 85);
    assert_int_equal(job_side(model_job(t.l.m, t.job))->drill->row.state, DRILL_QUEUED);
    lab_wait(&t.l, 1000);
    lab_plan(&t.l);
    for (int32_t n = 0; n < 3; n++)
        ranks_started(&t.l, t.job, n);
    lab_apply(&t.l, (struct event){.type = EV_PROGRESS,
                        .progress = {.job = t.job, .attempt = 2, .done = 51, .total = 100}});
    lab_take(&t.l);
    assert_non_null(lab_history(&t.l, "drill-passed"));
    assert_int_equal(row(&t)->reclaims, 0);
    lab_deinit(&t.l);
}

/* ---- script on the first node only ---- */

static void start_first(struct trio *t)
{
    struct job_row r = lab_job(2);
    r.spec.nodes = 3;
    r.spec.script_on = SCRIPT_ON_FIRST;
    lab_init(&t->l);
    lab_join(&t->l, "a", 4);
    lab_join(&t->l, "b", 4);
    lab_join(&t->l, "c", 4);
    t->job = lab_submit(&t->l, &r);
    lab_plan(&t->l);
    for (int32_t n = 0; n < 3; n++)
        ranks_started(&t->l, t->job, n);
}

static void ranks_that_only_hold_a_node_end_like_the_first_rank(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    assert_false(attempt_has_no_script(ranks_get(&t.l, t.job, 0)));
    assert_true(attempt_has_no_script(ranks_get(&t.l, t.job, 2)));
    lab_wait(&t.l, 1000);
    ranks_ended(&t.l, t.job, 0, END_SUCCEEDED, 0);
    for (int32_t n = 1; n < 3; n++) {
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.state, ATTEMPT_STOPPING);
        assert_int_equal(ranks_get(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_false(ranks_get(&t.l, t.job, n)->row.save_first);
    }
    ranks_ended(&t.l, t.job, 2, END_GANG, 143);
    /* too late to matter */
    lab_apply(
        &t.l, (struct event){.type = EV_NODE_LOST, .lost.node = ranks_node_of(&t.l, t.job, 1)});
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->state, JOB_ENDED);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    int64_t useful = 0;
    for (size_t k = 0; k < t.l.c.n_ledger; k++)
        useful += t.l.c.ledger[k].kind == LEDGER_USEFUL ? t.l.c.ledger[k].ms : 0;
    assert_int_equal(useful, 2000); /* of the first rank, and of the one that was not lost */
    lab_deinit(&t.l);
}

static void the_end_of_the_first_rank_counts(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    int64_t lost = ranks_node_of(&t.l, t.job, 1);
    ranks_ended(&t.l, t.job, 0, END_FAILED, 9);
    ranks_ended(&t.l, t.job, 2, END_GANG, 143);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    /* this is why its srun failed */
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    lab_deinit(&t.l);
}

static void a_holding_rank_that_ends_by_itself_has_failed(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    ranks_ended(&t.l, t.job, 1, END_SUCCEEDED, 0);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    assert_int_equal(ranks_get(&t.l, t.job, 0)->row.stop_reason, END_GANG);
    ranks_ended(&t.l, t.job, 0, END_SUCCEEDED, 0); /* but the script had just completed */
    ranks_ended(&t.l, t.job, 2, END_GANG, 143);
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    lab_deinit(&t.l);
}

static void the_first_ranks_checkpoint_is_the_gangs(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    lab_wait(&t.l, 1000);
    ranks_saved(&t.l, t.job, 0, 1, 500);
    lab_notice(&t.l, ranks_node_of(&t.l, t.job, 2), NOTICE_TYPE_RECLAIM, 30000);
    assert_true(ranks_get(&t.l, t.job, 0)->row.save_first);
    ranks_ended(&t.l, t.job, 0, END_GANG, 85);
    assert_false(ranks_get(&t.l, t.job, 1)->row.save_first); /* it may stop at any time now */
    /* it was stopped; without the notice it would not have been */
    ranks_ended(&t.l, t.job, 2, END_GANG, 143);
    ranks_ended(&t.l, t.job, 1, END_GANG, 143);
    assert_int_equal(row(&t)->end, END_RECLAIMED);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->lost_ms, 0);
    assert_int_equal(row(&t)->last_good_progress, 500);
    lab_deinit(&t.l);
}

static void a_job_on_one_node_runs_its_script_on_each(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(2);
    r.spec.script_on = SCRIPT_ON_FIRST;
    lab_init(&l);
    int64_t job = lab_submit(&l, &r);
    assert_int_equal(model_job(l.m, job)->row.spec.script_on, SCRIPT_ON_EACH);
    lab_deinit(&l);
}

static void why_explains_a_gang_that_waits(void **state)
{
    (void)state;
    struct lab l;
    struct reason why[EXPLAIN_REASONS_MAX];
    lab_init(&l);
    lab_join(&l, "a", 4);
    lab_join(&l, "b", 4);
    int64_t job = lab_submit_nodes(&l, 3, 2, 0);
    lab_plan(&l);
    assert_true(core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(why[0].code, "too-many-nodes");
    assert_string_equal(
        why[0].text, "it needs 3 nodes of one pool at once; the largest pool can have 2");
    lab_join(&l, "c", 4);
    int64_t small = lab_submit_cpus(&l, 4);
    lab_apply(&l, (struct event){.type = EV_PLACE, .place = {.job = small, .node = 3}});
    lab_plan(&l);
    assert_true(core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(
        why[0].text, "2 of the 3 nodes that it needs at once, of one pool, have capacity");
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_start_or_none),
        cmocka_unit_test(a_place_must_be_for_all_ranks_on_different_nodes),
        cmocka_unit_test(a_gang_is_launched_in_one_zone_while_that_has_machines),
        cmocka_unit_test(a_gang_stays_in_one_pool),
        cmocka_unit_test(a_gang_succeeds_when_all_ranks_have),
        cmocka_unit_test(a_rank_that_fails_stops_the_others_and_decides_the_end),
        cmocka_unit_test(a_notice_makes_all_ranks_save_and_stop),
        cmocka_unit_test(after_a_notice_the_gang_ends_as_reclaimed_whichever_rank_ends_first),
        cmocka_unit_test(a_lost_node_stops_the_others_at_once),
        cmocka_unit_test(a_lost_node_counts_before_failures_of_other_ranks),
        cmocka_unit_test(a_cancel_stops_all_ranks_and_is_the_end),
        cmocka_unit_test(requeues_and_drains_stop_all_ranks),
        cmocka_unit_test(machines_are_launched_for_all_ranks_or_none),
        cmocka_unit_test(nodes_that_wait_for_the_rest_are_not_idle),
        cmocka_unit_test(free_nodes_count_before_machines_are_launched),
        cmocka_unit_test(ranks_that_only_hold_a_node_end_like_the_first_rank),
        cmocka_unit_test(the_end_of_the_first_rank_counts),
        cmocka_unit_test(a_holding_rank_that_ends_by_itself_has_failed),
        cmocka_unit_test(the_first_ranks_checkpoint_is_the_gangs),
        cmocka_unit_test(a_job_on_one_node_runs_its_script_on_each),
        cmocka_unit_test(why_explains_a_gang_that_waits),
        cmocka_unit_test(machines_for_other_jobs_do_not_draw_a_gang_away),
        cmocka_unit_test(a_replacement_is_launched_while_a_gang_with_a_notice_still_runs),
        cmocka_unit_test(a_gang_is_drilled_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
