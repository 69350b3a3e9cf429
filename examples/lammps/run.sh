#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job: belay submit run.sh, in this directory. Arguments are passed to LAMMPS:
# run.sh -var steps 10000
#BELAY -J lammps
#BELAY -c 1 --mem 1G
#BELAY --checkpoint coop --checkpoint-every 5m
set -eu
home=$PWD
work=$(mktemp -d)
cp in.melt new.melt commit.sh "$work"
cd "$work"
code=0
OMP_NUM_THREADS=1 lmp -in in.melt -log none -var restored "$BELAY_RESTORED" -var checkpoint "$BELAY_CHECKPOINT_DIR" \
    -var control "$BELAY_CONTROL_DIR" "$@" || code=$?
if [ $code = 0 ]; then
    sha256sum melt.data
    cp melt.data "$home/melt.$BELAY_JOB_ID.data"
fi
rm -r "$work"
exit $code
