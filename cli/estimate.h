/* SPDX-License-Identifier: Apache-2.0
 *
 * What belayd expects of a job, for people (docs/reference/api.md, *Why it waits*).
 */
#ifndef BELAY_CLI_ESTIMATE_H
#define BELAY_CLI_ESTIMATE_H

#include "cli/cli.h"

/* When it starts and where: an `estimate`; null prints nothing. would: the job is only asked
 * about. */
void estimate_print(const json_t *o, bool would);

/* Prints the answer of POST /api/v1/jobs/estimate: as `belay submit --test-only` does if slurm is
 * NULL, else on stderr as the Slurm program of that name does. Returns the exit code. */
int estimate_print_submit(const json_t *v, const char *slurm, int cpus);

#endif
