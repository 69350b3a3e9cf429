# SPDX-License-Identifier: Apache-2.0
"""Saves correctly, but ignores its checkpoints: it starts from scratch every time.

    forgets.py STEPS
"""

import os
import sys
import time

import belay

for step in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.02)
    print("step %d" % step, flush=True)
    belay.progress(step, int(sys.argv[1]))
    if belay.should_checkpoint():
        with belay.checkpoint(step) as directory:
            with open(os.path.join(directory, "state"), "w") as f:
                f.write("%d\n" % step)
        if belay.stopping():
            sys.exit(belay.EXIT_CHECKPOINTED)
