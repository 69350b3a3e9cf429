# SPDX-License-Identifier: Apache-2.0
"""A small disk that a test can fill: a tmpfs in the test's own mount namespace, so that nothing of
it remains. A test that uses it ends with small_disk.main().
"""

import contextlib
import os
import subprocess

import namespaces


class SmallDisk:
    """A small disk mounted at path, which is created, until end()."""

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


def main():
    namespaces.main("-m", probe="mount -t tmpfs x /mnt")
