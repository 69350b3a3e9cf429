/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a step that are on one node: their environment and files, their signals, and their
 * ends.
 */
#ifndef BELAY_CLI_SLURM_STEP_TASKS_H
#define BELAY_CLI_SLURM_STEP_TASKS_H

#include "cli/slurm/step.h"

struct parts;

/* What a step is, and which of its tasks are here. All borrowed. */
struct step_place {
    int64_t step;        /* its number in the job */
    int64_t tasks;       /* on all of its nodes */
    int64_t nodes, node; /* that it is on; this one's number among them */
    const int64_t *ids;  /* the numbers of the n tasks that are here */
    int64_t n;
    const char *nodelist, *per_node; /* SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE */
};

/* Starts them, and what parts (NULL: none) has for other nodes, and returns the exit code when all
 * have ended. Blocks. */
int step_tasks(const struct step *s, const struct step_place *p, struct parts *parts, char **argv);

/* What the pattern of -o, -e or -i means to the task: a descriptor, or -1 after a report. flags: of
 * open(2). */
int step_open_file(
    const struct step *s, int64_t step, const char *pattern, int64_t task, int flags);

#endif
