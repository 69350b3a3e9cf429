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

struct updates_key {
    const char *key, *flag; /* as which flag of a submit its value is read; NULL: none is like it */
    const char *reset;      /* JSON: members for "none"; NULL: there has to be a value */
    /* without a flag: what its value is, and what it is for, for people */
    const char *takes, *help;
};
/* For help and completions; NULL: there are fewer. ret_takes, ret_help: in either case. */
const struct updates_key *updates_key(size_t i, const char **ret_takes, const char **ret_help);

#endif
