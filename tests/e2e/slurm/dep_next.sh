#!/bin/bash
#SBATCH --output=dep.out --open-mode=append
echo "$1"
