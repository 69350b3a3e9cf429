/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of jobs of `belay list`.
 */
#ifndef BELAY_CLI_JOB_TABLE_H
#define BELAY_CLI_JOB_TABLE_H

#include "cli/list_table.h"

/* Of GET /api/v1/jobs; the second ends with a column for the reason why a job waits. */
extern const struct list_column job_columns[], job_columns_why[];

#endif
