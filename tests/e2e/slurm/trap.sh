#!/bin/bash
#SBATCH --output=trap.out
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; echo cleaned' EXIT
echo data > "$scratch/file"
cat "$scratch/file"
