#!/bin/bash
#SBATCH --output=%A_%a.%r.txt
echo "array ${SLURM_ARRAY_TASK_ID:-none}"
