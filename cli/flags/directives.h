/* SPDX-License-Identifier: Apache-2.0
 *
 * Directives of a script: `#BELAY --flag value` and common `#SBATCH` lines before its first
 * command; and the same flags on the command line, which take precedence. Pure: text in, a job
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
#define COMMAND_LINE "command line" /* where flags are that no file or variable has */
#define DIRECTIVE_LINE_MAX 4096

/* A warning for people ("train.sh:4: ..."). */
typedef void (*directive_warn_fn)(void *ctx, const char *text);

/* Applies the directives of script (n bytes; file for error texts) to the specification `spec` (a
 * JSON object as in docs/reference/api.md). ERR_INVALID names file and line. */
int directives_apply_script(const char *file, const char *script, size_t n, json_t *spec,
    directive_warn_fn warn, void *warn_ctx, struct err *e);

/* Applies one flag as on the command line: name without dashes ("time", "c"), value NULL if it has
 * none. sbatch: Slurm's interpretation of values (a bare time is minutes). Errors begin with
 * `where`. */
int directives_apply_flag(const char *where, const char *name, const char *value, bool sbatch,
    json_t *spec, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* Call before any of them for a job submitted through Slurm's names. The job gets SLURM_* and,
 * unless --export says otherwise, the environment of this process, except variables that look like
 * secrets. */
void directives_begin_slurm(json_t *spec);

/* Call after all of them and before directives_finish for a job that is submitted repeatedly: a
 * time of the day is stored as such, because it applies to each day. */
void directives_keep_time_of_day(json_t *spec);

/* Call after all of them and before directives_finish: puts the requested values
 * (SLURM_NTASKS_PER_NODE) in the job's environment. */
void directives_set_slurm_env(json_t *spec);

/* Call after all of them and before directives_finish: how the options were written, for errors of
 * belayd: {"pool": ["-p", "train.sh:4"], ...}, by member of the specification, with the file and
 * line or the variable, null on the command line. The caller owns it. */
json_t *directives_take_written(json_t *spec);

/* Call once after all directives and flags: computes what depends on several flags (tasks, memory
 * per CPU, the environment). ERR_INVALID, ERR_UNSUPPORTED. */
int directives_finish(json_t *spec, directive_warn_fn warn, void *warn_ctx, struct err *e);

/* The specification's object at key; created if absent. Borrowed. */
json_t *directive_object(json_t *spec, const char *key);

/* Whether the flag takes a value; false for unknown flags and NULL. */
bool directives_takes_value(const char *name);

/* The options of a job that have a flag, for help and completions, in order: the one after a, or
 * the first for NULL. NULL at the end. */
const struct job_attribute *directives_next(const struct job_attribute *a);

#endif
