# SPDX-License-Identifier: Apache-2.0
"""Counts, waits for a file, and commits its result as its last action: the number, and the attempt
that finished.

    result.py STEPS FILE
"""

import os
import sys
import time

import belay

steps, go = int(sys.argv[1]), sys.argv[2]
name = os.path.join(belay.checkpoint_dir(), "state")
step = int(open(name).read()) if belay.restored() else 0
while step < steps or not os.path.exists(go):
    step = min(step + 1, steps)
    time.sleep(0.02)
    belay.progress(step, steps)
    if belay.should_checkpoint():
        with belay.checkpoint(step, steps) as directory:
            with open(os.path.join(directory, "state"), "w") as f:
                f.write("%d\n" % step)
        if belay.stopping():
            sys.exit(belay.EXIT_CHECKPOINTED)
with belay.checkpoint(step, steps, wait=True) as directory:
    with open(os.path.join(directory, "state"), "w") as f:
        f.write("%d\n" % step)
    with open(os.path.join(directory, "attempt"), "w") as f:
        f.write("%s\n" % os.environ["BELAY_ATTEMPT"])
