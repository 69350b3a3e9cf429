/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of jobs of `belay list`.
 */
#ifndef BELAY_CLI_JOB_TABLE_H
#define BELAY_CLI_JOB_TABLE_H

#include "cli/cli.h"

/* jobs: as GET /api/v1/jobs lists them. why: with a column for the reason why a job waits. */
void job_table(const json_t *jobs, bool why);

#endif
