#!/bin/bash
#SBATCH --output=nodelist.out
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
echo "${#nodes[@]} node, the first is ${nodes[0]}, this is $SLURMD_NODENAME"
# CONFIGURING until the node has reported that this script runs
deadline=$((SECONDS + 60))
until scontrol show job $SLURM_JOB_ID | grep -q JobState=RUNNING || ((SECONDS >= deadline)); do :; done
scontrol show job $SLURM_JOB_ID | grep -o 'JobState=[A-Z]*'
squeue -h -j $SLURM_JOB_ID -o '%j %T %D %C'
