/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that name several pools run in any of those, and nowhere else.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/forecast/ahead.h"
#include <string.h>

#define REASONS_MAX 16

static const char *pool_of(const struct lab *l, int64_t job)
{
    const struct node *n = model_node(l->m, lab_node_of(l, job));
    return n ? n->row.pool : "";
}

/* Number of launches decided in the pool so far. */
static int64_t launches_in(const struct lab *l, const char *pool)
{
    int64_t n = 0;
    LIST_FOREACH (&model_pool(l->m, pool)->offers, o)
        n += lab_launches(l, LIST_ENTRY(o, struct offer, in_pool)->row.id);
    return n;
}

static void it_starts_in_whichever_has_capacity_first(void **state)
{
    struct lab l;
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "near", 1, "large", 8);
    lab_elastic(&l, "far", 1, "large", 8);
    lab_join(&l, "n1", 4);
    int64_t a = lab_submit_pool(&l, 4, "far,base", WISH_ANY),
            b = lab_submit_pool(&l, 4, "far,base", WISH_ANY);
    lab_plan(&l);
    assert_string_equal(pool_of(&l, a), "base"); /* existing capacity before paid capacity */
    assert_int_equal(launches_in(&l, "far"), 1);
    assert_int_equal(launches_in(&l, "near"), 0);
    lab_ended(&l, a, END_SUCCEEDED, 0); /* before the machine is up */
    lab_plan(&l);
    assert_string_equal(pool_of(&l, b), "base");
    lab_deinit(&l);
}

static void machines_are_launched_in_each_of_its_pools_and_in_no_other(void **state)
{
    struct lab l;
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "a", 4, "large", 8);
    lab_elastic(&l, "b", 1, "large", 8);
    lab_elastic(&l, "c", 1, "large", 8);
    for (int k = 0; k < 3; k++)
        lab_submit_pool(&l, 8, "c,b", WISH_ANY);
    lab_plan(&l);
    assert_int_equal(launches_in(&l, "a"), 0);
    assert_int_equal(launches_in(&l, "b"), 1);
    assert_int_equal(launches_in(&l, "c"), 1);
    lab_deinit(&l);
}

static void a_gang_is_in_one_of_its_pools(void **state)
{
    struct lab l;
    struct job_row r = lab_job(2);
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "large", 8);
    lab_join(&l, "n1", 4);
    int64_t other = lab_submit_pool(&l, 8, "burst", WISH_ANY);
    lab_plan(&l);
    int64_t machine = lab_bring_up(
        &l, LIST_ENTRY(list_first(model_instances(l.m)), struct instance, in_all)->row.id, 8);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, other), machine);
    lab_ended(&l, other, END_SUCCEEDED, 0);
    r.spec.nodes = r.spec.nodes_min = 2;
    STR_COPY(r.spec.pool, "base,burst");
    int64_t gang = lab_submit(&l, &r);
    lab_plan(&l); /* one node of each pool has capacity, but not two of one */
    assert_int_equal(lab_node_of(&l, gang), CORE_ID_NONE);
    assert_int_equal(launches_in(&l, "burst"), 2);
    lab_join(&l, "n2", 4);
    lab_plan(&l);
    assert_string_equal(pool_of(&l, gang), "base");
    lab_deinit(&l);
}

static void each_pool_keeps_its_own_rules(void **state)
{
    struct lab l;
    struct job_row r = lab_job(2);
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "strict", 4, "large", 8);
    lab_elastic(&l, "burst", 4, "large", 8);
    struct pool_row strict = lab_pool(&l, "strict");
    STR_COPY(strict.required_labels, ",project,");
    STR_COPY(strict.retries, "failed=3");
    lab_set_pool(&l, strict);
    struct pool_row burst = lab_pool(&l, "burst");
    STR_COPY(burst.retries, "failed=1,timeout=5");
    lab_set_pool(&l, burst);
    STR_COPY(r.spec.pool, "strict");
    lab_refused(&l, &r, "pool strict requires further labels of its jobs: project");
    STR_COPY(r.spec.pool, "strict,burst");
    r.spec.retries = (struct retries){0};
    int64_t j = lab_submit(&l, &r);
    /* the first one that is set */
    assert_int_equal(model_job(l.m, j)->row.spec.retries.n[RETRY_FAILED], 3);
    assert_int_equal(model_job(l.m, j)->row.spec.retries.n[RETRY_TIMEOUT], 5);
    lab_plan(&l);
    assert_int_equal(launches_in(&l, "strict"), 0);
    assert_int_equal(launches_in(&l, "burst"), 1);
    assert_true(lab_has_reason(
        &l, j, "required-labels", "pool strict requires further labels of its jobs: project"));
    lab_deinit(&l);
}

static void unknown_pools_are_named(void **state)
{
    struct lab l;
    (void)state;
    lab_init(&l);
    int64_t none = lab_submit_pool(&l, 2, "gone,lost", WISH_ANY),
            one = lab_submit_pool(&l, 2, "gone,base", WISH_ANY);
    assert_true(lab_has_reason(&l, none, "no-pool", "there is none of the pools 'gone,lost'"));
    assert_true(
        lab_has_reason(&l, one, "no-node-fits", "no node has joined any of the pools 'gone,base'"));
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    assert_string_equal(pool_of(&l, one), "base");
    assert_string_equal(pool_of(&l, none), "");
    lab_deinit(&l);
}

static void jobs_of_a_single_pool_are_counted_ahead_of_it(void **state)
{
    struct lab l;
    struct ahead a;
    (void)state;
    lab_init(&l);
    lab_submit_pool(&l, 2, "x,y", WISH_ANY);
    lab_submit_pool(&l, 2, "z", WISH_ANY);
    lab_submit_pool(&l, 2, "", WISH_ANY);
    int64_t j = lab_submit_pool(&l, 2, "w,y", WISH_ANY);
    core_ahead(l.m, l.now, j, &a);
    assert_int_equal(a.n, 2);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_starts_in_whichever_has_capacity_first),
        cmocka_unit_test(machines_are_launched_in_each_of_its_pools_and_in_no_other),
        cmocka_unit_test(a_gang_is_in_one_of_its_pools),
        cmocka_unit_test(each_pool_keeps_its_own_rules), cmocka_unit_test(unknown_pools_are_named),
        cmocka_unit_test(jobs_of_a_single_pool_are_counted_ahead_of_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
