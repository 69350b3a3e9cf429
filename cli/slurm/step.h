/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a job: its tasks, as srun starts them. Steps of one job that run side by side share its
 * CPUs: a step waits until as many as its tasks want are free. In a job whose script is on the
 * first of several nodes they are on all of them (cli/slurm/parts.h); in any other on the node
 * where srun is.
 */
#ifndef BELAY_CLI_SLURM_STEP_H
#define BELAY_CLI_SLURM_STEP_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_TASKS_MAX 4096 /* on a node */

struct step {
    const char *program;            /* for words about errors */
    const char *name;               /* SLURM_STEP_NAME; NULL: the command's */
    int64_t tasks;                  /* 0: SLURM_NTASKS, or one on each node */
    int64_t tasks_per_node;         /* at most, with tasks; 0: not told */
    int64_t nodes_min, nodes_max;   /* 0: not told */
    const char *nodelist, *exclude; /* NULL: any. Names with commas, hostlists as n[1-3] */
    int64_t relative;               /* the first node to be used, from 0 */
    const char *distribution;       /* -m; NULL: block */
    int64_t cpus_per_task;          /* 0: 1 */
    /* NULL: as srun's own; %t and the like are expanded */
    const char *output, *error, *input, *dir;
    const char *export; /* NULL: everything; "NONE", or names with commas */
    /* what each task runs (cli/slurm/programs.h): the words are the file's name, and more
     * arguments; NULL: the words are it */
    const char *programs;
    /* programs that each task's node runs in front of it and behind it; NULL: none */
    const char *prolog, *epilog;
    bool labels; /* each line begins with "3: " */
    bool kill_on_bad_exit, overlap, quiet;
    bool pty; /* one task, which has srun's terminal to itself */
};

/* Runs argv (ended by NULL) and returns the exit code: the highest of the tasks', 128 + signal of
 * one that was killed. Signals that end srun are passed on. Blocks. */
int step_run(const struct step *s, char **argv);

#endif
