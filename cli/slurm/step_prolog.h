/* SPDX-License-Identifier: Apache-2.0
 *
 * srun --task-prolog: a program run before a task on its node, in the task's environment, which it
 * may change.
 */
#ifndef BELAY_CLI_SLURM_STEP_PROLOG_H
#define BELAY_CLI_SLURM_STEP_PROLOG_H

#include "cli/slurm/step.h"
#include <stddef.h>

/* Called in the process that will become the task. Interprets its output: "export NAME=VALUE",
 * "unset NAME", "print TEXT" (to standard output); other lines are ignored. Returns 0, or after a
 * report the exit code of a task that must not run. Blocks. */
int step_prolog(const struct step *s);

/* Pure except for the environment and standard output: interprets n bytes of output. */
void step_prolog_apply(const char *output, size_t n);

#endif
