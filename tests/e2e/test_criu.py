# SPDX-License-Identifier: Apache-2.0
"""Checkpoints by CRIU, in a machine whose kernel supports it. BELAY_PROGRAMS_SEED repeats a run's
choices, BELAY_INSIDE_TESTS (as Criu.test_NAME) names some of the tests in criu_inside.py."""

import os
import unittest

import machine

RUN_S = 1500


class Criu(unittest.TestCase):
    def test_in_a_machine_of_its_own(self):
        lacks = machine.lacks()
        if lacks:
            self.skipTest("%s is not here" % lacks)
        names = ("BELAY_PROGRAMS_SEED", "BELAY_CRIU_RECLAIMS", "BELAY_INSIDE_TESTS")
        code, console = machine.run(
            "criu_inside.py", RUN_S, {n: os.environ[n] for n in names if n in os.environ}
        )
        self.assertEqual(
            code,
            0,
            "the tests in the machine failed, or it did not come to its end" if code else console,
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
