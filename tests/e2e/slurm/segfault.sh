#!/bin/sh
#SBATCH --output=/dev/null
kill -SEGV $$
