/* SPDX-License-Identifier: Apache-2.0
 *
 * When a GPU is throttled so much that its node is avoided: by the limits of diagnose.
 */
#include "telemetry/throttle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct {
    struct gpu_load load;
    enum gpu_throttle want;
} loads[] = {
    {{.ms = 0}, GPU_THROTTLE_NONE},
    {{.ms = 60000, .clock_permille_ms = 60000000}, GPU_THROTTLE_NONE},
    {{.ms = 60000, .thermal_ms = 5000}, GPU_THROTTLE_NONE},
    {{.ms = 60000, .thermal_ms = 6000}, GPU_THROTTLE_HEAT},
    {{.ms = 60000, .slowed_ms = 6000}, GPU_THROTTLE_BOARD},
    {{.ms = 60000, .thermal_ms = 6000, .slowed_ms = 6000}, GPU_THROTTLE_HEAT},
    /* usual at full load */
    {{.ms = 60000, .power_ms = 60000, .clock_permille_ms = 54000000}, GPU_THROTTLE_NONE},
    {{.ms = 60000, .power_ms = 60000, .clock_permille_ms = 42000000}, GPU_THROTTLE_POWER},
    /* throttled */
    {{.ms = 60000, .power_ms = 60000, .slowed_ms = 60000, .clock_permille_ms = 54000000},
        GPU_THROTTLE_NONE},
    {{.ms = 60000, .power_ms = 60000}, GPU_THROTTLE_NONE}, /* unknown clock */
};

static void each_cause_is_recognised_by_its_share_of_the_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        assert_int_equal(gpu_throttle_of(&loads[i].load, &diagnose_usual), loads[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cause_is_recognised_by_its_share_of_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
