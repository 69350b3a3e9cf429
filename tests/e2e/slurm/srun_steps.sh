#!/bin/bash
#SBATCH --ntasks-per-node=2
#SBATCH --output=steps.out
for i in 1 2 3 4; do
    srun --exclusive -N1 -n1 -c1 bash -c "echo step $i > step.$i" &
done
wait
cat step.[1-4]
