/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs checkpointed by CRIU, and the machines that support it.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include <string.h>

static void set_criu(struct lab *l, int64_t node, enum criu_ability can, const char *text)
{
    struct event ev = {.type = EV_FACTS, .facts = {.node = node, .criu = can}};
    STR_COPY(ev.facts.criu_text, text);
    lab_apply(l, ev);
}

static struct job_row criu_job(int32_t gpus)
{
    struct job_row r = lab_job(1);
    r.spec.method = CKPT_CRIU;
    r.spec.need.gpus = gpus;
    return r;
}

static int64_t submit(struct lab *l, const char *pool)
{
    struct job_row r = criu_job(0);
    STR_COPY(r.spec.pool, pool);
    return lab_submit(l, &r);
}

static void refused(struct lab *l, struct job_row row, const char *why)
{
    struct event ev = {.type = EV_SUBMIT, .submit.job = &row};
    assert_int_equal(lab_try(l, &ev, NULL), ERR_UNSUPPORTED);
    assert_string_equal(l->e.text, why);
}

static const char *why(const struct lab *l, int64_t job, const char *code)
{
    static struct reason reasons[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l->m, l->now, job, reasons, EXPLAIN_REASONS_MAX);
    for (size_t k = 0; k < n; k++)
        if (strcmp(reasons[k].code, code) == 0)
            return reasons[k].text;
    return NULL;
}

static void a_criu_job_runs_only_on_nodes_with_criu(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t waits = submit(&l, ""); /* no node has joined: one with support may */
    int64_t a = lab_join(&l, "a", 4), b = lab_join(&l, "b", 4), c = lab_join(&l, "c", 4);
    set_criu(&l, a, CRIU_NO, "criu is not installed");
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, waits), CORE_ID_NONE);
    assert_string_equal(why(&l, waits, "criu"),
        "3 machines large enough cannot checkpoint it by CRIU; a: criu is not installed");
    set_criu(&l, c, CRIU_CPU, "4.1");
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, waits), c);
    int64_t other = lab_submit_cpus(&l, 1); /* other jobs go anywhere */
    lab_plan(&l);
    assert_int_not_equal(lab_node_of(&l, other), CORE_ID_NONE);
    for (int k = 0; k < 3; k++)
        submit(&l, "");
    lab_plan(&l);
    int64_t full = submit(&l, "");
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, full), CORE_ID_NONE);
    assert_non_null(why(&l, full, "nodes-busy"));
    assert_string_equal(why(&l, full, "criu"),
        "2 machines large enough cannot checkpoint it by CRIU; a: criu is not installed");
    set_criu(&l, b, CRIU_GPU, "4.1");
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, full), b);
    struct event ev = {.type = EV_PLACE, .place = {.job = submit(&l, ""), .node = a}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void an_impossible_criu_job_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_join(&l, "a", 4);
    refused(&l, criu_job(0),
        "--checkpoint criu: no machine that the job may use can do that; a: its agent does not "
        "report "
        "what CRIU can do there");
    set_criu(&l, a, CRIU_NO, "criu 3.17.1: criu check failed with exit code 1: no vDSO");
    refused(&l, criu_job(0),
        "--checkpoint criu: no machine that the job may use can do that; a: criu 3.17.1: criu "
        "check failed with exit code "
        "1: no vDSO");
    struct job_row several = criu_job(0);
    several.spec.nodes = 2;
    refused(&l, several,
        "--checkpoint criu is for single-node jobs: connections between nodes cannot be saved");
    struct job_row large = criu_job(0);
    large.spec.need.cpus = 64; /* waits for a larger one, like any job */
    lab_submit(&l, &large);
    lab_elastic(&l, "burst", 3, "m5", 16);
    submit(&l, "");
    struct pool_row p = lab_pool(&l, "burst");
    p.criu = CRIU_NO;
    lab_set_pool(&l, p);
    struct job_row r = criu_job(0);
    STR_COPY(r.spec.pool, "burst");
    refused(&l, r,
        "--checkpoint criu: no machine that the job may use can do that; burst: its configuration "
        "says criu: no");
    p.criu = CRIU_CPU;
    lab_set_pool(&l, p);
    lab_submit(&l, &r);
    struct event ev = {.type = EV_FACTS, .facts = {.node = a, .criu = (enum criu_ability)9}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_INVALID);
    lab_deinit(&l);
}

static void gpu_jobs_need_criu_with_gpu_support(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 3, "m5", 16);
    lab_offer(&l, "burst", "g5", MARKET_SPOT, 0, (struct resources){8, 1, 65536}, 1);
    struct pool_row p = lab_pool(&l, "burst");
    p.criu = CRIU_CPU;
    lab_set_pool(&l, p);
    refused(&l, criu_job(1),
        "--checkpoint criu with GPUs: no machine that the job may use can do that; burst: its "
        "configuration says criu: cpu");
    p.criu = CRIU_GPU;
    lab_set_pool(&l, p);
    struct job_row r = criu_job(1);
    lab_submit(&l, &r);
    assert_true(lab_plan(&l) > 0);
    lab_deinit(&l);
}

/* One machine is launched to find out, not several in turn. */
static void an_untried_pool_is_tried_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 5, "m5", 16);
    int64_t job = submit(&l, "");
    assert_string_equal(core_criu_untried(l.m, &model_job(l.m, job)->row), "burst");
    lab_plan(&l);
    assert_int_equal(list_is_empty(model_instances(l.m)), 0);
    int64_t node = lab_bring_up(&l, 1, 16);
    set_criu(&l, node, CRIU_NO, "criu is not installed");
    lab_plan(&l);
    assert_null(model_instance(l.m, 2));
    assert_int_equal(lab_node_of(&l, job), CORE_ID_NONE);
    assert_null(core_criu_untried(l.m, &model_job(l.m, job)->row));
    assert_non_null(strstr(why(&l, job, "criu"), "criu is not installed"));
    refused(&l, criu_job(0),
        "--checkpoint criu: no machine that the job may use can do that; burst: criu is not "
        "installed");
    struct pool_row p = lab_pool(&l, "burst"); /* another image */
    p.criu = CRIU_CPU;
    lab_set_pool(&l, p);
    lab_plan(&l);
    assert_non_null(model_instance(l.m, 2));
    set_criu(&l, lab_bring_up(&l, 2, 16), CRIU_CPU, "4.1");
    lab_plan(&l);
    assert_int_not_equal(lab_node_of(&l, job), CORE_ID_NONE);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_criu_job_runs_only_on_nodes_with_criu),
        cmocka_unit_test(an_impossible_criu_job_is_refused_with_the_reason),
        cmocka_unit_test(gpu_jobs_need_criu_with_gpu_support),
        cmocka_unit_test(an_untried_pool_is_tried_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
