/* SPDX-License-Identifier: Apache-2.0
 *
 * Gangs with a range of nodes: how many they start with, wait for, and continue with after a loss.
 */
#include "tests/core/ranks.h"
#include "tests/core/shelf.h"

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
        ranks_started(l, job, n);
}

/* Loses that node; ends the other ranks. */
static void lose(struct lab *l, int64_t job, int64_t node)
{
    int64_t attempt = model_job(l->m, job)->row.attempts;
    lab_apply(l, (struct event){.type = EV_NODE_LOST, .lost.node = node});
    for (int32_t n = 0; n < JOB_NODES_MAX && model_job(l->m, job)->row.state == JOB_RUNNING; n++)
        if (model_job(l->m, job)->row.attempts == attempt && ranks_get(l, job, n))
            ranks_ended(l, job, n, END_GANG, 143);
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
        "it runs on 3 nodes of at most 4, and on as many as are available when it starts again");
    assert_string_equal(lab_history(&l, "settled")->text,
        "starts with 2 or more nodes instead of 4: no more are available now");
    lab_deinit(&l);
}

static void it_waits_for_as_many_machines_as_its_pool_may_have(void **state)
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

static void it_waits_a_limited_time_for_a_machine(void **state)
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
    int64_t lost = ranks_node_of(&l, job, 1), first = ranks_node_of(&l, job, 0),
            attempt = model_job(l.m, job)->row.attempts;
    int64_t small = lab_submit_cpus(&l, 4); /* would go to the first remaining node */
    lab_apply(&l, (struct event){.type = EV_NODE_LOST, .lost.node = lost});
    ranks_ended(&l, job, 0, END_GANG, 143);
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
    ranks_ended(&l, job, 2, END_GANG, 143);
    ranks_ended(&l, job, 3, END_GANG, 143);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    assert_int_equal(model_job(l.m, job)->row.attempts, attempt + 1);
    assert_null(model_node(l.m, first)->kept_for);
    start_ranks(&l, job);
    lose(&l, job, ranks_node_of(&l, job, 2));
    lab_plan(&l);
    start_ranks(&l, job);
    assert_int_equal(ranks_of(&l, job), 2);
    /* one is too few: it is kept for a while, then released */
    lose(&l, job, ranks_node_of(&l, job, 0));
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

static void with_on_loss_wait_it_waits_for_another_node(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    for (const char *name = "abc"; *name; name++)
        lab_join(&l, (char[]){*name, '\0'}, 4);
    int64_t job = submit_elastic(&l, 2, 3, LOSS_WAIT);
    start_ranks(&l, job);
    lose(&l, job, ranks_node_of(&l, job, 0));
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 0);
    struct reason why[EXPLAIN_REASONS_MAX];
    core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(why[1].text, "with 2 or more it starts in at most 10m00s");
    assert_string_equal(why[2].text,
        "2 of the 3 nodes that it had and waits for again at once, of one pool, have capacity");
    lab_join(&l, "d", 4);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    start_ranks(&l, job);
    lose(&l, job, ranks_node_of(&l, job, 0));
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
    ranks_ended(&l, job, 0, END_CANCELLED, 85);
    ranks_ended(&l, job, 1, END_CANCELLED, 85);
    lab_plan(&l);
    assert_int_equal(ranks_of(&l, job), 3);
    lab_deinit(&l);
}

/* A machine is launched for a gang that waits, not for one that continues with fewer nodes. */
static void replacements_are_launched_only_if_it_waits_for_them(void **state)
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
        lab_notice(&l, ranks_node_of(&l, job, 1), NOTICE_TYPE_RECLAIM, 120000);
        ranks_ended(&l, job, 0, END_GANG, 85);
        lab_plan(&l);
        assert_int_equal(lab_launches(&l, 1), k == LOSS_WAIT ? 4 : 3);
        lab_deinit(&l);
    }
}

static void nodes_left_by_a_fixed_gang_are_kept_for_it_too(void **state)
{
    (void)state;
    struct trio t;
    trio_start(&t);
    int64_t small = lab_submit_cpus(&t.l, 4), first = ranks_node_of(&t.l, t.job, 0);
    lose(&t.l, t.job, ranks_node_of(&t.l, t.job, 2));
    lab_plan(&t.l);
    assert_int_equal(lab_node_of(&t.l, small), CORE_ID_NONE);
    lab_join(&t.l, "d", 4);
    lab_plan(&t.l);
    assert_int_equal(ranks_node_of(&t.l, t.job, 0), first);
    struct reason why[EXPLAIN_REASONS_MAX];
    assert_int_equal(core_explain(t.l.m, t.l.now, small, why, EXPLAIN_REASONS_MAX), 2);
    assert_string_equal(why[0].code, "nodes-busy");
    lab_apply(&t.l, (struct event){.type = EV_CANCEL, .cancel = {t.job, "ann"}});
    for (int32_t n = 0; n < 3; n++)
        ranks_ended(&t.l, t.job, n, END_CANCELLED, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elastic_one_starts_with_as_many_as_there_are),
        cmocka_unit_test(it_waits_for_as_many_machines_as_its_pool_may_have),
        cmocka_unit_test(it_waits_a_limited_time_for_a_machine),
        cmocka_unit_test(it_goes_on_smaller_on_the_nodes_that_are_left),
        cmocka_unit_test(with_on_loss_wait_it_waits_for_another_node),
        cmocka_unit_test(it_grows_again_when_it_is_queued_again),
        cmocka_unit_test(replacements_are_launched_only_if_it_waits_for_them),
        cmocka_unit_test(nodes_left_by_a_fixed_gang_are_kept_for_it_too),
        cmocka_unit_test(a_bad_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
