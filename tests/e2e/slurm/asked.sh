#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=2 --mem-per-cpu=100M
#SBATCH --account=vision --qos=urgent
#SBATCH --output=asked-%J-%j.out
# launchers use it: torchrun --nproc_per_node=$SLURM_NTASKS_PER_NODE
echo $SLURM_NTASKS $SLURM_NTASKS_PER_NODE $SLURM_MEM_PER_CPU $SLURM_JOB_ACCOUNT $SLURM_JOB_QOS
echo $HOSTNAME $ENVIRONMENT
