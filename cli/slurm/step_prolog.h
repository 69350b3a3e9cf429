/* SPDX-License-Identifier: Apache-2.0
 *
 * srun --task-prolog: a program that a task's node runs in front of it, in its environment, and
 * which may change that.
 */
#ifndef BELAY_CLI_SLURM_STEP_PROLOG_H
#define BELAY_CLI_SLURM_STEP_PROLOG_H

#include "cli/slurm/step.h"
#include <stddef.h>

/* In the process that will be the task. Does as its lines say: "export NAME=VALUE", "unset NAME",
 * "print TEXT" (to standard output); others are passed over. 0, or after a report the exit code of
 * a task that is not to run. Blocks. */
int step_prolog(const struct step *s);

/* Pure but for the environment and standard output: what such a program has said, n bytes. */
void step_prolog_obey(const char *said, size_t n);

#endif
