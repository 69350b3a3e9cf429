/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_pace.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void a_flood_is_limited_to_ten_lines_a_minute_and_a_count(void **state)
{
    struct log_pace p = {0};
    int64_t left_out, n = 0, sum = 0, told = 0;
    (void)state;
    for (int64_t ms = -1000; ms < 179000; ms++) /* 1000 a second, three minutes */
        if (log_pace_admits(&p, (struct mono){ms}, &left_out)) {
            n++;
            sum += left_out;
            told += left_out > 0;
        }
    assert_int_equal(n, 3 * LOG_PACE_LINES);
    assert_int_equal(told, 2);
    assert_int_equal(sum, 2 * (60000 - LOG_PACE_LINES));
    assert_true(log_pace_admits(&p, (struct mono){179000}, &left_out));
    assert_int_equal(left_out, 60000 - LOG_PACE_LINES);
}

static void occasional_lines_are_all_written(void **state)
{
    struct log_pace p = {0};
    int64_t left_out;
    (void)state;
    for (int64_t ms = 0; ms < 3600000; ms += LOG_PACE_MS / LOG_PACE_LINES) {
        assert_true(log_pace_admits(&p, (struct mono){ms}, &left_out));
        assert_int_equal(left_out, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_is_limited_to_ten_lines_a_minute_and_a_count),
        cmocka_unit_test(occasional_lines_are_all_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
