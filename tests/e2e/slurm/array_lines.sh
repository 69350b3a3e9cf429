#!/bin/bash
#SBATCH -a 1,3
n=$(sed -n "${SLURM_ARRAY_TASK_ID}p" numbers.txt)
echo "line $SLURM_ARRAY_TASK_ID is $n"
