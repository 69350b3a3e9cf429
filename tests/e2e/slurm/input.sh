#!/bin/bash
#SBATCH --input=numbers.txt
#SBATCH --output=input.out
awk '{ s += $1 } END { print "sum", s }'
