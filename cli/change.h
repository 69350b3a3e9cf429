/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that apply one action to each named job.
 */
#ifndef BELAY_CLI_CHANGE_H
#define BELAY_CLI_CHANGE_H

#include "cli/cli.h"

/* POST /api/v1/jobs/N/<action> for the named job; prints the result. Returns the exit code. */
int change_job(const char *word, const char *action, const char *done, bool json);

/* The option of verbs that can make jobs start from the beginning. */
extern const struct poptOption change_from_scratch[];

/* requeue's options: that, and stopping the job even if the save fails. */
extern const struct poptOption change_requeue[];

/* The same for each word of a, which are jobs; all are tried. Returns the highest exit code. */
int change_words(
    const struct cli_args *a, const char *action, const json_t *body, const char *done);

/* POST /api/v1/jobs/N/<action> for every job on the command line; all are tried. done: "cancelled".
 * The verb has no options other than change_from_scratch or change_requeue. */
int change_jobs(
    const struct verb *v, const char *action, const char *done, int argc, const char **argv);

#endif
