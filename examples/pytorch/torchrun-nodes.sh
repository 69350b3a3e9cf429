#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same on two nodes, with a torchrun on each that starts two ranks: belay submit torchrun-nodes.sh, in this directory.
#BELAY -J pytorch-torchrun
#BELAY --nodes 2
#BELAY -c 2 --mem 3G
#BELAY --checkpoint coop --checkpoint-every 60s
exec /usr/bin/python3 -m torch.distributed.run --nnodes "$BELAY_NNODES" --node_rank "$BELAY_NODE_RANK" \
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" --nproc_per_node 2 --redirects 2 --tee 2 train.py "$@"
