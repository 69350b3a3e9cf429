/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of a step on one node: their environment and files, their signals, and their ends.
 */
#ifndef BELAY_CLI_SLURM_STEP_TASKS_H
#define BELAY_CLI_SLURM_STEP_TASKS_H

#include "cli/slurm/step.h"

struct parts;

/* A step, and its tasks on this node. All borrowed. */
struct step_node {
    int64_t step;        /* its number in the job */
    int64_t tasks;       /* on all nodes of the step */
    int64_t nodes, node; /* nodes of the step; index of this one */
    const int64_t *ids;  /* numbers of the n tasks here */
    int64_t n;
    const char *nodelist, *per_node; /* SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE */
};

/* Starts the tasks here, and the parts on other nodes (parts may be NULL), and returns the exit
 * code when all have ended. Blocks. */
int step_tasks(const struct step *s, const struct step_node *p, struct parts *parts, char **argv);

/* Opens the file of a pattern of -o, -e or -i for the task: returns a descriptor, or -1 after a
 * report. flags: of open(2). */
int step_open_file(
    const struct step *s, int64_t step, const char *pattern, int64_t task, int flags);

/* The number in a variable of the environment; fallback if it is not set to a number >= 0. */
int64_t step_env_number(const char *name, int64_t fallback);

#endif
