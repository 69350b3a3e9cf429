#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --output=srun_programs.out
cat >silly.conf <<'EOF'
###################################################################
# srun -n4 -O -l --multi-prog silly.conf
###################################################################
3	 sh -c 'echo "step $SLURM_STEP_ID, 100 %t"'
1	 echo  task:%t
0,2	 echo  offset:%o
EOF
srun -n4 -O -l --multi-prog silly.conf more | sort
echo "0-2 true" >silly.conf
srun -n4 -O --multi-prog silly.conf || echo "code $?"
srun -n4 -O --multi-prog no-such.conf 2>/dev/null || echo "code $?"
echo "0 sh -c 'exit 3'
* no-such-program" >silly.conf
srun -n2 -Q --multi-prog silly.conf 2>/dev/null
echo "code $?"
