/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/throttle.h"

enum gpu_throttle gpu_throttle_of(const struct gpu_load *l, const struct diagnose_limits *limits)
{
    int64_t thermal = load_percent(l->thermal_ms, l->ms), power = load_percent(l->power_ms, l->ms),
            slowed = load_percent(l->slowed_ms, l->ms);
    int64_t clock = l->ms > 0 ? l->clock_permille_ms / l->ms / 10 : 0;
    bool is_slow = clock > 0 && clock < limits->clock;
    if (thermal >= limits->thermal)
        return GPU_THROTTLE_HEAT;
    if (power >= limits->power)
        return is_slow ? GPU_THROTTLE_POWER : GPU_THROTTLE_NONE;
    return slowed >= limits->thermal ? GPU_THROTTLE_BOARD : GPU_THROTTLE_NONE;
}
