# SPDX-License-Identifier: Apache-2.0
"""A machine goes with its test, also if that is killed: no processes, cgroup and files stay."""

import os
import signal
import subprocess
import sys
import time
import unittest

from machine import MORTAL, WAIT_S, Machine, lacks

HERE = os.path.dirname(os.path.abspath(__file__))
TEST = """\
from machine import Machine
with Machine() as m:
    m.boot()
    print(m.folder.path, m.cgroup, m.init(), flush=True)
    m.sh("sleep infinity")
"""


class Killed(unittest.TestCase):
    def test_a_killed_test_leaves_nothing(self):
        # debootstrap, whose root the killed test copies
        with Machine() as m:
            env = {**os.environ, "BELAY_DEBIAN_ROOT": m.root}
            for sent in signal.SIGKILL, signal.SIGTERM, signal.SIGINT:
                with self.subTest(sent=sent.name):
                    self.kill_one(sent, env)

    def kill_one(self, sent, env):
        test = subprocess.Popen(
            [*MORTAL, sys.executable, "-B", "-c", TEST],
            cwd=HERE,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with test.stdout as said:
            folder, cgroup, init = said.readline().split()
        self.assertTrue(os.path.isdir(cgroup))
        test.send_signal(sent)
        test.wait(WAIT_S)
        end = time.monotonic() + WAIT_S
        left = [folder, cgroup, "/proc/" + init]
        while any(map(os.path.exists, left)):
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.1)  # nobody says when the last of a killed test has gone


if __name__ == "__main__":
    missing = lacks()
    if missing:
        print("skipped: " + missing)
        sys.exit(77)
    unittest.main(verbosity=2)
