#!/bin/bash
#SBATCH -o exit_code.out -e exit_code.err
exit 3
