#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the GPUs that it sees, and keeps running.
echo "gpus [$BELAY_GPUS] [$CUDA_VISIBLE_DEVICES]"
exec sleep 1000
