/* SPDX-License-Identifier: Apache-2.0
 *
 * The design size: 100,000 pending jobs, 2,000 nodes. Times are printed; the bounds only catch a
 * wrong complexity (a decision that scans the queue or the nodes), not a slow machine.
 */
#include "tests/core/lab.h"

#include <inttypes.h>
#include <stdio.h>

#define JOBS 100000
#define NODES 2000
#define NODE_CPUS 32

static void apply(struct lab *l, struct event *ev)
{
    ev->now = l->now;
    if (core_apply(l->m, ev, NULL, &l->e))
        fail_msg("%s", l->e.text);
}

static int64_t decide_all(struct lab *l)
{
    struct event ev;
    int64_t n = 0;
    for (; plan_next(l->p, l->m, l->now, &ev); n++)
        apply(l, &ev);
    return n;
}

static void fill_queue(struct lab *l, int n_shapes)
{
    struct job_row r = lab_job(1);
    for (int k = 0; k < JOBS; k++) {
        r.spec.need.cpus = 1 + k % 8;
        r.spec.need.memory_mib = 1 + k % n_shapes;
        struct event ev = {.type = EV_SUBMIT, .submit.job = &r};
        apply(l, &ev);
    }
}

static void fill_nodes(struct lab *l)
{
    for (int k = 0; k < NODES; k++) {
        struct node_row r = {.pool = "base", .total = {NODE_CPUS + k % 5, 0, 1 << 20}};
        snprintf(r.name, sizeof r.name, "n%d", k);
        snprintf(r.key_hash, sizeof r.key_hash, "k%d", k);
        struct event ev = {.type = EV_JOIN, .join = {.node = &r}};
        apply(l, &ev);
    }
}

static void end_one(struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    struct event ev = {.type = EV_ATTEMPT_ENDED,
        .ended = {
            .job = job, .attempt = 1, .node = job_attempt(j)->row.node, .end = END_SUCCEEDED}};
    apply(l, &ev);
}

/* Ends of jobs one by one, each followed by all decisions. */
static double turnover(struct lab *l, int64_t ends)
{
    double from = lab_cpu_s();
    int64_t job = 1;
    for (int64_t k = 0; k < ends; job++) {
        const struct job *j = model_job(l->m, job);
        if (!j || !job_attempt(j))
            continue;
        end_one(l, job);
        decide_all(l);
        k++;
    }
    return lab_cpu_s() - from;
}

static void run(int n_shapes)
{
    struct lab l;
    double t0 = lab_cpu_s();
    lab_init(&l);
    fill_queue(&l, n_shapes);
    fill_nodes(&l);
    double t1 = lab_cpu_s();
    int64_t placed = decide_all(&l);
    int64_t ends = n_shapes > 1000 ? 500 : 2000; /* each examines all demand classes */
    double t2 = lab_cpu_s(), per_end = turnover(&l, ends) / (double)ends;
    struct model_counts c;
    model_counts(l.m, &c);
    print_message("%" PRId64 " shapes: load %.2f s; %" PRId64
                  " places in %.3f s (%.2f us each); an end with its "
                  "decisions %.1f us\n",
        c.shapes, t1 - t0, placed, t2 - t1, (t2 - t1) / (double)placed * 1e6, per_end * 1e6);
    assert_true(placed > 10000);
    assert_true((t2 - t1) / (double)placed < 200e-6);
    assert_int_equal(model_check(l.m, &l.e), 0);
    lab_deinit(&l);
}

static void a_decision_costs_the_same_whatever_waits(void **state)
{
    (void)state;
    run(8);
    run(100);
    run(20000); /* almost no two jobs alike */
}

/* Demand for ten thousand spot machines, counted by shape. */
static void the_demand_for_launches_is_counted_not_searched(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1000, "m5", 4);
    fill_queue(&l, 100);
    double t0 = lab_cpu_s();
    int64_t n = decide_all(&l);
    double took = lab_cpu_s() - t0;
    print_message("%" PRId64 " launches in %.3f s\n", n, took);
    assert_int_equal(n, 1000);
    assert_true(took < 10);
    lab_deinit(&l);
}

/* Almost no two jobs alike, thirty offers: packing does not search either. */
static void a_mixed_queue_is_packed_in_time(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1000, "m5", 4);
    for (int k = 0; k < 30; k++) {
        char type[32];
        int32_t cpus = 8 * (1 + k % 10);
        snprintf(type, sizeof type, "t%d", k);
        lab_offer(&l, "burst", type, MARKET_SPOT, 0, (struct resources){cpus, 0, cpus * 4096},
            cpus * 240000 + k * 1000);
    }
    struct job_row r = lab_job(1);
    for (int k = 0; k < 10000; k++) {
        r.spec.need.cpus = 1 + k % 7;
        r.spec.need.memory_mib = 1000 + k % 5000;
        struct event ev = {.type = EV_SUBMIT, .submit.job = &r};
        apply(&l, &ev);
    }
    double t0 = lab_cpu_s();
    int64_t n = decide_all(&l);
    double took = lab_cpu_s() - t0;
    print_message("%" PRId64 " launches for a mixed queue in %.3f s\n", n, took);
    assert_true(n > 100 && n <= 1000);
    assert_true(took < 10);
    lab_deinit(&l);
}

/* One submit, and one end: each job of the name is examined once. */
static void a_singleton_costs_each_job_of_its_name_once(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(1);
    const struct depend_ask asks[] = {{.kind = DEPEND_SINGLETON}, {.kind = DEPEND_SINGLETON}};
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = &r, .depends = asks, .n_depends = 2}};
    lab_init(&l);
    fill_queue(&l, 1);
    r.spec.depends_any = true;
    double from = lab_cpu_s();
    apply(&l, &ev);
    int64_t any = JOBS + 1, all = JOBS + 2;
    assert_int_equal(job_side(model_job(l.m, any))->n_open, JOBS);
    r.spec.depends_any = false;
    apply(&l, &ev);
    assert_int_equal(job_side(model_job(l.m, all))->n_open, JOBS + 1);
    ev = (struct event){.type = EV_CANCEL, .cancel = {.job = any, .by = "ann"}};
    apply(&l, &ev); /* its dependencies go to its heir */
    assert_int_equal(job_side(model_job(l.m, all))->n_open, JOBS);
    double took = lab_cpu_s() - from;
    print_message("two that wait for %d of a name, and the end of one: %.3f s\n", JOBS, took);
    assert_true(took < 10);
    lab_deinit(&l);
}

/* More than ten thousand pending requeues: a decision examines one of them. */
static void requeues_that_wait_cost_a_decision_nothing(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    int64_t asked = 0;
    const struct job *j;
    lab_init(&l);
    fill_queue(&l, 1);
    fill_nodes(&l);
    decide_all(&l);
    for (int64_t job = 1; job <= JOBS; job++) {
        if (!(j = model_job(l.m, job)) || !job_attempt(j))
            continue;
        ev = (struct event){.type = EV_ATTEMPT_STARTED,
            .started = {.job = job, .attempt = 1, .node = job_attempt(j)->row.node}};
        apply(&l, &ev);
        ev = (struct event){.type = EV_REQUEUE, .requeue = {.job = job, .by = "ann"}};
        apply(&l, &ev);
        asked += wall_is_set(job_attempt(j)->row.requeue_asked_at);
    }
    assert_true(asked > 10000);
    decide_all(&l);
    double from = lab_cpu_s();
    for (int64_t k = 0; k < 20 * asked; k++)
        assert_false(plan_next(l.p, l.m, l.now, &ev));
    double took = lab_cpu_s() - from;
    print_message("%" PRId64 " times nothing to decide, while %" PRId64 " requeues wait: %.3f s\n",
        20 * asked, asked, took);
    assert_true(took < 8);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_costs_the_same_whatever_waits),
        cmocka_unit_test(the_demand_for_launches_is_counted_not_searched),
        cmocka_unit_test(a_singleton_costs_each_job_of_its_name_once),
        cmocka_unit_test(requeues_that_wait_cost_a_decision_nothing),
        cmocka_unit_test(a_mixed_queue_is_packed_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
