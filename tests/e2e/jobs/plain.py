# SPDX-License-Identifier: Apache-2.0
"""A plain program without checkpoints: plain.py STEPS FILE [MIB]. A child that counts through a
pipe, a file that is open for writing the whole time, another one in TMPDIR that is written and
read, a timer. Its output and the final content of FILE depend only on STEPS."""

import hashlib
import os
import signal
import sys
import tempfile
import time

steps, path = int(sys.argv[1]), sys.argv[2]
ballast = bytearray(b"ballast\n") * (int(sys.argv[3]) << 17) if len(sys.argv) > 3 else b""
ticks = 0


def tick(signum, frame):
    global ticks
    ticks += 1


def count(to):
    state = hashlib.sha256()
    for n in range(1, steps + 1):
        state.update(b"%d" % n)
        os.write(to, ("%d %s\n" % (n, state.hexdigest())).encode())
        time.sleep(0.05)
    os._exit(0)


reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.close(reader)
    count(writer)
os.close(writer)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
whole = hashlib.sha256()
with open(path, "w") as out, tempfile.NamedTemporaryFile("w+") as notes, os.fdopen(reader) as lines:
    for line in lines:
        n = int(line.split()[0])
        whole.update(line.encode())
        out.write(line)
        notes.write(line[:20] + "\n")
        if n % 10 == 0:
            out.flush()
            print("step %d %s" % (n, whole.hexdigest()[:16]), flush=True)
    notes.seek(0)
    whole.update(notes.read().encode())
signal.setitimer(signal.ITIMER_REAL, 0)
_, status = os.waitpid(child, 0)
assert status == 0 and ticks > 0 and ballast.count(b"ballast\n") == len(ballast) // 8
print("result %s" % whole.hexdigest(), flush=True)
sys.exit(7)
