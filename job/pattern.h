/* SPDX-License-Identifier: Apache-2.0
 *
 * File name patterns for a job's output, in Slurm's syntax: "logs/%x-%j.out". Pure.
 *
 *     %j  job number                %x  job name              %u  user
 *     %A  array number              %a  array index           %J  job number, and for a step
 *         "." and the step
 *     %N  short host name           %n  rank of the node      %t  the same
 *     %r  restarts, from 0          %s  step                  %%  "%"
 *
 * A number between % and the letter is the width to which a number is padded with zeros ("%5j"), at
 * most PATTERN_WIDTH_MAX. Any other text after a % is kept. A backslash anywhere disables all
 * patterns and is removed.
 */
#ifndef BELAY_JOB_PATTERN_H
#define BELAY_JOB_PATTERN_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define PATTERN_WIDTH_MAX 10
#define PATTERN_PATH_MAX 4095
#define PATTERN_NO_INDEX 4294967294 /* Slurm's value of %a for a job that is not an array */

struct pattern_values {
    int64_t job;
    int64_t array, index;           /* array is 0 if the job is not an array task */
    const char *name, *user, *node; /* NULL for an empty text */
    int64_t rank, restarts;
    const char *step; /* NULL for "batch", the script itself */
};

/* The caller frees *ret_name. ERR_INVALID: longer than PATTERN_PATH_MAX. */
int pattern_expand(
    const char *pattern, const struct pattern_values *v, char **ret_name, struct err *e);

/* Whether each node of a job has files of its own: the pattern contains %N, %n or %t. */
bool pattern_has_rank(const char *pattern);

#endif
