# SPDX-License-Identifier: Apache-2.0
"""A job on two nodes whose ranks wait for each other after each step, through files in a shared
DIRECTORY, and report how long.

    barrier.py DIRECTORY

Rank 1 takes twenty times as long for a step.
"""

import os
import sys
import time

import belay

directory, rank = sys.argv[1], int(os.environ["RANK"])


def barrier(step):
    """Returns when the other rank has arrived, too."""

    def name(of):
        return os.path.join(directory, "step-%d-%d" % (of, step))

    with open(name(rank), "w"):
        pass
    while not os.path.exists(name(1 - rank)):
        time.sleep(0.005)


os.makedirs(directory, exist_ok=True)
step = 0
while True:
    step += 1
    time.sleep(0.4 if rank == 1 else 0.02)
    with belay.waiting():
        barrier(step)
    print("step %d" % step, flush=True)
