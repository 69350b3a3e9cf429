# SPDX-License-Identifier: Apache-2.0
"""A chain of hashes, one link per step: its end shows whether a step was skipped, repeated or done
on a wrong state.

    chain.py STEPS [SECONDS A STEP [BYTES THAT NO CHECKPOINT SHARES WITH ANOTHER
        [BYTES THAT ALL CHECKPOINTS SHARE]]]
"""

import hashlib
import os
import random
import sys
import time

import belay

steps = int(sys.argv[1])
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
bulk = int(sys.argv[3]) if len(sys.argv) > 3 else 0
constant = int(sys.argv[4]) if len(sys.argv) > 4 else 0
step, value = 0, "start"

if belay.restored():
    with open(os.path.join(belay.checkpoint_dir(), "state")) as f:
        step, value = f.read().split()
        step = int(step)
while step < steps:
    step += 1
    value = hashlib.sha256(("%d %s" % (step, value)).encode()).hexdigest()
    time.sleep(pause)
    print("step %d %s" % (step, value[:8]), flush=True)
    belay.progress(step, steps)
    if belay.should_checkpoint():
        with belay.checkpoint(step, steps) as directory:
            with open(os.path.join(directory, "state"), "w") as f:
                f.write("%d %s\n" % (step, value))
            if bulk:
                with open(os.path.join(directory, "bulk"), "wb") as f:
                    f.write(os.urandom(bulk))
            if constant:
                with open(os.path.join(directory, "constant"), "wb") as f:
                    f.write(random.Random(1).randbytes(constant))
        if belay.stopping():
            sys.exit(belay.EXIT_CHECKPOINTED)
print("chain %s" % value)
