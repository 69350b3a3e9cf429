#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same on two ranks of one node: belay submit torchrun.sh, in this directory.
#BELAY -J pytorch-ddp
#BELAY -c 2 --mem 3G
#BELAY --checkpoint coop --checkpoint-every 30s
exec /usr/bin/python3 -m torch.distributed.run --standalone --redirects 2 --tee 2 --nproc_per_node 2 train.py "$@"
