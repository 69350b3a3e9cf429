/* SPDX-License-Identifier: Apache-2.0
 *
 * When a GPU is held back so much that its node is avoided: by the limits of diagnose.
 */
#include "telemetry/held_back.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct {
    struct gpu_load load;
    enum held_back want;
} loads[] = {
    {{.ms = 0}, HELD_BACK_NOT}, {{.ms = 60000, .clock_permille_ms = 60000000}, HELD_BACK_NOT},
    {{.ms = 60000, .thermal_ms = 5000}, HELD_BACK_NOT},
    {{.ms = 60000, .thermal_ms = 6000}, HELD_BACK_BY_HEAT},
    {{.ms = 60000, .slowed_ms = 6000}, HELD_BACK_BY_BOARD},
    {{.ms = 60000, .thermal_ms = 6000, .slowed_ms = 6000}, HELD_BACK_BY_HEAT},
    /* at full load that is usual */
    {{.ms = 60000, .power_ms = 60000, .clock_permille_ms = 54000000}, HELD_BACK_NOT},
    {{.ms = 60000, .power_ms = 60000, .clock_permille_ms = 42000000}, HELD_BACK_BY_POWER},
    /* which is that */
    {{.ms = 60000, .power_ms = 60000, .slowed_ms = 60000, .clock_permille_ms = 54000000},
        HELD_BACK_NOT},
    {{.ms = 60000, .power_ms = 60000}, HELD_BACK_NOT}, /* its clock is not known */
};

static void each_is_told_by_its_share_of_the_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        assert_int_equal(held_back_by(&loads[i].load, &diagnose_usual), loads[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_told_by_its_share_of_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
