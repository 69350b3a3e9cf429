# SPDX-License-Identifier: Apache-2.0
"""Works in one way until it is stopped: burn (a cpu), sleep, or thrash FILE MIB (touches a file
that does not fit into its memory).

It prints "works" when it has started.
"""

import mmap
import os
import random
import sys
import time


def thrash(path, mib):
    with open(path, "wb") as f:
        for _ in range(mib):
            f.write(os.urandom(1 << 20))
            f.flush()
            os.fsync(f.fileno())  # dirty pages would stay in memory
    with open(path, "rb") as f:
        os.unlink(path)
        data = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    print("works", flush=True)
    while True:
        data[random.randrange(len(data))]


def main(how, *more):
    if how == "thrash":
        thrash(more[0], int(more[1]))
    print("works", flush=True)
    while True:
        if how == "sleep":
            time.sleep(60)


main(*sys.argv[1:])
