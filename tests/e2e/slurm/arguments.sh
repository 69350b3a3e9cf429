#!/bin/sh
#SBATCH --output=arguments.out
for a in "$@"; do echo "<$a>"; done
