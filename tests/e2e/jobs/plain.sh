#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# plain.sh STEPS [SECONDS_A_STEP [GATE]]: takes no part in checkpoints. Continues after its steps
# until there is a file GATE.
step=0
while [ "$step" -lt "$1" ] || { [ "$3" ] && [ ! -e "$3" ]; }; do
    step=$((step + 1))
    sleep "${2:-0.02}"
    echo "step $step"
done
echo "done $step"
