#!/usr/bin/env python3
#SBATCH --job-name=py
#SBATCH --output=py-%j.out
#SBATCH --mem=256M
import os
import sys

print(os.environ["SLURM_JOB_NAME"], os.environ["SLURM_MEM_PER_NODE"], *sys.argv[1:])
