#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job: belay submit train.sh, in this directory.
#BELAY -J pytorch
#BELAY -c 1 --mem 2G
#BELAY --checkpoint coop --checkpoint-every 30s
exec /usr/bin/python3 train.py "$@"
