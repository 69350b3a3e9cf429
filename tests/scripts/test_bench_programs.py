# SPDX-License-Identifier: Apache-2.0
"""scripts/bench builds every program that its Python runs: test_bench_programs.py SOURCE
PROGRAM..."""

import glob
import re
import sys
import unittest

SOURCE, PROGRAMS = sys.argv[1], set(sys.argv[2:])


def read(path):
    with open(path) as f:
        return f.read()


class Bench(unittest.TestCase):
    def test_every_program_that_is_run_is_built(self):
        text = "".join(read(path) for path in glob.glob(SOURCE + "/bench/*.py"))
        run = set(
            re.findall(r"\"(?:/bench/)?(bench_\w+)\"", text.replace("/bench/bench_", '"bench_'))
        )
        self.assertIn("bench_load", run)
        self.assertLessEqual(run, PROGRAMS)

    def test_the_script_builds_them(self):
        self.assertRegex(
            read(SOURCE + "/scripts/bench"), r"(?m)^ninja -C build-bench bench-programs\b"
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
