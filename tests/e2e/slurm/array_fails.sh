#!/bin/bash
#SBATCH --array=1-3
#SBATCH --output=/dev/null
[ "$SLURM_ARRAY_TASK_ID" != 2 ] || exit 9
