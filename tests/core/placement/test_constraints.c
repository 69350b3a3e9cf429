/* SPDX-License-Identifier: Apache-2.0
 *
 * Features, named resources and licences: demands of jobs, and which jobs get them.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/placement/placement_access.h"
#include <string.h>

#define REASONS_MAX 16

static void texts_are_read_and_written(void **state)
{
    static const char *const good[][2] = {{"", ""}, {"licences=b:1,a", "licences=a:1,b:1"},
        {"constraint=(a)&b resources=lego:2 licences=x",
            "constraint=a&b resources=lego:2 licences=x:1"},
        {"licences=x exclusive=yes", "licences=x:1 exclusive=yes"},
        {"exclusive=yes nodes=n[1-3],m exclude=n2", "exclusive=yes nodes=n[1-3],m exclude=n2"},
        {"input=store:7", "input=store:7"}, {"input=here/x:5", "input=here/x:5"},
        {"licences=a input=aws/us-east-1:1152921504606846976",
            "licences=a:1 input=aws/us-east-1:1152921504606846976"}};
    static const char *const bad[] = {"a", "licences=a constraint=b", "constraint=a constraint=b",
        "resources=a:0", "constraint=a|", " ", "licences=a ", "constraint=a&b|c", "resources=x=1",
        "exclusive=no", "exclusive=yes licences=x", "nodes=", "nodes=,", "nodes=n[",
        "exclude=n1 nodes=n2", "exclude=n/1", "input=", "input=5", "input=aws:5", "input=aws/:5",
        "input=aws/a b:5", "input=/x:5", "input=aws/x:0", "input=aws/x:1152921504606846977",
        "input=store:", "input=store:x", "input=store:1 licences=a",
        "input=a-very-long-provider/x:5"};
    struct constraints x;
    struct err e;
    char out[CONSTRAINTS_TEXT_MAX];
    (void)state;
    for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
        assert_int_equal(constraints_parse(good[k][0], &x, &e), 0);
        constraints_format(&x, out);
        assert_string_equal(out, good[k][1]);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (constraints_parse(bad[k], &x, &e) != ERR_INVALID)
            fail_msg("taken: '%s'", bad[k]);
}

static void a_job_goes_where_its_features_are(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    lab_join(&l, "plain", 2);
    int64_t ib = lab_join_with(&l, "fast", 8, ",avx512,ib,", "");
    int64_t a = lab_submit_asking(&l, &r, "constraint=avx512&(ib|roce)");
    int64_t b = lab_submit_asking(&l, &r, "constraint=avx512&(ib|roce)");
    assert_ptr_equal(model_job(l.m, a)->shape, model_job(l.m, b)->shape);
    assert_int_equal(constraints_count(l.m), 1);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), ib);
    assert_int_equal(lab_node_of(&l, b), ib);
    /* the features are lost: running jobs continue, waiting jobs wait */
    struct event ev = {.type = EV_FACTS, .facts.node = ib, .facts.features = ",old,"};
    lab_apply(&l, ev);
    lab_ended(&l, a, END_NODE_LOST, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), CORE_ID_NONE);
    assert_true(lab_has_reason(&l, a, "extras", "plain lacks the features"));
    STR_COPY(ev.facts.features, ",avx512,roce,");
    lab_apply(&l, ev);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, a), ib);
    lab_ended(&l, a, END_SUCCEEDED, 0);
    lab_ended(&l, b, END_SUCCEEDED, 0);
    assert_int_equal(constraints_count(l.m), 0);
    lab_deinit(&l);
}

static void a_job_goes_where_its_gpus_are(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    r.spec.need.gpus = 1;
    struct node_row n = {.pool = "base",
        .total = {8, 2, 32768},
        .name = "old",
        .key_hash = "old",
        .gpu = {"v100", 16384}};
    lab_apply(&l, (struct event){.type = EV_JOIN, .join.node = &n});
    STR_COPY(n.name, "new");
    STR_COPY(n.key_hash, "new");
    n.gpu = (struct gpu_kind){"a100", 40960};
    int64_t a100 = lab_apply(&l, (struct event){.type = EV_JOIN, .join.node = &n});
    int64_t a = lab_submit_asking(&l, &r, "gpu=a100"),
            b = lab_submit_asking(&l, &r, "gpu-memory=32768"),
            c = lab_submit_asking(&l, &r, "gpu=a100 gpu-memory=40960 constraint=a100");
    lab_plan(&l);
    assert_true(lab_node_of(&l, a) == a100 && lab_node_of(&l, b) == a100 && !lab_node_of(&l, c));
    assert_true(lab_has_reason(&l, c, "extras", "the GPUs of old are v100, 16384 MiB"));
    assert_int_equal(lab_try_asking(&l, &r, "gpu=a10"), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "GPUs of the model \"a10\"; did you mean \"a100\"?"));
    assert_int_equal(lab_try_asking(&l, &r, "gpu=v100 gpu-memory=32768"), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "more than 16384"));
    r.spec.need.gpus = 0;
    assert_int_equal(lab_try_asking(&l, &r, "gpu=a100"), ERR_INVALID);
    lab_deinit(&l);
}

static void refused(
    struct lab *l, const struct job_row *r, const char *constraints, const char *words)
{
    if (lab_try_asking(l, r, constraints) != ERR_INVALID || !strstr(l->e.text, words))
        fail_msg("%s: %s", constraints, l->e.text);
}

static void impossible_constraints_are_refused(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5.2xlarge", 8);
    lab_join_with(&l, "one", 8, ",avx512,", "lego:4");
    lab_join_with(&l, "two", 8, ",ib,", "shmem:1");
    refused(&l, &r, "constraint=avx51", "feature \"avx51\"; did you mean \"avx512\"?");
    refused(&l, &r, "constraint=avx512&ib", "satisfies the whole constraint");
    refused(&l, &r, "constraint=apptainer|podman",
        "no node or pool that it may use has podman or apptainer, one of which a container image "
        "needs");
    refused(&l, &r, "resources=legos:1", "resource \"legos\"; did you mean \"lego\"?");
    refused(&l, &r, "resources=lego:5", "no node has more than 4");
    refused(&l, &r, "resources=lego:1,shmem:1", "together");
    refused(&l, &r, "licences=mathlab:1",
        "no licence \"mathlab\" in belayd's configuration; did you mean \"matlab\"?");
    refused(&l, &r, "licences=matlab:5", "it needs 5 of licence matlab, and the cluster has 4");
    refused(&l, &r, "constraint=a|", "expected a feature's name");
    assert_int_equal(lab_try_asking(&l, &r, "constraint=m5.2xlarge&spot&z1&r1&aws"), 0);
    assert_int_equal(lab_try_asking(&l, &r, "constraint=avx512|nothing"), 0);
    STR_COPY(r.spec.pool, "burst");
    refused(&l, &r, "constraint=avx512", "feature \"avx512\"");
    lab_deinit(&l);
}

static void a_job_runs_only_on_the_nodes_that_it_names(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1), pair = lab_job(1);
    (void)state;
    lab_init(&l);
    int64_t n1 = lab_join(&l, "n1", 2), n2 = lab_join(&l, "n2", 2), n3 = lab_join(&l, "n3", 2);
    int64_t a = lab_submit_asking(&l, &r, "nodes=n[1-2] exclude=n1"),
            b = lab_submit_asking(&l, &r, "nodes=n2"), c = lab_submit_asking(&l, &r, "nodes=n2"),
            d = lab_submit_asking(&l, &r, "exclude=n[1-2]");
    assert_int_equal(constraints_count(l.m), 3);
    lab_plan(&l);
    assert_true(lab_node_of(&l, a) == n2 && lab_node_of(&l, b) == n2 && lab_node_of(&l, d) == n3);
    /* the others are free, but it must not use them */
    assert_int_equal(lab_node_of(&l, c), CORE_ID_NONE);
    assert_true(lab_has_reason(&l, c, "extras", "nodes=n2; n1 is not in its --nodelist"));
    assert_true(lab_has_reason(&l, c, "nodes-busy", "1 node is large enough but busy"));
    struct forecast f;
    core_forecast(l.m, l.now, c, &f);
    assert_true(wall_is_set(f.median) && f.node == n2);
    pair.spec.nodes = 2;
    int64_t g = lab_submit_asking(&l, &pair, "nodes=n[1-2]");
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, g), CORE_ID_NONE);
    lab_ended(&l, a, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, c), n2);
    lab_ended(&l, b, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_node_of(&l, g) == n1 || lab_node_of(&l, g) == n2);
    lab_deinit(&l);
}

static void no_machine_is_launched_for_jobs_that_name_nodes(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5.2xlarge", 8);
    int64_t n1 = lab_join(&l, "n1", 1);
    int64_t first = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, first), n1);
    int64_t here = lab_submit_asking(&l, &r, "nodes=n1");
    lab_plan(&l);
    assert_true(list_is_empty(model_instances(l.m)));
    assert_true(lab_has_reason(&l, here, "extras", "under a name that is not known yet"));
    lab_submit_asking(&l, &r, "exclude=n1,gone"); /* a former node is accepted */
    lab_plan(&l);
    assert_false(list_is_empty(model_instances(l.m)));
    lab_deinit(&l);
}

static void names_that_no_node_has_are_refused(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    lab_join(&l, "node1", 2);
    lab_join(&l, "node2", 2);
    refused(&l, &r, "nodes=node[1-3]", "there is no node \"node3\"; did you mean \"node1\"?");
    refused(&l, &r, "exclude=mode2", "there is no node \"mode2\"; did you mean \"node2\"?");
    refused(&l, &r, "nodes=node1 exclude=node[1-2]", "are excluded as well");
    r.spec.nodes = 2;
    refused(&l, &r, "nodes=node1",
        "needs 2 nodes at once, and of its --nodelist, node1, it may have 1");
    refused(&l, &r, "nodes=node[1-2] exclude=node2", "it may have 1");
    assert_int_equal(lab_try_asking(&l, &r, "nodes=node[1-2]"), 0);
    lab_elastic(&l, "burst", 4, "m5.2xlarge", 8);
    STR_COPY(r.spec.pool, "burst");
    refused(&l, &r, "nodes=node[1-2]",
        "none of the nodes node[1-2] is in pool burst, where it may run");
    lab_deinit(&l);
}

static void named_resources_are_counted(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    struct err e;
    (void)state;
    lab_init(&l);
    int64_t n = lab_join_with(&l, "one", 8, "", "lego:4");
    int64_t a = lab_submit_asking(&l, &r, "resources=lego:2"),
            b = lab_submit_asking(&l, &r, "resources=lego:2"),
            c = lab_submit_asking(&l, &r, "resources=lego:1"), d = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    assert_true(
        lab_node_of(&l, a) && lab_node_of(&l, b) && !lab_node_of(&l, c) && lab_node_of(&l, d));
    assert_int_equal(model_node(l.m, n)->stock.free[0], 0);
    assert_true(lab_has_reason(&l, c, "nodes-busy", "1 node is large enough but busy"));
    /* the pool has fewer now: running jobs keep theirs, and none is given out until some are free
     * again */
    lab_apply(&l, (struct event){.type = EV_FACTS, .facts = {.node = n, .resources = "lego:3"}});
    lab_ended(&l, a, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, c), n);
    assert_int_equal(model_check(l.m, &e), 0);
    lab_deinit(&l);
}

static void licences_are_reserved_for_a_job_that_waits_for_more(void **state)
{
    struct lab l;
    struct job_row r = lab_job(1);
    (void)state;
    lab_init(&l);
    lab_join(&l, "one", 16);
    int64_t a = lab_submit_asking(&l, &r, "licences=matlab:2"),
            b = lab_submit_asking(&l, &r, "licences=matlab:2");
    lab_plan(&l);
    assert_true(lab_node_of(&l, a) && lab_node_of(&l, b));
    lab_wait(&l, 1000);
    int64_t big = lab_submit_asking(&l, &r, "licences=matlab:4");
    lab_wait(&l, 1000);
    int64_t small = lab_submit_asking(&l, &r, "licences=matlab:1"),
            other = lab_submit_asking(&l, &r, "licences=ansys:1");
    lab_ended(&l, a, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(lab_node_of(&l, big) || lab_node_of(&l, small));
    assert_true(lab_node_of(&l, other));
    assert_int_equal(licence_at(l.m, 0)->used, 2);
    assert_true(lab_has_reason(
        &l, big, "licences", "it needs 4 of licence matlab; 2 of 4 are in use by job 2 (2)"));
    /* a job outside the queue reserves none */
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = big, .by = "ann"}});
    lab_plan(&l);
    assert_true(lab_node_of(&l, small));
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = big, .by = "ann"}});
    lab_ended(&l, b, END_SUCCEEDED, 0);
    lab_ended(&l, small, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_node_of(&l, big));
    assert_int_equal(licence_at(l.m, 0)->used, 4);
    lab_ended(&l, big, END_SUCCEEDED, 0);
    assert_int_equal(licence_at(l.m, 0)->used, 0);
    lab_deinit(&l);
}

static void machines_are_launched_in_pools_that_meet_the_constraints(void **state)
{
    struct lab l;
    struct job_row r = lab_job(4);
    (void)state;
    lab_init(&l);
    lab_elastic(&l, "burst", 8, "small", 4);
    struct resources total = {.cpus = 4, .memory_mib = 16384};
    int64_t dear = lab_offer(&l, "burst", "large", MARKET_SPOT, 0, total, 9000000);
    struct pool_row p = lab_pool(&l, "burst");
    STR_COPY(p.resources, "lego:1");
    lab_set_pool(&l, p);
    lab_submit_asking(&l, &r, "constraint=large");
    for (int k = 0; k < 3; k++)
        lab_submit_asking(&l, &r, "licences=matlab:2");
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, dear), 1);
    int64_t n = 0;
    LIST_FOREACH (model_instances(l.m), k)
        n++;
    assert_int_equal(n, 3); /* there are licences for two */
    int64_t lego = lab_submit_asking(&l, &r, "constraint=small resources=lego:1");
    lab_plan(&l);
    LIST_FOREACH (model_instances(l.m), k)
        lab_bring_up(&l, LIST_ENTRY(k, struct instance, in_all)->row.id, 4);
    lab_plan(&l);
    assert_true(lab_node_of(&l, lego));
    assert_string_equal(model_node(l.m, lab_node_of(&l, lego))->instance->row.type, "small");
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_written),
        cmocka_unit_test(a_job_goes_where_its_features_are),
        cmocka_unit_test(a_job_goes_where_its_gpus_are),
        cmocka_unit_test(impossible_constraints_are_refused),
        cmocka_unit_test(a_job_runs_only_on_the_nodes_that_it_names),
        cmocka_unit_test(no_machine_is_launched_for_jobs_that_name_nodes),
        cmocka_unit_test(names_that_no_node_has_are_refused),
        cmocka_unit_test(named_resources_are_counted),
        cmocka_unit_test(licences_are_reserved_for_a_job_that_waits_for_more),
        cmocka_unit_test(machines_are_launched_in_pools_that_meet_the_constraints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
