/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script says of itself: `#BELAY --flag value` and the common `#SBATCH` lines before its
 * first command, and the same flags on the command line, which win. Pure: text in, a job
 * specification out.
 */
#ifndef BELAY_CLI_FLAGS_DIRECTIVES_H
#define BELAY_CLI_FLAGS_DIRECTIVES_H

#include "base/json.h"
#include "job/attributes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIRECTIVES_MAX 256
#define DIRECTIVE_LINE_MAX 4096

/* A warning for people ("train.sh:4: ..."). */
typedef void (*directive_warn_fn)(void *ctx, const char *text);

/* Applies the directives of script (n bytes; file for error texts) to the specification `spec` (a
 * JSON object as in docs/reference/api.md). ERR_INVALID names file and line. */
int directives_apply_script(const char *file, const char *script, size_t n, json_t *spec,
    directive_warn_fn warn, void *warn_ctx, struct err *e);

/* Applies one flag as on the command line: name without dashes ("time", "c"), value NULL when it
 * has none. sbatch: Slurm's meaning of values (bare time is minutes). where is put before
 * errors. */
int directives_apply_flag(const char *where, const char *name, const char *value, bool sbatch,
    json_t *spec, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* Before any of them: the job comes through Slurm's names. It gets SLURM_* and, unless --export
 * says otherwise, the environment of this process, but for what looks like a secret. */
void directives_be_slurms(json_t *spec);

/* When all have been applied, before directives_finish: it is submitted again and again, so a time
 * of the day is told as one, for each day has it. */
void directives_be_repeated(json_t *spec);

/* When all have been applied, before directives_finish: the job finds in its environment what was
 * asked for (SLURM_NTASKS_PER_NODE). */
void directives_tell_slurm(json_t *spec);

/* When all directives and flags have been applied, once: works out what hangs on several of them
 * (tasks, memory for each CPU, the environment). ERR_INVALID, ERR_UNSUPPORTED. */
int directives_finish(json_t *spec, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* True when the flag takes a value; NULL-safe; unknown flags: false. */
bool directives_takes_value(const char *name);

/* The options of a job that have a flag, for help and completions, in their order: the one after a,
 * or the first with NULL. NULL: there is none any more. */
const struct job_attribute *directives_next(const struct job_attribute *a);

#endif
