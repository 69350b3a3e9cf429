# SPDX-License-Identifier: Apache-2.0
"""Saves on SIGUSR1, without any of belay's libraries: adds up the digits of the powers of 3.

    digits.py STEPS exit    writes its state and exits with 85
    digits.py STEPS done    writes its state, creates .done and continues
"""

import os
import signal
import sys
import time

CHECKPOINTED = 85

wanted = False


def on_signal(number, frame):
    global wanted
    wanted = True


steps, way = int(sys.argv[1]), sys.argv[2]
directory = os.environ.get("BELAY_CHECKPOINT_DIR", "")
signal.signal(signal.SIGUSR1, on_signal)
step, power, digits = 0, 1, 0
if os.environ.get("BELAY_RESTORED") == "1":
    with open(os.path.join(directory, "state")) as f:
        step, power, digits = map(int, f.read().split())
    print("resumed at %d" % step, flush=True)
while step < steps:
    step += 1
    power = power * 3 % 10**60
    digits += sum(map(int, str(power)))
    time.sleep(0.02 if directory else 0)
    print("step %d %d" % (step, digits), flush=True)
    if wanted and not os.path.exists(os.path.join(directory, ".done")):
        wanted = False
        with open(os.path.join(directory, "state"), "w") as f:
            f.write("%d %d %d\n" % (step, power, digits))
        if way == "exit":
            sys.exit(CHECKPOINTED)
        open(os.path.join(directory, ".done"), "w").close()
print("digits %d" % digits)
