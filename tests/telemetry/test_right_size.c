/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the runs of a name would fit a cheaper machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "telemetry/right_size.h"

#define GIB (INT64_C(1) << 30)
#define HOUR_MS 3600000

static const struct right_size_type types[] = {
    {"g5.4xlarge", 16, 65536, 1, 24576, "a10g", 1624000},
    {"g5.xlarge", 4, 16384, 1, 24576, "a10g", 1006000},
    {"g4dn.xlarge", 4, 16384, 1, 16384, "t4", 526000}, {"m6i.xlarge", 4, 16384, 0, 0, "", 192000},
    {"free", 64, 999999, 4, 99999, "a10g", 0}, /* no price */
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

static const struct right_size_type ask = {
    .cpus = 8, .memory_mib = 65536, .gpus = 1, .gpu_model = ""};

static struct right_size_run run_of(int64_t gib, int64_t cpu_milli, int64_t busy_pct)
{
    return (struct right_size_run){.memory_bytes = gib * GIB,
        .cpu_milli = cpu_milli,
        .gpu_memory_bytes = 10 * GIB,
        .gpu_busy_pct = busy_pct,
        .ran_ms = 2 * HOUR_MS};
}

static bool judge(
    int64_t gib, int64_t cpu_milli, int64_t busy_pct, size_t n, struct right_size *ret)
{
    const struct right_size_run runs[] = {run_of(2, 500, 5), run_of(gib, cpu_milli, busy_pct),
        run_of(1, 100, 1), run_of(1, 100, 1), run_of(1, 100, 1)};
    return right_size(&ask, runs, n, types, N_TYPES, ret);
}

static void the_largest_run_decides_with_a_margin(void **state)
{
    struct right_size s;
    (void)state;
    assert_true(judge(9, 2000, 90, 5, &s));
    assert_string_equal(s.then->name, "g5.xlarge");
    assert_string_equal(s.now->name, "g5.4xlarge");
    assert_int_equal(s.memory_mib, 11 * 1024);
    assert_int_equal(s.cpus, 3);
    assert_int_equal(s.uusd_h, 618000);
    assert_int_equal(s.uusd_run, 2 * 618000);
    assert_string_equal(s.text,
        "the last 5 runs of this name used at most 9.0 of 64 GiB, 2.0 of 8 cpus on average, 10.0 "
        "GiB of memory of a GPU, which was 90 % busy: --mem 11G --cpus 3 fits g5.xlarge instead of "
        "g5.4xlarge, $0.62/h less, $1.24 a run");
}

static void another_gpu_is_named_only_if_the_gpus_are_not_busy(void **state)
{
    struct right_size s;
    (void)state;
    assert_true(judge(9, 2000, RIGHT_SIZE_BUSY_PCT - 1, 5, &s));
    assert_string_equal(s.then->name, "g4dn.xlarge");
    assert_true(judge(9, 2000, RIGHT_SIZE_BUSY_PCT, 5, &s));
    assert_string_equal(s.then->name, "g5.xlarge");
}

static void what_is_not_clear_gives_no_advice(void **state)
{
    struct right_size s;
    (void)state;
    assert_false(judge(9, 2000, 90, RIGHT_SIZE_RUNS_MIN - 1, &s)); /* too few runs */
    assert_true(judge(9, 2000, 90, RIGHT_SIZE_RUNS_MIN, &s));
    assert_false(judge(14, 2000, 90, 5, &s)); /* with the margin it fits no smaller machine */
    assert_false(judge(44, 7000, 90, 5, &s)); /* more than 80 % with the margin */
    assert_false(judge(9, 3500, 90, 5, &s));  /* 4.2 of 8 cpus is not less than half */
    assert_false(judge(0, 2000, 90, 5, &s) && s.memory_mib < ask.memory_mib);
}

static void an_unknown_use_keeps_the_request(void **state)
{
    struct right_size_run runs[3] = {run_of(9, 0, 90), run_of(9, 100, 90), run_of(9, 100, 90)};
    struct right_size_type small = ask;
    struct right_size s;
    (void)state;
    small.cpus = 4;
    assert_true(right_size(&small, runs, 3, types, N_TYPES, &s));
    assert_int_equal(s.cpus, 4);
    runs[1].memory_bytes = 0;
    assert_false(right_size(&small, runs, 3, types, N_TYPES, &s));
}

static void nothing_fits_or_nothing_has_a_price(void **state)
{
    const struct right_size_run runs[3] = {run_of(1, 100, 1), run_of(1, 100, 1), run_of(1, 100, 1)};
    struct right_size_type large = ask;
    struct right_size s;
    (void)state;
    large.gpus = 2; /* only the machine without a price has them */
    assert_false(right_size(&large, runs, 3, types, N_TYPES, &s));
    assert_false(right_size(&ask, runs, 3, types, 0, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_run_decides_with_a_margin),
        cmocka_unit_test(another_gpu_is_named_only_if_the_gpus_are_not_busy),
        cmocka_unit_test(what_is_not_clear_gives_no_advice),
        cmocka_unit_test(an_unknown_use_keeps_the_request),
        cmocka_unit_test(nothing_fits_or_nothing_has_a_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
