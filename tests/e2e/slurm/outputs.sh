#!/bin/bash
#SBATCH --job-name=outputs
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

echo "to the output"
echo "to the errors" >&2
