/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of srun --multi-prog, which says what each task of a step runs:
 *
 *     # tasks   program and its arguments
 *     0         ./leader --port 7000
 *     1,4-6     ./worker --rank %t --of-these %o
 *     *         sh -c 'echo "all others"'
 *
 * %t is the task's number, %o its place among those of its line, from 0 (of *: the task's number).
 * What stands in '' is taken as it is, and so is a character behind a \; at the end of a line that
 * joins the next to it. Lines that begin with # are remarks. Pure.
 */
#ifndef BELAY_CLI_SLURM_PROGRAMS_H
#define BELAY_CLI_SLURM_PROGRAMS_H

#include "base/err.h"
#include <stdint.h>

#define PROGRAMS_BYTES_MAX (1u << 20) /* of the file */

/* Whether there is a program for each of 0 .. tasks - 1, and no line for others. ERR_INVALID names
 * the line. */
int programs_check(const char *text, int64_t tasks, struct err *e);

/* What the task runs, with `more` (ended by NULL) behind it; ends with NULL, and is never empty.
 * The caller's, with its words. ERR_INVALID: of text that programs_check would refuse. */
int programs_words(
    const char *text, int64_t task, char *const *more, char ***ret_words, struct err *e);
void programs_free(char **words); /* NULL is fine */

#endif
