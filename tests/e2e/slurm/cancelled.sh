#!/bin/bash
#SBATCH --job-name=to-be-cancelled
#SBATCH --output=cancelled.out
trap 'echo "got SIGTERM"; exit 1' TERM
touch cancelled.started
while :; do sleep 0.1; done
