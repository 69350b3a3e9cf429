#!/bin/bash
#SBATCH --time=0-00:05
#SBATCH --mem-per-cpu=100
module purge 2>/dev/null
module load gcc/12.2 openmpi/4.1 2>/dev/null || echo "no modules here"
if command -v nvidia-smi >/dev/null 2>&1; then echo "a GPU"; fi
source activate myenv 2>/dev/null || true
echo "memory $SLURM_MEM_PER_NODE"
