#!/bin/bash
#SBATCH --job-name=waits --array=1-10%1
#SBATCH --output=/dev/null
exec sleep 1000
