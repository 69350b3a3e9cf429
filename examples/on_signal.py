# SPDX-License-Identifier: Apache-2.0
"""A job that takes part in checkpoints by a signal only, without any of belay's libraries: it adds
up the digits of the powers of 3. Submit it with:
    belay submit --checkpoint signal --wrap 'python3 examples/on_signal.py 2000000'
"""

import json
import os
import signal
import sys

CHECKPOINTED = 85  # exit code: continue this job elsewhere

wanted = False


def on_signal(number, frame):
    global wanted
    wanted = True  # the state is consistent only between two steps


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 2000000
    directory = os.environ.get("BELAY_CHECKPOINT_DIR")
    state = {"step": 0, "power": 1, "digits": 0}

    if directory:
        signal.signal(signal.SIGUSR1, on_signal)
        if os.environ.get("BELAY_RESTORED") == "1":
            with open(os.path.join(directory, "state.json")) as f:
                state = json.load(f)
        print("%s step %d" % ("resumed at" if state["step"] else "from", state["step"]), flush=True)
    while state["step"] < total:
        state["step"] += 1
        state["power"] = state["power"] * 3 % 10**60
        state["digits"] += sum(map(int, str(state["power"])))
        if wanted:
            with open(os.path.join(directory, "state.json"), "w") as f:
                json.dump(state, f)
            sys.exit(CHECKPOINTED)
    print("digits %d" % state["digits"])


main()
