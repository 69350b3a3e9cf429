#!/bin/bash -l
#SBATCH -J onelog
#SBATCH -o %u_%x.%N.%5j.log   # one file for both
echo first
echo second >&2
