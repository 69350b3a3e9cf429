#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --output=tasks.out

echo "$SLURM_NTASKS tasks on $SLURM_JOB_NUM_NODES node, $SLURM_TASKS_PER_NODE a node"
srun --label bash -c 'echo "rank $SLURM_PROCID of $SLURM_NTASKS, local $SLURM_LOCALID"'
srun -n 1 --mail-type=END --profile=none --ntasks-per-socket=1 --acctg-freq=30 --resv-ports hostname
srun --mpi=pmix_v3 --cpu-bind=cores --ntasks=2 true
