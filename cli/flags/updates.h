/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of a job as KEY=VALUE: keys are the names of submit's flags, with the same values.
 * Converts them to the body of POST /api/v1/jobs/ID/update. Pure.
 */
#ifndef BELAY_CLI_FLAGS_UPDATES_H
#define BELAY_CLI_FLAGS_UPDATES_H

#include "cli/flags/directives.h"

/* One change. value "" or "none": the default of a submit without the flag. slurm: for scontrol,
 * Slurm's interpretation of values (directives.h). ERR_INVALID, ERR_UNSUPPORTED. */
int updates_put(json_t *changes, const char *key, const char *value, bool slurm,
    directive_warn_fn warn, void *warn_ctx, struct err *e);
/* Call once after all changes: computes what depends on several of them. */
int updates_finish(json_t *changes, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* A key's value and meaning, for people. */
struct updates_shown {
    const char *takes, *help;
};
/* The options of a job that have a key, for help and completions: the one after a, or the first for
 * NULL. NULL at the end. */
const struct job_attribute *updates_next(
    const struct job_attribute *a, struct updates_shown *ret_shown);

#endif
