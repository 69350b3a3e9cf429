#!/bin/bash
#SBATCH --cpus-per-task=2
#SBATCH --output=xargs.out
seq 10 | xargs -P "$SLURM_CPUS_PER_TASK" -I{} sh -c 'echo {}' | sort -n | tail -1
