/* SPDX-License-Identifier: Apache-2.0
 *
 * Exclusive jobs: no other job on their nodes, and they use, pay for and are counted with whole
 * nodes. model_check verifies after every event that they are alone.
 */
#include "base/str.h"
#include "tests/core/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOUR_MS 3600000LL
#define ALONE "exclusive=yes"

static void begin(struct lab *l, const struct queue_policy *policy)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 1000 * 24 * HOUR_MS,
        .max_nodes = 100,
        .policy = policy};
    struct pool_row base = {.name = "base", .usd_per_hour_uusd = 800000};
    *l = (struct lab){.m = model_create(&o),
        .p = planner_create(),
        .now = {.wall = {1700000000000}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

static int64_t join_gpus(struct lab *l, const char *name, int32_t cpus, int32_t gpus)
{
    struct node_row r = {.pool = "base", .total = {cpus, gpus, 16384}};
    STR_COPY(r.name, name);
    snprintf(r.key_hash, sizeof r.key_hash, "key-%s", name);
    return lab_apply(l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
}

static int64_t submit(
    struct lab *l, int32_t nodes, int32_t cpus, int64_t limit_ms, const char *constraints)
{
    struct job_row r = lab_job(cpus);
    r.spec.nodes = nodes;
    r.spec.time_limit_ms = limit_ms;
    return lab_submit_asking(l, &r, constraints);
}

static const struct resources *allocated(const struct lab *l, int64_t job)
{
    return &job_attempt(model_job(l->m, job))->allocated;
}

static void an_exclusive_job_has_the_whole_node_to_itself(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL);
    int64_t large = join_gpus(&l, "large", 8, 2);
    int64_t one = submit(&l, 1, 1, 0, "");
    lab_plan(&l);
    int64_t alone = submit(&l, 1, 1, 0, ALONE);
    lab_plan(&l);
    assert_false(lab_runs(&l, alone));
    assert_true(lab_has_reason(
        &l, alone, "nodes-busy", "1 node is large enough but not empty, and it is exclusive"));
    int64_t small = join_gpus(&l, "small", 4, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, alone), small);
    assert_int_equal(allocated(&l, alone)->cpus, 4);
    assert_int_equal(allocated(&l, alone)->memory_mib, 16384);
    int64_t two = submit(&l, 1, 1, 0, ""), again = submit(&l, 1, 1, 0, ALONE);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, two), large);
    lab_ended(&l, one, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(lab_runs(&l, again));
    lab_ended(&l, two, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, again), large);
    assert_int_equal(allocated(&l, again)->gpus, 2);
    /* it costs the whole node */
    assert_int_equal(job_attempt(model_job(l.m, again))->uusd_h, 800000);
    lab_deinit(&l);
}

static void it_needs_at_least_what_it_asks_for(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL);
    join_gpus(&l, "small", 4, 0);
    int64_t alone = submit(&l, 1, 5, 0, ALONE);
    lab_plan(&l);
    assert_true(lab_has_reason(&l, alone, "too-large", "it needs 5 cpus"));
    int64_t large = join_gpus(&l, "large", 6, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, alone), large);
    lab_deinit(&l);
}

static void an_exclusive_gang_has_all_its_nodes_to_itself(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL);
    join_gpus(&l, "a", 4, 0);
    join_gpus(&l, "b", 8, 0);
    int64_t gang = submit(&l, 2, 1, 0, ALONE), one = submit(&l, 1, 1, 0, "");
    lab_plan(&l);
    assert_true(lab_runs(&l, gang) && !lab_runs(&l, one));
    assert_int_equal(model_job(l.m, gang)->account->mcpu, 12000);
    assert_int_equal(model_job(l.m, gang)->account->allowance.used[LIMIT_MCPU], 12000);
    lab_deinit(&l);
}

/* Other jobs pass it only if they end before the last job in its way. */
static void a_node_is_kept_until_it_is_empty(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL);
    int64_t n = join_gpus(&l, "a", 4, 0);
    int64_t first = submit(&l, 1, 1, HOUR_MS, ""), last = submit(&l, 1, 1, 2 * HOUR_MS, "");
    lab_plan(&l);
    int64_t alone = submit(&l, 1, 1, HOUR_MS, ALONE);
    int64_t too_long = submit(&l, 1, 1, 3 * HOUR_MS, ""), in_time = submit(&l, 1, 1, HOUR_MS, "");
    lab_plan(&l);
    assert_ptr_equal(model_node(l.m, n)->reserved_for, model_job(l.m, alone)->shape);
    assert_true(!lab_runs(&l, too_long) && lab_runs(&l, in_time));
    lab_wait(&l, HOUR_MS);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_ended(&l, in_time, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(!lab_runs(&l, alone) && !lab_runs(&l, too_long));
    lab_wait(&l, HOUR_MS);
    lab_ended(&l, last, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, alone), n);
    lab_ended(&l, alone, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, too_long));
    lab_deinit(&l);
}

/* A limit on its user's usage counts the whole node, so a node may be too large. */
static void limits_count_what_it_holds(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = queue_policy_defaults;
    o.each_user.is_set[LIMIT_GPUS] = true;
    o.each_user.max[LIMIT_GPUS] = 4;
    begin(&l, &o);
    join_gpus(&l, "large", 64, 8);
    struct job_row r = lab_job(1);
    r.spec.need.gpus = 1;
    int64_t alone = lab_submit_asking(&l, &r, ALONE);
    lab_plan(&l);
    assert_true(lab_has_reason(&l, alone, "too-large-for-limit",
        "1 machine that it would have for itself has more than ann may still have (max_gpus 4"));
    int64_t shares = lab_submit_asking(&l, &r, "");
    lab_plan(&l);
    assert_true(!lab_runs(&l, alone) && lab_runs(&l, shares));
    int64_t small = join_gpus(&l, "small", 16, 4);
    lab_plan(&l);
    assert_false(lab_runs(&l, alone)); /* 1 + 4 exceed the limit */
    lab_ended(&l, shares, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, alone), small);
    assert_int_equal(model_job(l.m, alone)->account->allowance.used[LIMIT_GPUS], 4);
    shares = lab_submit_asking(&l, &r, "");
    lab_plan(&l);
    assert_false(lab_runs(&l, shares));
    lab_ended(&l, alone, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, shares));
    lab_deinit(&l);
}

static int64_t n_instances(const struct lab *l, const char *type)
{
    int64_t n = 0;
    LIST_FOREACH (model_instances(l->m), k)
        n += str_eq(LIST_ENTRY(k, struct instance, in_all)->row.type, type);
    return n;
}

/* Each gets its own machine, the cheapest that fits; shared machines are planned without these. */
static void a_machine_is_launched_for_each_exclusive_job(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 8, "small", 4);
    struct resources total = {.cpus = 16, .memory_mib = 65536};
    lab_offer(&l, "burst", "large", MARKET_SPOT, 0, total, 3 * LAB_SPOT_UUSD_H);
    int64_t jobs[] = {submit(&l, 1, 1, 0, ALONE), submit(&l, 1, 1, 0, ALONE),
        submit(&l, 1, 6, 0, ALONE), submit(&l, 1, 1, 0, ""), submit(&l, 1, 1, 0, "")};
    lab_plan(&l);
    assert_int_equal(n_instances(&l, "small"), 3);
    assert_int_equal(n_instances(&l, "large"), 1);
    LIST_FOREACH (model_instances(l.m), k) {
        struct instance *i = LIST_ENTRY(k, struct instance, in_all);
        lab_bring_up(&l, i->row.id, str_eq(i->row.type, "small") ? 4 : 16);
    }
    lab_plan(&l);
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++)
        assert_true(lab_runs(&l, jobs[k]));
    assert_int_equal(n_instances(&l, "small") + n_instances(&l, "large"), 4);
    assert_int_equal(lab_node_of(&l, jobs[3]), lab_node_of(&l, jobs[4]));
    lab_deinit(&l);
}

static void cpus_that_a_node_gains_stay_with_the_exclusive_job(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL);
    int64_t n = join_gpus(&l, "a", 4, 0);
    int64_t alone = submit(&l, 1, 1, 0, ALONE);
    lab_plan(&l);
    assert_int_equal(join_gpus(&l, "a", 8, 0), n);
    int64_t other = submit(&l, 1, 1, 0, "");
    lab_plan(&l);
    assert_true(lab_runs(&l, alone) && !lab_runs(&l, other));
    lab_ended(&l, alone, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, other));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exclusive_job_has_the_whole_node_to_itself),
        cmocka_unit_test(it_needs_at_least_what_it_asks_for),
        cmocka_unit_test(an_exclusive_gang_has_all_its_nodes_to_itself),
        cmocka_unit_test(a_node_is_kept_until_it_is_empty),
        cmocka_unit_test(limits_count_what_it_holds),
        cmocka_unit_test(a_machine_is_launched_for_each_exclusive_job),
        cmocka_unit_test(cpus_that_a_node_gains_stay_with_the_exclusive_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
