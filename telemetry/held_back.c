/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/held_back.h"

enum held_back held_back_by(const struct gpu_load *l, const struct diagnose_limits *limits)
{
    int64_t thermal = load_percent(l->thermal_ms, l->ms), power = load_percent(l->power_ms, l->ms),
            slowed = load_percent(l->slowed_ms, l->ms);
    int64_t clock = l->ms > 0 ? l->clock_permille_ms / l->ms / 10 : 0;
    bool is_slow = clock > 0 && clock < limits->clock;
    if (thermal >= limits->thermal)
        return HELD_BACK_BY_HEAT;
    if (power >= limits->power)
        return is_slow ? HELD_BACK_BY_POWER : HELD_BACK_NOT;
    return slowed >= limits->thermal ? HELD_BACK_BY_BOARD : HELD_BACK_NOT;
}
