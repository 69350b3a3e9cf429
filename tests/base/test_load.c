/* SPDX-License-Identifier: Apache-2.0 */
#include "base/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static void sums_add_and_levels_take_the_maximum(void **state)
{
    struct task_load a = {
        .ms = 1000, .cpu_ms = 900, .memory_bytes = 50, .net_is_nodes = 1, .faults = 3};
    const struct task_load b = {
        .ms = 500, .cpu_ms = 100, .memory_bytes = 20, .node_cpus = 8, .faults = 4};
    struct gpu_load g = {.ms = 10, .busy_ms = 5, .temperature_c = 70, .ecc_uncorrected = 1};
    const struct gpu_load h = {.ms = 10, .busy_ms = 10, .temperature_c = 90, .ecc_uncorrected = 2};
    (void)state;
    task_load_add(&a, &b);
    assert_int_equal(a.ms, 1500);
    assert_int_equal(a.cpu_ms, 1000);
    assert_int_equal(a.memory_bytes, 50);
    assert_int_equal(a.net_is_nodes, 1);
    assert_int_equal(a.node_cpus, 8);
    assert_int_equal(a.faults, 7);
    gpu_load_add(&g, &h);
    assert_int_equal(g.busy_ms, 15);
    assert_int_equal(g.temperature_c, 90);
    assert_int_equal(g.ecc_uncorrected, 3);
}

/* A minute, ten minutes and an hour are equivalent. */
static void adding_is_commutative_and_associative(void **state)
{
    struct task_load v[3], left = {0}, right = {0}, pair;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof(v[i]) / sizeof(int64_t); k++)
            ((int64_t *)&v[i])[k] = (int64_t)((i * 7 + k * 13) % 31);
    for (size_t i = 0; i < 3; i++)
        task_load_add(&left, &v[i]);
    pair = v[2];
    task_load_add(&pair, &v[1]);
    task_load_add(&right, &pair);
    task_load_add(&right, &v[0]);
    assert_memory_equal(&left, &right, sizeof(left));
}

static void invalid_values_of_agents_do_not_overflow(void **state)
{
    const struct task_load b = {.cpu_ms = INT64_C(1) << 60};
    struct task_load a = {0};
    (void)state;
    for (int i = 0; i < 100; i++)
        task_load_add(&a, &b);
    assert_true(a.cpu_ms == INT64_C(1) << 60);
}

static void percentages_are_rounded_to_nearest(void **state)
{
    (void)state;
    assert_int_equal(load_percent(1, 3), 33);
    assert_int_equal(load_percent(2, 3), 67);
    assert_int_equal(load_percent(1, 0), 0);
    assert_int_equal(load_percent(INT64_C(1) << 60, INT64_C(1) << 60), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_add_and_levels_take_the_maximum),
        cmocka_unit_test(adding_is_commutative_and_associative),
        cmocka_unit_test(invalid_values_of_agents_do_not_overflow),
        cmocka_unit_test(percentages_are_rounded_to_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
