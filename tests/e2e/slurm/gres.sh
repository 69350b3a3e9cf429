#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --output=gres.out
#SBATCH --partition=local
nvidia-smi -L
