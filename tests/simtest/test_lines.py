# SPDX-License-Identifier: Apache-2.0
"""belay-sim's processes share one standard output: each line is written with one call, also to a
pipe.
"""

import os
import re
import subprocess
import sys
import unittest

SEEDS = 8


def writes(*arguments):
    """The writes of belay-sim to a pipe, one element each (pipe(7), O_DIRECT)."""
    reads_fd, writes_fd = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
    sim = subprocess.Popen(
        [SIM, *arguments], stdout=writes_fd, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    os.close(writes_fd)
    all_writes = []
    while piece := os.read(reads_fd, 65536):
        all_writes.append(piece.decode())
    os.close(reads_fd)
    error = sim.communicate()[1].decode()
    if sim.returncode != 0:
        raise AssertionError("belay-sim: exit code %d: %s" % (sim.returncode, error))
    return all_writes


class Lines(unittest.TestCase):
    def check(self, option, line):
        seen = writes(option, "--seeds", str(SEEDS), "--jobs", "2")
        of_seeds = [piece for piece in seen if re.fullmatch(line, piece)]
        others = [piece for piece in seen if piece not in of_seeds]
        self.assertEqual(others, [] if option == "--digest" else seen[-1:])
        numbers = sorted(int(re.search(r"[0-9]+", piece)[0]) for piece in of_seeds)
        self.assertEqual(numbers, list(range(1, SEEDS + 1)))

    def test_a_digest_is_one_write(self):
        self.check("--digest", r"[0-9]+ [0-9a-f]{16}\n")

    def test_a_line_of_verbose_is_one_write(self):
        self.check("--verbose", r"seed [0-9]+: [^\n]*\n")


if __name__ == "__main__":
    SIM = sys.argv.pop(1)
    unittest.main(verbosity=2)
