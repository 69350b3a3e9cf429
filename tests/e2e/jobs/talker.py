# SPDX-License-Identifier: Apache-2.0
"""Waits for a save before a stop, and prints many lines at its end; the next attempt prints the
rest.

    talker.py LINES
"""

import sys
import time

import belay

lines = int(sys.argv[1])
done = 0
if belay.restored():
    done = lines
    lines *= 2
else:
    print("waiting", flush=True)
while not belay.restored() and not belay.should_checkpoint():
    time.sleep(0.02)
sys.stdout.write("".join("line %07d %s\n" % (n, "x" * 80) for n in range(done, lines)))
sys.stdout.flush()
if not belay.restored():
    with belay.checkpoint():
        pass
    sys.exit(belay.EXIT_CHECKPOINTED)
