# SPDX-License-Identifier: Apache-2.0
"""Machines that shut down under a running job, with and without a provider's notice, and nodes
whose clock is wrong.

The emulator does what ACPI's power button does: SIGTERM to the machine's unit, which is the
agent, and, when that has ended, SIGTERM and SIGKILL to all remaining processes. The job takes
half a second to answer, so an agent that ends at once loses its work.
"""

import sys
import unittest

from lab import Lab, check_reclaimed_once, nothing_is_left

STEPS, STEP_S = 12, 0.5
AHEAD_S = 58 * 60
PROVIDER = "aws"


class Shutdown(unittest.TestCase):
    def survive(self, event, cloud=None):
        """After the event on the job's machine, the save and its report are complete."""
        with Lab(provider=PROVIDER, cloud=cloud) as lab:
            job = lab.submit("chain.py", STEPS, STEP_S, method="coop", every_ms=3600000)
            lab.wait_log(job, r"^step 4 ")
            first = lab.emulated(lab.instance_of(job))["instance"]
            kind, how = event
            lab.cloud({kind: {"instance": first, **how}})
            shown = lab.wait_ended(job)

            check_reclaimed_once(self, lab, job, shown, STEPS)
            saved = next(c for c in shown["checkpoints"] if c["attempt"] == 1)
            self.assertEqual(saved["cause"], "notice")
            self.assertIn("notice", lab.kinds(job))
            state = lab.wait_cloud(nothing_is_left, "machines are given back")
            return next(i for i in state["instances"] if i["instance"] == first)

    def test_a_soft_off_together_with_the_notice(self):
        """Google's normal way of a reclaim; the other two providers may do the same."""
        machine = self.survive(("reclaim", {"notice_s": 25, "soft_off_s": 0}))
        self.assertTrue(machine["reclaimed"])

    def test_a_soft_off_some_time_after_the_notice(self):
        """The order to shut down comes while the job is being saved, or after its end."""
        self.survive(("reclaim", {"notice_s": 25, "soft_off_s": 1}))

    def test_a_shutdown_that_no_provider_announces(self):
        machine = self.survive(("shutdown", {"seconds": 25}))
        self.assertFalse(machine["reclaimed"])
        self.assertLess(machine["gone_ms"] - machine["running_ms"], 1000 * (STEPS * STEP_S + 25))

    def test_a_machine_whose_clock_is_ahead(self):
        """By the machine's own clock the notice's deadline is past when it arrives."""
        if PROVIDER == "gcp":
            self.skipTest("a preemption has no time")
        self.survive(("reclaim", {"notice_s": 25}), {"node_clock_ahead_s": AHEAD_S})


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("aws", "azure", "gcp"):
        PROVIDER = sys.argv.pop(1)
    unittest.main(verbosity=2)
