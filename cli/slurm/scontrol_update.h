/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol update: Slurm's names of what can be changed, of jobs and of nodes. What belay cannot do
 * and would change a job's meaning is refused by name.
 */
#ifndef BELAY_CLI_SLURM_SCONTROL_UPDATE_H
#define BELAY_CLI_SLURM_SCONTROL_UPDATE_H

#include "cli/cli.h"

/* The words behind "update". Returns the exit code, after a report. */
int scontrol_update(struct client *c, char **words, int n);

/* Pure. A word of a job's, "TimeLimit=2:00:00", into the body of an update. job: as it is now (JOB
 * of docs/reference/api.md). ret_told: a warning, to be freed, or NULL. ERR_INVALID,
 * ERR_UNSUPPORTED with the word's own name. */
int scontrol_update_word(
    const char *word, const json_t *job, json_t *changes, char **ret_told, struct err *e);

#endif
