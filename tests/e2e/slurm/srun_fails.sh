#!/bin/bash
#SBATCH --output=srun_fails.out
srun bash -c 'exit 7'
code=$?
echo "the step ended with $code"
srun no-such-program || echo "and the next with $?"
exit $code
