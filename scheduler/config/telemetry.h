/* SPDX-License-Identifier: Apache-2.0
 *
 * telemetry: how long what agents tell of tasks and GPUs is kept, and what of it is worth a word.
 *
 *     telemetry: {minutes: 1d, ten_minutes: 7d, hours: 90d, diagnose: {over: 15m, least: 1m},
 *                 advise: {idle_for: 30m}, throttled_for: 5m, forgotten_for: 30d}
 */
#ifndef BELAY_SCHEDULER_CONFIG_TELEMETRY_H
#define BELAY_SCHEDULER_CONFIG_TELEMETRY_H

#include "base/yaml.h"
#include "db/loads.h"
#include "telemetry/advise.h"

struct config_telemetry {
    int64_t keep_ms[LOAD_SPANS]; /* minutes, tens of minutes, hours */
    int64_t forgotten_ms;        /* what nobody has touched for so long is forgotten */
    int64_t throttled_ms;        /* as struct conditions_options has it */
    int64_t over_ms;             /* what belay diagnose looks at: so long, up to now */
    struct diagnose_limits diagnose;
    struct advise_limits advise;
};

/* The section `telemetry`, or what is usual. */
void config_read_telemetry(struct yaml_reader *root, struct config_telemetry *ret_config);

#endif
