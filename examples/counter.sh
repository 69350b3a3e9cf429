#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job in shell that takes part in checkpoints: it sums the squares of 1 .. N, one second of "work" a step unless
# COUNTER_PAUSE says otherwise. Submit it with:  belay submit examples/counter.sh 60
#BELAY -J counter
#BELAY --checkpoint coop
total=${1:-60}
pause=${COUNTER_PAUSE:-1}
step=0
sum=0

if [ "${BELAY_RESTORED:-0}" = 1 ]; then
    read -r step sum <"$BELAY_CHECKPOINT_DIR/state"
    echo "resumed at step $step"
fi

while [ "$step" -lt "$total" ]; do
    step=$((step + 1))
    sum=$((sum + step * step))
    sleep "$pause"
    echo "step $step sum $sum"
    if [ -e "${BELAY_CONTROL_DIR:-/nonexistent}/request" ]; then
        echo "$step $sum" >"$BELAY_CHECKPOINT_DIR/state"
        belay checkpoint commit --progress "$step" --total "$total"
        [ $? -eq 85 ] && exit 85 # durable, and the node will be given up: continue this job elsewhere
    fi
done
echo "sum of squares $sum"
