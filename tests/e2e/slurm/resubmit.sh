#!/bin/bash
#SBATCH --job-name=resubmit
#SBATCH --output=resubmit-%j.out
round=${1:-1}
echo "round $round" >> rounds.txt
if [ "$round" -lt 3 ]; then
    sbatch --dependency=afterany:$SLURM_JOB_ID resubmit.sh $((round + 1))
fi
