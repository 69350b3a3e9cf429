#!/bin/bash
#SBATCH -n 2
#SBATCH -o srun_files.out
srun -o rank-%t.txt -e rank-%t.err bash -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2'
cat rank-0.txt rank-1.txt rank-0.err rank-1.err
