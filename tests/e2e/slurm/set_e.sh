#!/bin/bash
#SBATCH --output=set_e.out
set -euo pipefail
echo before
false
echo after
