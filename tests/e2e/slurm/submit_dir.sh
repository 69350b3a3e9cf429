#!/bin/bash
#SBATCH --chdir=sub
#SBATCH --output=where-%j.out
pwd
cd "$SLURM_SUBMIT_DIR" && pwd
