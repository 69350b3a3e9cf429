#!/bin/bash
# Run on a login node: a pipeline of jobs.
set -e
first=$(sbatch --parsable --hold dep_first.sh)  # until all are submitted
second=$(sbatch --parsable --dependency=afterok:$first dep_next.sh second)
failing=$(sbatch --parsable -d afterany:$second exit_code.sh)
rescue=$(sbatch --parsable -d afternotok:$failing dep_next.sh rescue)
never=$(sbatch --parsable -d afterok:$failing dep_next.sh never)
held=$(sbatch --parsable --hold -d afterany:$rescue dep_next.sh held)
squeue -h -j "$held" -o '%t %r'
scontrol release $first $held
sbatch --wait --quiet --job-name=last -d afterany:$held dep_next.sh last
sacct -X -n -P -o State -j $first,$second,$failing,$rescue,$never,$held
