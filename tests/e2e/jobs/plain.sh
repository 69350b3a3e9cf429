#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes no part in checkpoints.
step=0
while [ "$step" -lt "$1" ]; do
    step=$((step + 1))
    sleep "${2:-0.02}"
    echo "step $step"
done
echo "done $step"
