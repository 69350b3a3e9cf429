/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of the files that a job's output goes to, as Slurm writes them: "logs/%x-%j.out". Pure.
 *
 *     %j  the job's number          %x  its name              %u  its user
 *     %A  the array's number        %a  the index in it       %J  the job's number, of a step with
 *         it behind a point
 *     %N  the node's short name     %n  the rank of the node  %t  the same
 *     %r  how often it was started again, from 0              %s  the step       %%  "%"
 *
 * A number between % and the letter is the width to which a number is filled with zeros ("%5j"), at
 * most PATTERN_WIDTH_MAX. Anything else after a % stays as it is. A backslash anywhere turns all of
 * it off, and is left out itself.
 */
#ifndef BELAY_JOB_PATTERN_H
#define BELAY_JOB_PATTERN_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define PATTERN_WIDTH_MAX 10
#define PATTERN_PATH_MAX 4095
#define PATTERN_NO_INDEX 4294967294 /* what Slurm writes for %a of a job that is no array */

struct pattern_values {
    int64_t job;
    int64_t array, index;           /* array 0: the job is none */
    const char *name, *user, *node; /* NULL: nothing */
    int64_t rank, restarts;
    const char *step; /* NULL: "batch", the script itself */
};

/* The caller frees *ret_name. ERR_INVALID: it is longer than PATTERN_PATH_MAX. */
int pattern_expand(
    const char *pattern, const struct pattern_values *v, char **ret_name, struct err *e);

/* Whether the nodes of a job have files of their own: %N, %n or %t is in it. */
bool pattern_tells_ranks(const char *pattern);

#endif
