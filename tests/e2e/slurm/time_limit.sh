#!/bin/bash
#SBATCH --time=0:01
#SBATCH --output=time_limit.out
trap 'echo "asked to end"; exit 0' TERM
echo started
while :; do sleep 0.1; done
