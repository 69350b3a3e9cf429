/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a job: its tasks, as started by srun. Concurrent steps of one job share its CPUs: a
 * step waits until enough CPUs for its tasks are free. In a job whose script runs on the first of
 * several nodes, the tasks run on all nodes (step_parts.h); in any other job on srun's node.
 */
#ifndef BELAY_CLI_SLURM_STEP_H
#define BELAY_CLI_SLURM_STEP_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_TASKS_MAX 4096 /* on one node */

struct step {
    const char *program;          /* name for error messages */
    const char *name;             /* SLURM_STEP_NAME; NULL for the command's */
    int64_t tasks;                /* 0 = SLURM_NTASKS, or one on each node */
    int64_t tasks_per_node;       /* maximum, with tasks; 0 = not given */
    int64_t nodes_min, nodes_max; /* 0 = not given */
    /* NULL for any. Comma-separated names, or hostlists such as n[1-3] */
    const char *nodelist, *exclude;
    int64_t relative;         /* first node to use, from 0 */
    const char *distribution; /* -m; NULL for block */
    int64_t cpus_per_task;    /* 0 means 1 */
    /* NULL for srun's own; patterns such as %t are expanded */
    const char *output, *error, *input, *dir;
    const char *export; /* NULL for everything; "NONE", or comma-separated names */
    /* text with the program of each task (cli/slurm/programs.h); argv is then the file's name and
     * further arguments; NULL: argv is the command */
    const char *programs;
    /* programs run before and after each task on its node; may be NULL */
    const char *prolog, *epilog;
    bool labels; /* prefixes each line with "3: " */
    bool kill_on_bad_exit, overlap, quiet;
    bool pty; /* one task, which owns srun's terminal */
};

/* Runs argv (NULL-terminated) and returns the highest exit code of the tasks, where a killed task
 * counts as 128 + signal. Fatal signals are forwarded. Blocks. */
int step_run(const struct step *s, char **argv);

#endif
