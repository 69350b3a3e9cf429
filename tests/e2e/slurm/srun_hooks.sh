#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --output=srun_hooks.out
cat >hook_before.sh <<'EOF'
#!/bin/sh
echo "export SEEN=rank $SLURM_PROCID"
echo "print before $SLURM_PROCID"
echo "unset GONE"
echo noise
exit ${FAILS:-0}
EOF
cat >hook_after.sh <<'EOF'
#!/bin/sh
echo "after $SLURM_PROCID $GONE$SEEN" >hook_after.$SLURM_PROCID
EOF
cat >hook_hangs.sh <<'EOF'
#!/bin/sh
sleep 1000
EOF
chmod +x hook_*.sh
export GONE=here
srun -l --task-prolog=$PWD/hook_before.sh --task-epilog=$PWD/hook_after.sh sh -c 'echo "$SEEN$GONE"; exit 4' 2>/dev/null | sort
cat hook_after.0 hook_after.1
FAILS=5 srun -Q --task-prolog=$PWD/hook_before.sh echo not run 2>/dev/null | sort
echo "code ${PIPESTATUS[0]}"
srun -n1 --task-epilog=$PWD/hook_hangs.sh true 2>&1 | grep -o "its epilog was killed"
srun -n1 --task-prolog=hook_before.sh true || echo "code $?"
