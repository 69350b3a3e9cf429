/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a job is to change, as KEY=VALUE: the flags of a submit by their names, with the same
 * values. Into the body of POST /api/v1/jobs/ID/update. Pure.
 */
#ifndef BELAY_CLI_FLAGS_UPDATES_H
#define BELAY_CLI_FLAGS_UPDATES_H

#include "cli/flags/directives.h"

/* One change. value "" or "none": as a submit that says nothing of it. slurm: of scontrol, Slurm's
 * meaning of values (directives.h). ERR_INVALID, ERR_UNSUPPORTED. */
int updates_put(json_t *changes, const char *key, const char *value, bool slurm,
    directive_warn_fn warn, void *warn_ctx, struct err *e);
/* After all of them, once: works out what hangs on several. */
int updates_finish(json_t *changes, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* What a key takes and what it is for, for people. */
struct updates_shown {
    const char *takes, *help;
};
/* The options of a job that have a key, for help and completions: the one after a, or the first
 * with NULL. NULL: there is none any more. */
const struct job_attribute *updates_next(
    const struct job_attribute *a, struct updates_shown *ret_shown);

#endif
