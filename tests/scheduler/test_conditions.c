/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU reports of nodes that affect decisions: a node is throttled for a limited time, whatever
 * follows.
 */
#include "base/str.h"
#include "scheduler/conditions.h"
#include "tests/scheduler/lab.h"

#define MINUTE_MS 60000

static const struct gpu_load hot = {
    .ms = MINUTE_MS, .thermal_ms = MINUTE_MS, .energy_mj = 30000000};
static const struct gpu_load cold = {.ms = MINUTE_MS, .energy_mj = 6000000};

struct reporter {
    struct lab *lab;
    struct conditions *c;
    int64_t node, no;
};

static struct reporter begin(struct lab *lab, int64_t throttled_ms)
{
    struct reporter t = {.lab = lab, .node = lab_join(lab, "n", 4)};
    t.c = conditions_create(&(struct conditions_options){.tick = lab->tick,
        .timers = &lab->vt.timers,
        .throttled_ms = throttled_ms,
        .limits = &diagnose_usual});
    return t;
}

static enum node_throttle throttle_of(const struct reporter *t)
{
    return model_node(t->lab->model, t->node)->throttle;
}

/* Reports a minute for each of two GPUs; NULL: no report. */
static void report(
    struct reporter *t, const struct gpu_load *a, const struct gpu_load *b, int64_t age_ms)
{
    struct wire_gpu_load loads[2] = {0};
    struct wire_status st = {.gpu_loads = loads};
    const struct gpu_load *of[] = {a, b};
    int64_t above = t->no;
    lab_advance(t->lab, MINUTE_MS);
    for (size_t i = 0; i < 2 && of[i]; i++, st.n_gpu_loads++) {
        loads[i] = (struct wire_gpu_load){.no = ++t->no,
            .at = clock_wall(t->lab->vt.timers.clock).ms - age_ms,
            .index = (int64_t)i,
            .load = *of[i]};
        STR_COPY(loads[i].gpu, i ? "GPU-b" : "GPU-a");
    }
    conditions_take(t->c, t->node, &st, above);
    lab_tick(t->lab);
}

static void a_node_is_throttled_until_that_has_been_over_for_a_while(void **state)
{
    struct reporter t = begin(*state, 5 * MINUTE_MS);
    report(&t, &cold, &cold, 0);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    report(&t, &cold, &hot, 0);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_HEAT);
    for (int k = 0; k < 4; k++)
        report(&t, &cold, &cold, 0);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_HEAT);
    report(&t, NULL, NULL, 0); /* the end of throttling need not be reported */
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    conditions_destroy(t.c);
}

static void old_or_repeated_reports_decide_nothing(void **state)
{
    struct reporter t = begin(*state, 5 * MINUTE_MS);
    report(&t, &hot, &hot, 4 * MINUTE_MS);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    report(&t, &hot, &hot, -11 * MINUTE_MS);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    struct wire_gpu_load again = {
        .no = t.no, .at = clock_wall(t.lab->vt.timers.clock).ms, .load = hot};
    conditions_take(
        t.c, t.node, &(struct wire_status){.gpu_loads = &again, .n_gpu_loads = 1}, t.no);
    lab_tick(t.lab);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    conditions_destroy(t.c);
}

static void what_does_not_matter_throttles_no_node(void **state)
{
    struct reporter t = begin(*state, 0);
    report(&t, &hot, &hot, 0);
    assert_int_equal(throttle_of(&t), NODE_THROTTLE_NONE);
    conditions_destroy(t.c);
}

/* The node is in the lab's rack, with 100 to 300 W. */
static int64_t power_above_model(const struct reporter *t)
{
    return model_node(t->lab->model, t->node)->over_w;
}

static void what_processors_and_gpus_draw_counts_together(void **state)
{
    struct reporter t = begin(*state, 5 * MINUTE_MS);
    struct wire_status st = {.cpu_mw = 149500};
    assert_non_null(model_node(t.lab->model, t.node)->rack);
    conditions_take(t.c, t.node, &st, 0);
    lab_tick(t.lab);
    assert_int_equal(power_above_model(&t), 50); /* no job runs there: 150 and not 100 */
    report(&t, &cold, &cold, 0);                 /* no report of processors: 200 by the GPUs */
    assert_int_equal(power_above_model(&t), 100);
    conditions_take(t.c, t.node, &st, t.no);
    lab_tick(t.lab);
    assert_int_equal(power_above_model(&t), 250);
    lab_advance(t.lab, CONDITION_STALE_MS);
    conditions_take(t.c, t.node, &st, t.no);
    lab_tick(t.lab);
    assert_int_equal(power_above_model(&t), 50);
    conditions_take(t.c, t.node, &(struct wire_status){0}, t.no);
    lab_tick(t.lab);
    assert_int_equal(power_above_model(&t), 0);
    conditions_destroy(t.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_node_is_throttled_until_that_has_been_over_for_a_while, lab_setup, lab_teardown),
        cmocka_unit_test_setup_teardown(
            old_or_repeated_reports_decide_nothing, lab_setup, lab_teardown),
        cmocka_unit_test_setup_teardown(
            what_does_not_matter_throttles_no_node, lab_setup, lab_teardown),
        cmocka_unit_test_setup_teardown(
            what_processors_and_gpus_draw_counts_together, lab_setup, lab_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
