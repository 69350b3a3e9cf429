#!/bin/bash
#SBATCH --job-name=array
#SBATCH --array=0-5%2
#SBATCH --output=array-%A_%a.out
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT ($SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX) of $SLURM_ARRAY_JOB_ID"
