/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs with Slurm's names, one file each. Each gets its complete command line and returns
 * its exit code, like Slurm's: 0, or 1 after any error; srun returns the command's.
 */
#ifndef BELAY_CLI_SLURM_SLURM_PROGRAMS_H
#define BELAY_CLI_SLURM_SLURM_PROGRAMS_H

int sbatch_main(int argc, char **argv);
int squeue_main(int argc, char **argv);
int scancel_main(int argc, char **argv);
int sinfo_main(int argc, char **argv);
int sacct_main(int argc, char **argv);
int scontrol_main(int argc, char **argv);
int srun_main(int argc, char **argv);
int salloc_main(int argc, char **argv);
int sstat_main(int argc, char **argv);
int sshare_main(int argc, char **argv);
int seff_main(int argc, char **argv);

#endif
