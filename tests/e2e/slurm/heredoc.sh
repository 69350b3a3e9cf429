#!/bin/bash
#SBATCH --job-name="with a heredoc"
#SBATCH --time=00:10:00

cat > input.$SLURM_JOB_ID.cfg <<EOF
[run]
job = $SLURM_JOB_ID
cores = ${SLURM_CPUS_PER_TASK}
EOF
cat <<'EOF' >> input.$SLURM_JOB_ID.cfg
literal = $SLURM_JOB_ID
EOF
cat input.$SLURM_JOB_ID.cfg
