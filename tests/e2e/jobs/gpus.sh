#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says which GPUs it sees, and stays.
echo "gpus [$BELAY_GPUS] [$CUDA_VISIBLE_DEVICES]"
exec sleep 1000
