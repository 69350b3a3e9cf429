/* SPDX-License-Identifier: Apache-2.0
 *
 * --signal, as sbatch has it.
 */
#ifndef BELAY_CLI_FLAGS_GRACE_H
#define BELAY_CLI_FLAGS_GRACE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

int grace_signal(const char *name); /* "USR1", "SIGUSR1" or "10"; 0: it is none */

/* "[B:]USR1[@SECONDS]", with a name or a number: the job specification's launch.grace, and
 * checkpoint.signal if a program can handle it (docs/reference/api.md). Without SECONDS it is a
 * minute. ERR_INVALID, ERR_UNSUPPORTED. */
int grace_parse(const char *value, json_t *spec, struct err *e);

/* Once all of a specification is there: ERR_INVALID when the signal is to ask for checkpoints and
 * cannot be handled. */
int grace_check(const json_t *spec, struct err *e);

/* "B:USR1@120", of the launch object of a job's specification; nothing if it has none. */
void grace_format(const json_t *launch, struct buf *out);

#endif
