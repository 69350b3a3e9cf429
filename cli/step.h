/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a job: its tasks on this node, as srun starts them. Steps of one job that run side by side share its CPUs: a step
 * waits until as many as its tasks want are free.
 */
#ifndef BELAY_CLI_STEP_H
#define BELAY_CLI_STEP_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_TASKS_MAX 4096

struct step {
    const char *program;     /* for words about errors */
    const char *name;        /* SLURM_STEP_NAME; NULL: the command's */
    int64_t tasks;           /* 0: SLURM_NTASKS, or 1 */
    int64_t cpus_per_task;   /* 0: 1 */
    const char *output, *error, *input, *dir; /* NULL: as srun's own; %t and the like are expanded */
    const char *export;      /* NULL: everything; "NONE", or names with commas */
    bool labels;             /* each line begins with "3: " */
    bool kill_on_bad_exit, overlap, quiet;
};

/* Runs argv (ended by NULL) and returns the exit code: the highest of the tasks', 128 + signal of one that was killed. Signals
 * that end srun are passed on. Blocks. */
int step_run(const struct step *s, char **argv);

#endif
