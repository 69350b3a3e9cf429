/* SPDX-License-Identifier: Apache-2.0
 *
 * --signal, in sbatch's syntax.
 */
#ifndef BELAY_CLI_FLAGS_GRACE_H
#define BELAY_CLI_FLAGS_GRACE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

int grace_signal(const char *name); /* "USR1", "SIGUSR1" or "10"; 0 if unknown */

/* "[B:]USR1[@SECONDS]", with a name or a number: sets the job specification's launch.grace, and
 * checkpoint.signal if a program can handle it (docs/reference/api.md). SECONDS defaults to 60.
 * ERR_INVALID, ERR_UNSUPPORTED. */
int grace_parse(const char *value, json_t *spec, struct err *e);

/* Call once the specification is complete: ERR_INVALID if the signal requests checkpoints but
 * cannot be handled. */
int grace_check(const json_t *spec, struct err *e);

/* "B:USR1@120" from the launch object of a job's specification; nothing if it has none. */
void grace_format(const json_t *launch, struct buf *out);

#endif
