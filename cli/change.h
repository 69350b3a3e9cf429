/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that do one thing to each of the jobs named.
 */
#ifndef BELAY_CLI_CHANGE_H
#define BELAY_CLI_CHANGE_H

#include "cli/cli.h"

/* POST /api/v1/jobs/N/<action> for the job that a word names; says so. Returns the exit code. */
int change_job(const char *word, const char *action, const char *done, bool json);

/* The option of verbs that can have jobs begin again from nothing. */
extern const struct poptOption change_from_scratch[];

/* Of requeue: that, and to do it though the save fails. */
extern const struct poptOption change_requeue[];

/* POST /api/v1/jobs/N/<action> for every job on the command line; all are tried. done: "cancelled".
 * The verb has no options but change_from_scratch or change_requeue. */
int change_jobs(
    const struct verb *v, const char *action, const char *done, int argc, const char **argv);

#endif
