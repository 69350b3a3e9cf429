#!/bin/bash
#SBATCH --output=nodelist.out
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
echo "${#nodes[@]} node, the first is ${nodes[0]}, this is $SLURMD_NODENAME"
scontrol show job $SLURM_JOB_ID | grep -o 'JobState=[A-Z]*'
squeue -h -j $SLURM_JOB_ID -o '%j %T %D %C'
