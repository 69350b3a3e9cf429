#!/bin/bash
#SBATCH --output=journal.txt
#SBATCH --open-mode=append
echo "run $1"
