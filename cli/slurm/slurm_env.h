/* SPDX-License-Identifier: Apache-2.0
 *
 * Environment variables read by Slurm's programs, as listed in the manuals of Slurm 22.05: each
 * represents a flag of the program, and the flag overrides it.
 */
#ifndef BELAY_CLI_SLURM_SLURM_ENV_H
#define BELAY_CLI_SLURM_SLURM_ENV_H

enum slurm_variable_kind {
    VARIABLE_VALUE,
    VARIABLE_SWITCH, /* the flag takes no value: setting the variable is enough */
    /* belay has no such flag, and ignoring it would change the meaning of the command */
    VARIABLE_REFUSED
};

#define SLURM_VARIABLE_MAX 32

struct slurm_variable {
    char name[SLURM_VARIABLE_MAX];
    const char *flag;
    enum slurm_variable_kind kind;
};

/* The variables of a program: squeue, scancel, sinfo, and sbatch, salloc and srun (outside of a
 * job), whose flags are those of jobs (job/attributes.h has their variables) and are refused where
 * they are parsed (directives.h). Sorted by name; ends with an empty name; variables without effect
 * in belay are not listed. The caller frees it. */
struct slurm_variable *slurm_variables(const char *program);
/* NULL if unset or empty; for a switch also if 0, no or false. */
const char *slurm_variable_value(const struct slurm_variable *v);

#endif
