#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same on four nodes, one rank on each: belay submit nodes.sh, in this directory.
# torch.distributed reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT by itself.
#BELAY -J pytorch-nodes
#BELAY --nodes 4
#BELAY -c 1 --mem 2G
#BELAY --checkpoint coop --checkpoint-every 60s
exec /usr/bin/python3 train.py "$@"
