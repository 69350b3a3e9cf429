# SPDX-License-Identifier: Apache-2.0
"""A disk that is full when a test says so: a small tmpfs in a mount namespace of the test's own, so
nothing of it is left behind. A test that has one ends with small_disk.main()."""

import contextlib
import os
import shutil
import subprocess
import sys
import unittest

INSIDE = "BELAY_TEST_IN_NAMESPACE"


class SmallDisk:
    """Mounted at path, which is made, from the first moment to end()."""

    def __init__(self, path, size):
        self.path = path
        self.ballast = os.path.join(path, "ballast")
        os.makedirs(path, 0o700)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%s,mode=700" % size, "belay-test", path],
            check=True,
        )

    def fill(self):
        with open(self.ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096) == 4096:
                pass

    def free(self):
        os.unlink(self.ballast)

    def end(self):
        subprocess.run(["umount", "-l", self.path])


def why_not():
    if os.geteuid() != 0:
        return "a disk of our own needs root"
    if (
        not shutil.which("unshare")
        or subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "x", "/mnt"], stderr=subprocess.DEVNULL
        ).returncode
        != 0
    ):
        return "this machine mounts nothing for us"
    return None


def main():
    """Runs the tests of the main module in a namespace where they may mount, or says why they are
    skipped."""
    if os.environ.pop(INSIDE, None):
        unittest.main(verbosity=2)
        return
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
