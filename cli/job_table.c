/* SPDX-License-Identifier: Apache-2.0
 *
 * See job_table.h.
 */
#include "cli/job_table.h"

/* clang-format off */
#define JOB_COLUMNS \
    {"ID", "ref", COLUMN_TEXT, .is_right = true}, \
    {"NAME", "name", COLUMN_TEXT}, \
    {"USER", "user", COLUMN_TEXT}, \
    {"TEAM", "team", COLUMN_TEXT, .is_wide = true}, \
    {"STATE", "state", COLUMN_JOB_STATE}, \
    {"ATTEMPTS", "attempts", COLUMN_INT, .is_extra = true}, \
    {"RECLAIMS", "reclaims", COLUMN_INT, .is_extra = true}, \
    {"PROGRESS", "progress", COLUMN_PROGRESS, .is_extra = true}, \
    {"POOL", "pool", COLUMN_TEXT, .is_wide = true}, \
    {"MARKET", "market", COLUMN_TEXT, .is_wide = true}, \
    {"NODES", "nodes", COLUMN_INT, .is_wide = true}, \
    {"CPUS", "cpus", COLUMN_INT, .is_wide = true}, \
    {"GPUS", "gpus", COLUMN_INT, .is_wide = true}, \
    {"NODE", "node", COLUMN_TEXT}, \
    {"COST", "cost_uusd", COLUMN_USD}, \
    {"STARTED", "started_at", COLUMN_AGO, .is_wide = true}, \
    {"AGE", "submitted_at", COLUMN_AGO}
/* clang-format on */

const struct list_column job_columns[] = {JOB_COLUMNS, {0}};
const struct list_column job_columns_why[] = {JOB_COLUMNS, {"WHY", "why", COLUMN_WHY}, {0}};
