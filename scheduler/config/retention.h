/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `retention`: how long what has ended is kept.
 *
 *     retention: {checkpoints: 7d, jobs: 400d, logs: 400d, logs_on_disk: 30d, events: 90d,
 *                 audit_log: 1100d, daily_costs: 800d}
 *
 *     retention: {database_max: 20G, logs_on_disk_max: 50G, logs_in_store_max: none}
 *
 * The word `forever` keeps all. A single duration in place of the map is that of the checkpoints.
 */
#ifndef BELAY_SCHEDULER_CONFIG_RETENTION_H
#define BELAY_SCHEDULER_CONFIG_RETENTION_H

#include "base/yaml.h"

struct config_retention {
    int64_t checkpoints_ms; /* of ended jobs */
    /* 0 = for ever */
    int64_t jobs_ms;   /* since their end */
    int64_t logs_ms;   /* output of a job, since its end; at most jobs_ms */
    int64_t disk_ms;   /* likewise on the disk, then in the store; at most logs_ms */
    int64_t events_ms; /* the history, except of live jobs */
    int64_t audit_ms;  /* rows of the audit log */
    int64_t days_ms;   /* the ledger's sums by day */
    /* beyond these bytes the oldest go before their age; 0 = unlimited */
    int64_t database_bytes;
    int64_t disk_bytes;  /* output on the disk: goes to the store */
    int64_t store_bytes; /* output in the store: is removed */
};

void config_read_retention(struct yaml_reader *root, struct config_retention *ret_config);

#endif
