#!/bin/bash
#SBATCH --job-name=first --output=dep.out
echo first
