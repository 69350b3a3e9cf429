#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job: belay submit run.sh md.tpr, in this directory (make.sh makes md.tpr). Further arguments
# are passed to mdrun.
#BELAY -J gromacs
#BELAY -c 1 --mem 1G
#BELAY --checkpoint signal --checkpoint-every 30m
# mdrun writes its state and ends on a signal. All its output is in the checkpoint directory,
# because it continues only with exactly the files that belong to its state.
set -eu
home=$PWD
input=$(realpath "$1")
shift
cd "$BELAY_CHECKPOINT_DIR"
asked=
mdrun=
trap 'asked=yes; [ -z "$mdrun" ] || kill -TERM "$mdrun" 2>/dev/null || :' USR1
gmx -quiet -nobackup mdrun -s "$input" -deffnm md -cpi md.cpt -reprod -ntmpi 1 -ntomp 1 "$@" &
mdrun=$!
code=0
wait "$mdrun" || code=$?
if [ -n "$asked" ]; then # the signal interrupted the wait
    code=0
    wait "$mdrun" || code=$?
    [ $code = 0 ] || exit 85
fi
[ $code = 0 ] || exit $code
sha256sum md.gro
cp md.gro "$home/md.$BELAY_JOB_ID.gro"
