/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of srun --multi-prog, which gives the program of each task of a step:
 *
 *     # tasks   program and its arguments
 *     0         ./leader --port 7000
 *     1,4-6     ./worker --rank %t --index %o
 *     *         sh -c 'echo "all others"'
 *
 * %t is the task's number, %o its index among the tasks of its line, from 0 (for *: the task's
 * number). Text in '' is literal, and so is a character after a \; a \ at the end of a line joins
 * the next line. Lines that begin with # are comments. Pure.
 */
#ifndef BELAY_CLI_SLURM_PROGRAMS_H
#define BELAY_CLI_SLURM_PROGRAMS_H

#include "base/err.h"
#include <stdint.h>

#define PROGRAMS_BYTES_MAX (1u << 20) /* of the file */

/* Checks that each of the tasks 0 .. tasks - 1 has a program, and that no line names another task.
 * ERR_INVALID names the line. */
int programs_check(const char *text, int64_t tasks, struct err *e);

/* The task's command line followed by `more` (NULL-terminated); NULL-terminated and never empty.
 * Free with mem_free_texts. ERR_INVALID: for a text that programs_check would refuse. */
int programs_words(
    const char *text, int64_t task, char *const *more, char ***ret_words, struct err *e);

#endif
