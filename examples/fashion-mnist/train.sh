#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job: belay submit train.sh, in this directory.
#BELAY -J fashion-mnist
#BELAY -c 1 --mem 1G
#BELAY --checkpoint coop --checkpoint-every 10s
exec /usr/bin/python3 train.py "$@"
