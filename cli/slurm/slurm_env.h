/* SPDX-License-Identifier: Apache-2.0
 *
 * What Slurm's programs take from the environment, as the manuals of Slurm 22.05 list it: each
 * variable stands for a flag of the program, and counts less than that.
 */
#ifndef BELAY_CLI_SLURM_SLURM_ENV_H
#define BELAY_CLI_SLURM_SLURM_ENV_H

enum slurm_variable_kind {
    VARIABLE_VALUE,
    VARIABLE_SWITCH, /* the flag takes no value: that the variable is set says it */
    /* belay has no such flag, and without it something else would come of the command */
    VARIABLE_REFUSED
};

#define SLURM_VARIABLE_MAX 32

struct slurm_variable {
    char name[SLURM_VARIABLE_MAX];
    const char *flag;
    enum slurm_variable_kind kind;
};

/* Of this program: squeue, scancel, sinfo, and sbatch, salloc and srun (outside of a job), whose
 * flags are those of jobs (the rows of job/attributes.h say which variables stand for them) and
 * refused where they are read (directives.h). In the order of their names; ended by an empty name;
 * what changes nothing in belay is not there. The caller frees. */
struct slurm_variable *slurm_variables(const char *program);
/* NULL: it is not set, or to nothing; a switch also to 0, no or false. */
const char *slurm_variable_value(const struct slurm_variable *v);

#endif
