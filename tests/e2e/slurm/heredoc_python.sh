#!/bin/bash
#SBATCH -n 1
#SBATCH -c 2
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
python3 - <<PY
import os
print("threads", os.environ["OMP_NUM_THREADS"], "of job", os.environ["SLURM_JOB_ID"] == "$SLURM_JOB_ID")
PY
