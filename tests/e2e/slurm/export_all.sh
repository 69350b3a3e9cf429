#!/bin/bash
#SBATCH --export=ALL,EXTRA=more
#SBATCH --output=export_all.out
echo "variable: ${MY_VARIABLE:-not set}, $EXTRA"
