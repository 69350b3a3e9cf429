/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `telemetry`: how long reports of tasks and GPUs are kept, and the thresholds for
 * findings and advice.
 *
 *     telemetry: {minutes: 1d, ten_minutes: 7d, hours: 90d, diagnose: {over: 15m, least: 1m},
 *                 advise: {idle_for: 30m}, throttled_for: 5m, forgotten_for: 30d}
 */
#ifndef BELAY_SCHEDULER_CONFIG_TELEMETRY_H
#define BELAY_SCHEDULER_CONFIG_TELEMETRY_H

#include "base/load.h"
#include "base/yaml.h"
#include "telemetry/advise.h"

struct config_telemetry {
    int64_t keep_ms[LOAD_SPANS]; /* minutes, tens of minutes, hours */
    int64_t forgotten_ms;        /* what was not touched for this long counts as forgotten */
    int64_t throttled_ms;        /* see struct conditions_options */
    int64_t over_ms;             /* the period of belay diagnose, up to now */
    struct diagnose_limits diagnose;
    struct advise_limits advise;
};

/* Reads the section `telemetry`; defaults for absent keys. */
void config_read_telemetry(struct yaml_reader *root, struct config_telemetry *ret_config);

#endif
