#!/bin/bash
#SBATCH --export=NONE
#SBATCH --output=export_none.out
echo "variable: ${MY_VARIABLE:-not set}"
