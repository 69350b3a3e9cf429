#!/bin/bash
#SBATCH --output=srun_stdin.out
printf 'one\ntwo\n' | srun cat
srun wc -l <<EOF
a
b
c
EOF
