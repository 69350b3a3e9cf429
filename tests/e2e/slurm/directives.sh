#!/bin/bash
##SBATCH --nodes=64             a directive that somebody took out
# SBATCH --nodes=32             likewise

#SBATCH --job-name=odd          # what it is called
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=ann@example.org
#SBATCH --hint=nomultithread --distribution=block:block
#SBATCH -o	directives.out
#SBATCH --comment="seeds 1 to 3"
#SBATCH --get-user-env

echo "$SLURM_JOB_NAME"
#SBATCH --nodes=16
