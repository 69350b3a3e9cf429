/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's expectations for a job, for people (docs/reference/api.md, *Why it waits*).
 */
#ifndef BELAY_CLI_ESTIMATE_H
#define BELAY_CLI_ESTIMATE_H

#include "cli/cli.h"

/* Prints an `estimate`: when and where the job starts; nothing if null. would: the job is
 * hypothetical. */
void estimate_print(const json_t *o, bool would);

/* Prints the reply of POST /api/v1/jobs/estimate: like `belay submit --test-only` if slurm is NULL,
 * else on stderr like the Slurm program of that name. Returns the exit code. */
int estimate_print_submit(const json_t *v, const char *slurm, int cpus);

#endif
