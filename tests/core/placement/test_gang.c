/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-node jobs: all ranks start or none, they save and stop together, and form one attempt.
 */
#include "base/str.h"
#include "tests/core/shelf.h"

#include <inttypes.h>

static int64_t submit_gang(struct lab *l, int32_t nodes, int32_t cpus)
{
    struct job_row r = lab_job(cpus);
    r.spec.nodes = nodes;
    return lab_submit(l, &r);
}

static const struct attempt *rank(const struct lab *l, int64_t job, int32_t n)
{
    const struct job *j = model_job(l->m, job);
    LIST_FOREACH (&j->ranks, k) {
        const struct attempt *a = LIST_ENTRY(k, struct attempt, in_job);
        if (a->row.rank == n)
            return a;
    }
    return NULL;
}

static int64_t node_of(const struct lab *l, int64_t job, int32_t n)
{
    return rank(l, job, n)->row.node;
}

static void rank_started(struct lab *l, int64_t job, int32_t n)
{
    const struct job *j = model_job(l->m, job);
    lab_apply(l, (struct event){.type = EV_ATTEMPT_STARTED,
                     .started = {.job = job,
                         .attempt = j->row.attempts,
                         .node = node_of(l, job, n),
                         .restored = j->row.last_good,
                         .restored_progress = j->row.last_good_progress}});
}

static void rank_ended(struct lab *l, int64_t job, int32_t n, enum end_kind end, int32_t code)
{
    lab_apply(l, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = job,
                         .attempt = model_job(l->m, job)->row.attempts,
                         .node = node_of(l, job, n),
                         .end = end,
                         .exit_code = code}});
}

static void rank_saved(struct lab *l, int64_t job, int32_t n, int64_t sequence, int64_t progress)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = job,
                         .node = node_of(l, job, n),
                         .ref = {model_job(l->m, job)->row.attempts, sequence},
                         .bytes = 1000,
                         .took_ms = 100,
                         .progress = progress,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

/* Three nodes of four cpus, and a gang of three running on them. */
struct trio {
    struct lab l;
    int64_t job;
};

static void start(struct trio *t)
{
    lab_init(&t->l);
    lab_join(&t->l, "a", 4);
    lab_join(&t->l, "b", 4);
    lab_join(&t->l, "c", 4);
    t->job = submit_gang(&t->l, 3, 2);
    lab_plan(&t->l);
    for (int32_t n = 0; n < 3; n++)
        rank_started(&t->l, t->job, n);
}

static const struct job_row *row(const struct trio *t)
{
    return &model_job(t->l.m, t->job)->row;
}

static void all_start_or_none(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_join(&l, "a", 8);
    int64_t job = submit_gang(&l, 3, 2), small = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job))); /* although node a has room for all of it */
    assert_int_equal(lab_node_of(&l, small), a);
    int64_t b = lab_join(&l, "b", 2);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job)));
    int64_t c = lab_join(&l, "c", 2);
    lab_plan(&l);
    assert_int_equal(node_of(&l, job, 0), b); /* the tightest first */
    assert_int_equal(node_of(&l, job, 1), c);
    assert_int_equal(node_of(&l, job, 2), a);
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
    int64_t a = lab_join(&l, "a", 8), b = lab_join(&l, "b", 8), job = submit_gang(&l, 2, 1);
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

/* The premium for sharing an offer separates single-node jobs, not the nodes of one job. If its
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
            const char *zone = model_node(l.m, node_of(&l, job, n))->instance->row.zone;
            /* the fifth machine, the fourth node */
            assert_string_equal(zone, i == 0 && node_of(&l, job, n) == 4 ? "z2" : "z1");
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
    int64_t job = submit_gang(&l, 2, 2);
    lab_plan(&l);
    assert_null(job_attempt(model_job(l.m, job)));
    lab_join(&l, "b", 4);
    lab_plan(&l);
    assert_string_equal(rank(&l, job, 0)->node->row.pool, "base");
    assert_string_equal(rank(&l, job, 1)->node->row.pool, "base");
    lab_deinit(&l);
}

static void succeeds_when_all_ranks_have(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    rank_ended(&t.l, t.job, 1, END_SUCCEEDED, 0);
    assert_int_equal(row(&t)->state, JOB_RUNNING);
    assert_int_equal(rank(&t.l, t.job, 0)->row.state, ATTEMPT_RUNNING);
    rank_ended(&t.l, t.job, 0, END_SUCCEEDED, 0);
    rank_ended(&t.l, t.job, 2, END_SUCCEEDED, 0);
    lab_take(&t.l);
    assert_null(model_job(t.l.m, t.job));
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    assert_string_equal(lab_history(&t.l, "ended")->text, "rank 2: succeeded after 0ms");
    lab_deinit(&t.l);
}

static void one_that_fails_stops_the_others_and_decides(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    rank_ended(&t.l, t.job, 1, END_FAILED, 7);
    for (int32_t n = 0; n < 3; n += 2) {
        assert_int_equal(rank(&t.l, t.job, n)->row.state, ATTEMPT_STOPPING);
        assert_int_equal(rank(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_false(rank(&t.l, t.job, n)->row.save_first);
    }
    rank_ended(&t.l, t.job, 0, END_FAILED, 143); /* by the stop */
    assert_int_equal(row(&t)->used[RETRY_FAILED], 0);
    rank_ended(&t.l, t.job, 2, END_FAILED, 143);
    assert_int_equal(row(&t)->state, JOB_PENDING); /* it has one retry */
    assert_int_equal(row(&t)->end, END_FAILED);
    assert_int_equal(row(&t)->exit_code, 7);
    assert_int_equal(row(&t)->used[RETRY_FAILED], 1);
    assert_int_equal(row(&t)->gang_end, END_NONE);
    lab_plan(&t.l);
    assert_int_equal(row(&t)->attempts, 2);
    rank_ended(&t.l, t.job, 2, END_FAILED, 8);
    rank_ended(&t.l, t.job, 1, END_FAILED, 9); /* the first end decides */
    rank_ended(&t.l, t.job, 0, END_FAILED, 143);
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
    start(&t);
    int64_t doomed = node_of(&t.l, t.job, 2);
    lab_notice(&t.l, doomed, NOTICE_TYPE_RECLAIM, 30000);
    /* its agent stops it by itself */
    assert_int_equal(rank(&t.l, t.job, 2)->row.state, ATTEMPT_RUNNING);
    for (int32_t n = 0; n < 2; n++) {
        assert_int_equal(rank(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_true(rank(&t.l, t.job, n)->row.save_first);
    }
    for (int32_t n = 0; n < 3; n++)
        rank_saved(&t.l, t.job, n, 1, 500);
    rank_ended(&t.l, t.job, 0, END_GANG, 85);
    rank_ended(&t.l, t.job, 2, END_RECLAIMED, 85);
    rank_ended(&t.l, t.job, 1, END_GANG, 85);
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
static void a_reclaim_is_why_all_stopped_whoever_ends_first(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    lab_notice(&t.l, node_of(&t.l, t.job, 1), NOTICE_TYPE_RECLAIM, 30000);
    for (int32_t n = 0; n < 3; n++)
        rank_saved(&t.l, t.job, n, 1, 500);
    rank_ended(&t.l, t.job, 0, END_GANG, 85);
    assert_int_equal(rank(&t.l, t.job, 1)->row.stop_reason, END_GANG);
    rank_ended(&t.l, t.job, 2, END_GANG, 85);
    rank_ended(&t.l, t.job, 1, END_GANG, 143); /* it was stopped like them */
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_RECLAIMED);
    assert_int_equal(row(&t)->reclaims, 1);
    lab_deinit(&t.l);
}

static void a_lost_node_stops_the_others_at_once(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    rank_saved(&t.l, t.job, 0, 1, 100);
    int64_t lost = node_of(&t.l, t.job, 0);
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(rank(&t.l, t.job, 1)->row.stop_reason, END_GANG);
    assert_false(rank(&t.l, t.job, 1)->row.save_first);
    assert_int_equal(row(&t)->gang_end, END_NODE_LOST);
    rank_ended(&t.l, t.job, 1, END_GANG, 143);
    rank_ended(&t.l, t.job, 2, END_GANG, 143);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->used[RETRY_NODE_LOST], 1);
    lab_deinit(&t.l);
}

/* The other programs fail as soon as the connection breaks; the loss of the node is known only when
 * its lease expires. */
static void a_loss_is_why_the_others_failed(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    rank_saved(&t.l, t.job, 0, 1, 100);
    int64_t lost = node_of(&t.l, t.job, 1);
    rank_ended(&t.l, t.job, 2, END_FAILED, 1);
    rank_ended(&t.l, t.job, 0, END_FAILED, 1);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->exit_code, 0);
    assert_int_equal(row(&t)->used[RETRY_FAILED], 0);
    lab_deinit(&t.l);
}

static void a_cancel_stops_all_and_keeps_its_reason(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    lab_apply(&t.l, (struct event){.type = EV_CANCEL, .cancel = {t.job, "ann"}});
    rank_ended(&t.l, t.job, 0, END_FAILED, 143);
    assert_int_equal(rank(&t.l, t.job, 1)->row.stop_reason, END_USER);
    rank_ended(&t.l, t.job, 1, END_FAILED, 143);
    rank_ended(&t.l, t.job, 2, END_FAILED, 143);
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_USER);
    lab_deinit(&t.l);
}

static void requeues_and_drains_stop_all(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    lab_apply(&t.l, (struct event){.type = EV_DRAIN, .drain.node = node_of(&t.l, t.job, 1)});
    for (int32_t n = 0; n < 3; n++) {
        assert_int_equal(rank(&t.l, t.job, n)->row.stop_reason, END_DRAINED);
        assert_true(rank(&t.l, t.job, n)->row.save_first);
    }
    lab_deinit(&t.l);
}

static void machines_are_launched_for_all_ranks_or_none(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 8);
    int64_t job = submit_gang(&l, 4, 2);
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
    assert_int_equal(node_of(&l, job, 3), 4);
    lab_deinit(&l);
}

/* The first to join are idle for longer than the idle timeout before the last joins. */
static void nodes_that_wait_for_the_rest_are_not_idle(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 4);
    int64_t job = submit_gang(&l, 3, 4);
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
    assert_int_equal(node_of(&l, job, 2), 3);
    rank_ended(&l, job, 0, END_USER, 0);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {job, "ann"}});
    rank_ended(&l, job, 1, END_USER, 0);
    rank_ended(&l, job, 2, END_USER, 0);
    lab_wait(&l, LAB_IDLE_MS + LAB_COOLDOWN_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_null(model_node(l.m, first)); /* no job waits for it any more */
    lab_deinit(&l);
}

static void room_that_is_there_counts(void **state)
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
    submit_gang(&l, 3, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 3); /* one more for the first job, two for the gang */
    lab_deinit(&l);
}

/* The first pool gets machines enough for the gang, but for other jobs: the gang still waits for
 * its own, in the second. Had it gone over to theirs, they would get others. */
static void machines_for_other_jobs_do_not_draw_a_gang_away(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "first", 1, "m5", 4);
    lab_elastic(&l, "second", 2, "m5", 4);
    lab_submit_pool(&l, 4, "first", WISH_ANY);
    int64_t job = submit_gang(&l, 2, 4);
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
    assert_string_equal(rank(&l, job, 1)->node->pool->row.name, "second");
    assert_int_not_equal(lab_node_of(&l, late), CORE_ID_NONE);
    lab_deinit(&l);
}

static void a_gang_that_loses_a_node_gets_one_ahead_of_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t job = submit_gang(&l, 3, 4);
    lab_plan(&l);
    for (int64_t i = 1; i <= 3; i++)
        lab_bring_up(&l, i, 4);
    lab_plan(&l);
    for (int32_t n = 0; n < 3; n++)
        rank_started(&l, job, n);
    lab_notice(&l, node_of(&l, job, 1), NOTICE_TYPE_RECLAIM, 120000);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 4);
    lab_deinit(&l);
}

/* One checkpoint for all of it, reported by one rank, and one verdict. */
static void a_gang_is_drilled_as_a_whole(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    lab_apply(&t.l, (struct event){.type = EV_PROGRESS,
                        .progress = {.job = t.job, .attempt = 1, .done = 50, .total = 100}});
    lab_apply(&t.l, (struct event){.type = EV_DRILL, .drill = {.job = t.job, .by = "ann"}});
    for (int32_t n = 0; n < 3; n++)
        assert_int_equal(rank(&t.l, t.job, n)->row.stop_reason, END_DRILLED);
    lab_wait(&t.l, 1000);
    rank_saved(&t.l, t.job, 0, 1, 50);
    for (int32_t n = 0; n < 3; n++)
        rank_ended(&t.l, t.job, n, END_DRILLED, 85);
    assert_int_equal(job_side(model_job(t.l.m, t.job))->drill->row.state, DRILL_QUEUED);
    lab_wait(&t.l, 1000);
    lab_plan(&t.l);
    for (int32_t n = 0; n < 3; n++)
        rank_started(&t.l, t.job, n);
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
        rank_started(&t->l, t->job, n);
}

static void ranks_that_hold_end_with_the_first_and_as_it(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    assert_false(attempt_holds(rank(&t.l, t.job, 0)));
    assert_true(attempt_holds(rank(&t.l, t.job, 2)));
    lab_wait(&t.l, 1000);
    rank_ended(&t.l, t.job, 0, END_SUCCEEDED, 0);
    for (int32_t n = 1; n < 3; n++) {
        assert_int_equal(rank(&t.l, t.job, n)->row.state, ATTEMPT_STOPPING);
        assert_int_equal(rank(&t.l, t.job, n)->row.stop_reason, END_GANG);
        assert_false(rank(&t.l, t.job, n)->row.save_first);
    }
    rank_ended(&t.l, t.job, 2, END_GANG, 143);
    /* too late to matter */
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = node_of(&t.l, t.job, 1)});
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->state, JOB_ENDED);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    int64_t useful = 0;
    for (size_t k = 0; k < t.l.c.n_ledger; k++)
        useful += t.l.c.ledger[k].kind == LEDGER_USEFUL ? t.l.c.ledger[k].ms : 0;
    assert_int_equal(useful, 2000); /* of the first rank, and of the one that was not lost */
    lab_deinit(&t.l);
}

static void what_the_first_ends_as_is_what_counts(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    int64_t lost = node_of(&t.l, t.job, 1);
    rank_ended(&t.l, t.job, 0, END_FAILED, 9);
    rank_ended(&t.l, t.job, 2, END_GANG, 143);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    /* this is why its srun failed */
    lab_apply(&t.l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    assert_int_equal(row(&t)->end, END_NODE_LOST);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    lab_deinit(&t.l);
}

static void one_that_holds_and_ends_by_itself_has_failed(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    rank_ended(&t.l, t.job, 1, END_SUCCEEDED, 0);
    assert_int_equal(row(&t)->gang_end, END_FAILED);
    assert_int_equal(rank(&t.l, t.job, 0)->row.stop_reason, END_GANG);
    rank_ended(&t.l, t.job, 0, END_SUCCEEDED, 0); /* but the script had just completed */
    rank_ended(&t.l, t.job, 2, END_GANG, 143);
    lab_take(&t.l);
    assert_int_equal(lab_row(&t.l, t.job)->end, END_SUCCEEDED);
    lab_deinit(&t.l);
}

static void its_checkpoint_is_that_of_all(void **state)
{
    (void)state;
    struct trio t;
    start_first(&t);
    lab_wait(&t.l, 1000);
    rank_saved(&t.l, t.job, 0, 1, 500);
    lab_notice(&t.l, node_of(&t.l, t.job, 2), NOTICE_TYPE_RECLAIM, 30000);
    assert_true(rank(&t.l, t.job, 0)->row.save_first);
    rank_ended(&t.l, t.job, 0, END_GANG, 85);
    assert_false(rank(&t.l, t.job, 1)->row.save_first); /* it may stop at any time now */
    /* it was stopped; without the notice it would not have been */
    rank_ended(&t.l, t.job, 2, END_GANG, 143);
    rank_ended(&t.l, t.job, 1, END_GANG, 143);
    assert_int_equal(row(&t)->end, END_RECLAIMED);
    assert_int_equal(row(&t)->state, JOB_PENDING);
    assert_int_equal(row(&t)->lost_ms, 0);
    assert_int_equal(row(&t)->last_good_progress, 500);
    lab_deinit(&t.l);
}

static void of_one_node_there_is_no_first(void **state)
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

/* ---- elastic sizes ---- */

static int64_t submit_elastic(struct lab *l, int32_t least, int32_t most, enum gang_loss on_loss)
{
    struct job_row r = lab_job(4);
    r.spec.nodes = most;
    r.spec.nodes_min = least;
    r.spec.on_loss = on_loss;
    return lab_submit(l, &r);
}

static int32_t ranks_of(const struct lab *l, int64_t job)
{
    int32_t n = 0;
    LIST_FOREACH (&model_job(l->m, job)->ranks, k)
        n++;
    assert_true(n == 0 || n == model_job(l->m, job)->row.ranks);
    return n;
}

static void start_ranks(struct lab *l, int64_t job)
{
    lab_plan(l);
    for (int32_t n = 0; n < model_job(l->m, job)->row.ranks; n++)
        rank_started(l, job, n);
}

/* Loses that node; ends the other ranks. */
static void lose(struct lab *l, int64_t job, int64_t node)
{
    int64_t attempt = model_job(l->m, job)->row.attempts;
    lab_apply(l, (struct event){.type = EV_NODE_LOST, .lost.node = node});
    for (int32_t n = 0; n < JOB_NODES_MAX && model_job(l->m, job)->row.state == JOB_RUNNING; n++)
        if (model_job(l->m, job)->row.attempts == attempt && rank(l, job, n))
            rank_ended(l, job, n, END_GANG, 143);
}

static void an_elastic_one_starts_with_as_many_as_there_are(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "a", 4);
    int64_t job = submit_elastic(&l, 2, 4, LOSS_SHRINK);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 0);
    lab_join(&l, "b", 4);
    lab_join(&l, "c", 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "placed")->text, "attempt 1 on a (owned) and 2 more, of at most 4");
    struct reason why[EXPLAIN_REASONS_MAX];
    assert_int_equal(core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX), 4);
    assert_string_equal(why[3].text,
        "it runs on 3 nodes of at most 4, and on as many as there are when it starts again");
    assert_string_equal(lab_history(&l, "settled")->text,
        "starts with 2 or more nodes instead of 4: no more are available now");
    lab_deinit(&l);
}

static void it_has_what_its_pool_may_have_launched_and_waits_for_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 4);
    int64_t job = submit_elastic(&l, 2, 8, LOSS_SHRINK);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 3);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_bring_up(&l, 2, 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 0); /* the third is coming */
    lab_bring_up(&l, 3, 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    lab_deinit(&l);
}

static void it_does_not_wait_for_ever_for_one_that_does_not_come(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 4);
    int64_t job = submit_elastic(&l, 2, 3, LOSS_SHRINK);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_bring_up(&l, 2, 4);
    lab_launched(&l, 3);
    for (int k = 0; k < 45 && ranks_of(&l, job) == 0; k++) {
        lab_wait(&l, LAB_LEASE_MS / 2);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_int_equal(ranks_of(&l, job), 2);
    lab_deinit(&l);
}

static void it_goes_on_smaller_on_the_nodes_that_are_left(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    for (const char *name = "abcd"; *name; name++)
        lab_join(&l, (char[]){*name, '\0'}, 4);
    int64_t job = submit_elastic(&l, 2, 4, LOSS_SHRINK);
    start_ranks(&l, job);
    assert_int_equal(ranks_of(&l, job), 4);
    int64_t lost = node_of(&l, job, 1), first = node_of(&l, job, 0),
            attempt = model_job(l.m, job)->row.attempts;
    int64_t small = lab_submit_cpus(&l, 4); /* would go to the first remaining node */
    lab_apply(&l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    rank_ended(&l, job, 0, END_GANG, 143);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, small), CORE_ID_NONE); /* it is kept */
    shelf_restart(&s, &l);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, small), CORE_ID_NONE);
    assert_ptr_equal(model_node(l.m, first)->kept_for, model_job(l.m, job));
    struct reason why[EXPLAIN_REASONS_MAX];
    core_explain(l.m, l.now, small, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(why[1].text,
        "1 node is temporarily reserved for a multi-node job that will continue there");
    rank_ended(&l, job, 2, END_GANG, 143);
    rank_ended(&l, job, 3, END_GANG, 143);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    assert_int_equal(model_job(l.m, job)->row.attempts, attempt + 1);
    assert_null(model_node(l.m, first)->kept_for);
    start_ranks(&l, job);
    lose(&l, job, node_of(&l, job, 2));
    lab_plan(&l);
    start_ranks(&l, job);
    assert_int_equal(ranks_of(&l, job), 2);
    /* one is too few: it is kept for a while, then released */
    lose(&l, job, node_of(&l, job, 0));
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 0);
    assert_int_equal(lab_node_of(&l, small), CORE_ID_NONE);
    core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(
        why[0].text, "1 node that it ran on is reserved for it, for at most 10m00s");
    lab_wait(&l, 30000);
    lab_heartbeats(&l);
    shelf_restart(&s, &l); /* kept for the rest of the time after a restart */
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, small), CORE_ID_NONE);
    core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(why[0].text, "1 node that it ran on is reserved for it, for at most 9m30s");
    for (int k = 0; k < 45; k++) {
        lab_wait(&l, LAB_LEASE_MS / 2);
        lab_heartbeats(&l);
        lab_plan(&l);
    }
    assert_int_not_equal(lab_node_of(&l, small), CORE_ID_NONE);
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void or_waits_for_another_node_for_a_while(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    for (const char *name = "abc"; *name; name++)
        lab_join(&l, (char[]){*name, '\0'}, 4);
    int64_t job = submit_elastic(&l, 2, 3, LOSS_WAIT);
    start_ranks(&l, job);
    lose(&l, job, node_of(&l, job, 0));
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 0);
    struct reason why[EXPLAIN_REASONS_MAX];
    core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(why[1].text, "with 2 or more it starts in at most 10m00s");
    assert_string_equal(why[2].text,
        "2 of the 3 nodes that it had and waits for again at once, of one pool, have room");
    lab_join(&l, "d", 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    start_ranks(&l, job);
    lose(&l, job, node_of(&l, job, 0));
    for (int k = 0; k < 19; k++) {
        lab_wait(&l, LAB_LEASE_MS);
        lab_heartbeats(&l);
        if (k == 9)
            shelf_restart(&s, &l);
        lab_plan(&l);
    }
    assert_int_equal(ranks_of(&l, job), 0);
    lab_wait(&l, LAB_LEASE_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 2);
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void it_grows_again_when_it_is_queued_again(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "a", 4);
    lab_join(&l, "b", 4);
    int64_t job = submit_elastic(&l, 2, 3, LOSS_SHRINK);
    start_ranks(&l, job);
    assert_int_equal(ranks_of(&l, job), 2);
    lab_join(&l, "c", 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 2);
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {job, "ann"}});
    rank_ended(&l, job, 0, END_USER, 85);
    rank_ended(&l, job, 1, END_USER, 85);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    lab_deinit(&l);
}

/* A machine is launched for a gang that waits, not for one that continues with fewer nodes. */
static void what_is_launched_ahead_follows_from_what_it_does(void **state)
{
    (void)state;
    for (int k = LOSS_SHRINK; k <= LOSS_WAIT; k++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 4, "m5", 4);
        int64_t job = submit_elastic(&l, 2, 3, (enum gang_loss)k);
        lab_plan(&l);
        for (int64_t i = 1; i <= 3; i++)
            lab_bring_up(&l, i, 4);
        start_ranks(&l, job);
        lab_notice(&l, node_of(&l, job, 1), NOTICE_TYPE_RECLAIM, 120000);
        rank_ended(&l, job, 0, END_GANG, 85);
        lab_plan(&l);
        assert_int_equal(lab_launches(&l, 1), k == LOSS_WAIT ? 4 : 3);
        lab_deinit(&l);
    }
}

static void survivors_of_a_fixed_one_are_kept_too(void **state)
{
    (void)state;
    struct trio t;
    start(&t);
    int64_t small = lab_submit_cpus(&t.l, 4), first = node_of(&t.l, t.job, 0);
    lose(&t.l, t.job, node_of(&t.l, t.job, 2));
    lab_plan(&t.l);
    assert_int_equal(lab_node_of(&t.l, small), CORE_ID_NONE);
    lab_join(&t.l, "d", 4);
    lab_plan(&t.l);
    assert_int_equal(node_of(&t.l, t.job, 0), first);
    struct reason why[EXPLAIN_REASONS_MAX];
    assert_int_equal(core_explain(t.l.m, t.l.now, small, why, EXPLAIN_REASONS_MAX), 2);
    assert_string_equal(why[0].code, "nodes-busy");
    lab_apply(&t.l, (struct event){.type = EV_CANCEL, .cancel = {t.job, "ann"}});
    for (int32_t n = 0; n < 3; n++)
        rank_ended(&t.l, t.job, n, END_USER, 0);
    lab_plan(&t.l);
    assert_int_not_equal(lab_node_of(&t.l, small), CORE_ID_NONE);
    lab_deinit(&t.l);
}

static void a_bad_range_is_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row r = lab_job(1);
    r.spec.nodes = 2;
    for (int k = 0; k < 2; k++) {
        r.spec.nodes_min = k ? 3 : -1;
        assert_int_equal(
            lab_try(&l, &(struct event){.type = EV_SUBMIT, .submit.job = &r}, NULL), ERR_INVALID);
    }
    assert_int_equal(
        lab_try(&l, &(struct event){.type = EV_SETTLE, .settle.job = 1}, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void why_it_waits_is_told(void **state)
{
    (void)state;
    struct lab l;
    struct reason why[EXPLAIN_REASONS_MAX];
    lab_init(&l);
    lab_join(&l, "a", 4);
    lab_join(&l, "b", 4);
    int64_t job = submit_gang(&l, 3, 2);
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
        why[0].text, "2 of the 3 nodes that it needs at once, of one pool, have room");
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_start_or_none),
        cmocka_unit_test(a_place_must_be_for_all_ranks_on_different_nodes),
        cmocka_unit_test(a_gang_is_launched_in_one_zone_while_that_has_machines),
        cmocka_unit_test(a_gang_stays_in_one_pool),
        cmocka_unit_test(succeeds_when_all_ranks_have),
        cmocka_unit_test(one_that_fails_stops_the_others_and_decides),
        cmocka_unit_test(a_notice_makes_all_ranks_save_and_stop),
        cmocka_unit_test(a_reclaim_is_why_all_stopped_whoever_ends_first),
        cmocka_unit_test(a_lost_node_stops_the_others_at_once),
        cmocka_unit_test(a_loss_is_why_the_others_failed),
        cmocka_unit_test(a_cancel_stops_all_and_keeps_its_reason),
        cmocka_unit_test(requeues_and_drains_stop_all),
        cmocka_unit_test(machines_are_launched_for_all_ranks_or_none),
        cmocka_unit_test(nodes_that_wait_for_the_rest_are_not_idle),
        cmocka_unit_test(room_that_is_there_counts),
        cmocka_unit_test(ranks_that_hold_end_with_the_first_and_as_it),
        cmocka_unit_test(what_the_first_ends_as_is_what_counts),
        cmocka_unit_test(one_that_holds_and_ends_by_itself_has_failed),
        cmocka_unit_test(its_checkpoint_is_that_of_all),
        cmocka_unit_test(of_one_node_there_is_no_first),
        cmocka_unit_test(an_elastic_one_starts_with_as_many_as_there_are),
        cmocka_unit_test(it_has_what_its_pool_may_have_launched_and_waits_for_it),
        cmocka_unit_test(it_does_not_wait_for_ever_for_one_that_does_not_come),
        cmocka_unit_test(it_goes_on_smaller_on_the_nodes_that_are_left),
        cmocka_unit_test(or_waits_for_another_node_for_a_while),
        cmocka_unit_test(it_grows_again_when_it_is_queued_again),
        cmocka_unit_test(what_is_launched_ahead_follows_from_what_it_does),
        cmocka_unit_test(survivors_of_a_fixed_one_are_kept_too),
        cmocka_unit_test(a_bad_range_is_refused),
        cmocka_unit_test(why_it_waits_is_told),
        cmocka_unit_test(machines_for_other_jobs_do_not_draw_a_gang_away),
        cmocka_unit_test(a_gang_that_loses_a_node_gets_one_ahead_of_time),
        cmocka_unit_test(a_gang_is_drilled_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
