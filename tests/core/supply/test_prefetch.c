/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a job moves, the node that it moves to fetches its newest checkpoint: asked once, waited
 * for a limited time, and of use to no other job.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/supply/prefetch.h"
#include <string.h>

#define RETURN_MS 60000

/* Most of the content was in the store before. */
static void saved(struct lab *l, int64_t job, int64_t sequence, int64_t stored_bytes)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = job,
                         .node = lab_node_of(l, job),
                         .ref = {model_job(l->m, job)->row.attempts, sequence},
                         .bytes = 1000,
                         .stored_bytes = stored_bytes,
                         .took_ms = 100,
                         .pause_ms = 100,
                         .progress = sequence,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

static void wait_with_heartbeats(struct lab *l, int64_t ms)
{
    for (; ms > 0; ms -= 10000) {
        lab_wait(l, 10000);
        lab_heartbeats(l);
    }
}

/* n jobs run on-demand, because spot was refused, and may return. */
static void in_a_drought(struct lab *l, int64_t n, int64_t stored_bytes)
{
    struct job_row r = lab_job(4);
    lab_init(l);
    lab_elastic(l, "burst", 9, "m5", 4);
    struct pool_row p = lab_pool(l, "burst");
    p.return_ms = RETURN_MS;
    lab_set_pool(l, p);
    for (int64_t k = 1; k <= n; k++)
        lab_submit(l, &r);
    lab_plan(l);
    for (int64_t k = 1; k <= n; k++)
        lab_apply(
            l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {k, true, "no capacity"}});
    lab_plan(l);
    for (int64_t k = n + 1; k <= 2 * n; k++)
        lab_bring_up(l, k, 4);
    lab_plan(l);
    for (int64_t job = 1; job <= n; job++) {
        lab_started(l, job);
        saved(l, job, 1, stored_bytes);
    }
    wait_with_heartbeats(l, RETURN_MS);
    lab_plan(l);
}

static struct attempt *attempt_of(const struct lab *l, int64_t job)
{
    return job_attempt(model_job(l->m, job));
}

static bool is_moving(const struct lab *l, int64_t job)
{
    return attempt_of(l, job)->row.state == ATTEMPT_STOPPING;
}

static void assert_order(
    const struct lab *l, int64_t node, int64_t job, int64_t attempt, int64_t sequence)
{
    struct prefetch_order o;
    assert_true(prefetch_order_of(l->m, model_node(l->m, node), &o));
    assert_int_equal(o.job, job);
    assert_int_equal(o.attempt, attempt);
    assert_int_equal(o.sequence, sequence);
}

static bool has_order(const struct lab *l, int64_t node)
{
    struct prefetch_order o;
    return prefetch_order_of(l->m, model_node(l->m, node), &o);
}

static void report(struct lab *l, int64_t job, int64_t node, const char *failure)
{
    struct event ev = {.type = EV_PREFETCHED,
        .prefetch = {.job = job, .node = node, .ref = {model_job(l->m, job)->row.attempts, 1}}};
    STR_COPY(ev.prefetch.text, failure);
    lab_apply(l, ev);
}

static void a_job_moves_when_its_checkpoint_is_there(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 1, 100);
    int64_t node = lab_bring_up(&l, 3, 4);
    lab_take(&l);
    assert_int_equal(lab_plan(&l), 1);
    lab_take(&l);
    assert_non_null(lab_history(&l, "prefetch"));
    assert_int_equal(l.c.n_prefetches, 1); /* its agent is told after the commit */
    assert_int_equal(l.c.prefetches[0], node);
    assert_order(&l, node, 1, 1, 1);
    assert_false(is_moving(&l, 1));
    lab_check_wake(&l);
    saved(&l, 1, 2, 100);
    assert_int_equal(lab_plan(&l), 0);
    assert_order(&l, node, 1, 1, 2); /* the newest */
    report(&l, 1, node, "");
    assert_int_equal(lab_plan(&l), 1);
    assert_true(is_moving(&l, 1));
    lab_ended(&l, 1, END_EVICTED, 0);
    assert_order(&l, node, 1, 1, 0); /* it stays for the next attempt */
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), node);
    assert_order(&l, node, 1, 1, 0);
    lab_deinit(&l);
}

/* Longer than idle machines are kept, too: by its size, up to five minutes. */
static void a_move_waits_no_longer_than_the_limit(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes, wait_ms;
    } cases[] = {{1000, 30000}, {INT64_C(1) << 30, 130000}, {INT64_C(1) << 40, 300000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab l;
        in_a_drought(&l, 1, 100);
        model_job(l.m, 1)->row.ckpt_bytes = cases[i].bytes;
        attempt_of(&l, 1)->prefetch.unchanged_bytes = cases[i].bytes;
        int64_t node = lab_bring_up(&l, 3, 4);
        lab_plan(&l);
        wait_with_heartbeats(&l, cases[i].wait_ms - 10000);
        assert_int_equal(lab_plan(&l), 0);
        assert_false(is_moving(&l, 1));
        assert_int_equal(model_node(l.m, node)->row.state, NODE_UP);
        lab_check_wake(&l);
        wait_with_heartbeats(&l, 20000);
        assert_int_equal(lab_plan(&l), 1);
        assert_true(is_moving(&l, 1));
        lab_deinit(&l);
    }
}

static void a_failed_prefetch_delays_nothing(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 1, 100);
    int64_t node = lab_bring_up(&l, 3, 4);
    lab_plan(&l);
    lab_take(&l);
    report(&l, 1, node, "the disk is full");
    lab_take(&l);
    assert_non_null(strstr(lab_history(&l, "prefetch-failed")->text, "the disk is full"));
    assert_int_equal(lab_plan(&l), 1);
    assert_true(is_moving(&l, 1));
    lab_deinit(&l);
}

static void a_state_that_every_save_rewrites_is_not_prefetched(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 1, 900);
    int64_t node = lab_bring_up(&l, 3, 4);
    assert_int_equal(lab_plan(&l), 1);
    assert_true(is_moving(&l, 1));
    assert_false(has_order(&l, node));
    lab_deinit(&l);
}

static void a_node_that_pays_for_reads_from_the_store_prefetches_nothing(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 1, 100);
    struct pool_row p = lab_pool(&l, "burst");
    p.egress_uusd_gib = 90000;
    lab_set_pool(&l, p);
    int64_t node = lab_bring_up(&l, 3, 4);
    lab_plan(&l);
    assert_true(is_moving(&l, 1));
    assert_false(has_order(&l, node));
    lab_deinit(&l);
}

/* The node that was asked is taken: the job moves to the next one at once. */
static void a_job_waits_for_one_prefetch_only(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 1, 100);
    int64_t first = lab_bring_up(&l, 3, 4);
    lab_plan(&l);
    int64_t other = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, other), first);
    assert_false(has_order(&l, first)); /* what was fetched takes space of another job */
    assert_false(is_moving(&l, 1));
    int64_t next = 0;
    for (int64_t k = 4; model_instance(l.m, k); k++)
        next = lab_bring_up(&l, k, 4);
    assert_int_not_equal(next, 0);
    lab_take(&l);
    lab_plan(&l);
    assert_true(is_moving(&l, 1));
    lab_take(&l);
    assert_null(lab_history(&l, "prefetch"));
    lab_deinit(&l);
}

static void each_of_two_jobs_has_its_own_node(void **state)
{
    (void)state;
    struct lab l;
    in_a_drought(&l, 2, 100);
    int64_t nodes[2] = {lab_bring_up(&l, 5, 4), lab_bring_up(&l, 6, 4)};
    assert_int_equal(lab_plan(&l), 2);
    struct prefetch_order o[2];
    for (int k = 0; k < 2; k++)
        assert_true(prefetch_order_of(l.m, model_node(l.m, nodes[k]), &o[k]));
    assert_int_not_equal(o[0].job, o[1].job);
    report(&l, o[1].job, nodes[1], "");
    assert_int_equal(lab_plan(&l), 1);
    assert_true(is_moving(&l, o[1].job));
    assert_false(is_moving(&l, o[0].job));
    report(&l, o[1].job, nodes[0], ""); /* of another job's node: changes nothing */
    assert_int_equal(lab_plan(&l), 0);
    lab_ended(&l, o[1].job, END_EVICTED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, o[1].job), nodes[1]); /* although the other has a lower id */
    lab_deinit(&l);
}

static void a_job_under_notice_is_prefetched_and_waits_for_nothing(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(4);
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    lab_submit(&l, &r);
    lab_plan(&l);
    int64_t first = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_started(&l, 1);
    saved(&l, 1, 1, 100);
    lab_notice(&l, first, NOTICE_TYPE_RECLAIM, 120000);
    lab_plan(&l);
    int64_t next = lab_bring_up(&l, 2, 4);
    assert_int_equal(lab_plan(&l), 1);
    assert_order(&l, next, 1, 1, 1);
    lab_ended(&l, 1, END_RECLAIMED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, 1), next);
    lab_deinit(&l);
}

static void what_was_fetched_is_of_no_use_when_the_job_is_elsewhere_or_over(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        struct lab l;
        in_a_drought(&l, 1, 100);
        int64_t node = lab_bring_up(&l, 3, 4);
        lab_plan(&l);
        assert_true(has_order(&l, node));
        if (ends) {
            lab_ended(&l, 1, END_SUCCEEDED, 0);
        } else {
            int64_t owned = lab_join(&l, "rack1", 4); /* one that is free is better */
            report(&l, 1, node, "");
            lab_apply(&l, (struct event){.type = EV_DRAIN, .drain.node = node});
            lab_plan(&l);
            lab_ended(&l, 1, END_EVICTED, 0);
            lab_plan(&l);
            assert_int_equal(lab_node_of(&l, 1), owned);
        }
        assert_false(has_order(&l, node));
        lab_deinit(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_moves_when_its_checkpoint_is_there),
        cmocka_unit_test(a_move_waits_no_longer_than_the_limit),
        cmocka_unit_test(a_failed_prefetch_delays_nothing),
        cmocka_unit_test(a_state_that_every_save_rewrites_is_not_prefetched),
        cmocka_unit_test(a_node_that_pays_for_reads_from_the_store_prefetches_nothing),
        cmocka_unit_test(a_job_waits_for_one_prefetch_only),
        cmocka_unit_test(each_of_two_jobs_has_its_own_node),
        cmocka_unit_test(a_job_under_notice_is_prefetched_and_waits_for_nothing),
        cmocka_unit_test(what_was_fetched_is_of_no_use_when_the_job_is_elsewhere_or_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
