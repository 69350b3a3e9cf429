# SPDX-License-Identifier: Apache-2.0
"""Works for this many seconds by the clock, whatever the machine's speed, and reports its progress.

    paced.py SECONDS
"""

import os
import sys
import time

import belay

STEP_S = 0.05

whole_ms = int(float(sys.argv[1]) * 1000)
done_ms = 0.0
if belay.restored():
    with open(os.path.join(belay.checkpoint_dir(), "state")) as f:
        done_ms = float(f.read())
while done_ms < whole_ms:
    began = time.monotonic()
    time.sleep(STEP_S)
    done_ms += 1000 * (time.monotonic() - began)
    belay.progress(int(done_ms), whole_ms)
    if belay.should_checkpoint():
        with belay.checkpoint(int(done_ms), whole_ms) as directory:
            with open(os.path.join(directory, "state"), "w") as f:
                f.write(str(done_ms))
        if belay.stopping():
            sys.exit(belay.EXIT_CHECKPOINTED)
print("done")
