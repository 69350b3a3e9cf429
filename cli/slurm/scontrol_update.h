/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol update: Slurm's names for properties of jobs and nodes. Properties that belay cannot
 * change, and that would change a job's meaning, are refused by name.
 */
#ifndef BELAY_CLI_SLURM_SCONTROL_UPDATE_H
#define BELAY_CLI_SLURM_SCONTROL_UPDATE_H

#include "cli/cli.h"

/* The words after "update". Returns the exit code, after a report. */
int scontrol_update(struct client *c, char **words, int n);

/* Pure. Converts a word for a job, "TimeLimit=2:00:00", to a part of an update's body. job: its
 * current state (JOB of docs/reference/api.md). ret_warning: a warning, freed by the caller, or
 * NULL. ERR_INVALID, ERR_UNSUPPORTED with the word's name. */
int scontrol_update_word(
    const char *word, const json_t *job, json_t *changes, char **ret_warning, struct err *e);

#endif
