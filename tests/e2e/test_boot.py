# SPDX-License-Identifier: Apache-2.0
"""Machines whose image has no belay: each gets the agent from belayd at its first boot."""

import glob
import os
import unittest

from lab import Lab, undisturbed

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


class Boot(unittest.TestCase):
    def consoles(self, l):
        """The output of the machines, without sanitizer reports."""
        text = ""
        for path in glob.glob(os.path.join(l.dir, "machines", "*.console")):
            with open(path, errors="replace") as f:
                text += f.read()
        self.assertNotRegex(text, "ERROR: |runtime error: ")
        return text

    def test_a_job_moves_from_one_bare_machine_to_another(self):
        with Lab(bare=True) as l:
            job = l.submit(
                "chain.py", 150, method="coop", every_ms=3600000
            )  # the package comes with the agent
            l.wait_log(job, "^step 30 ")
            first = l.instance_of(job)
            programs = {os.readlink("/proc/%d/exe" % pid) for pid in l.agents()}
            self.assertTrue(programs)
            for program in programs:
                self.assertRegex(program, r"/machines/i-\w+/belay\.opt/[^/]+/bin/belay-agent$")
            l.cloud({"reclaim": {"instance": first, "notice_s": 4}})
            shown = l.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "succeeded"])
            self.assertEqual(l.said(job), undisturbed("chain.py", 150, 0))
            self.assertIn("belay: starting ", self.consoles(l))

    def test_the_same_script_boots_on_each_provider(self):
        for provider in "aws", "azure", "gcp":
            with self.subTest(provider), Lab(bare=True, provider=provider) as l:
                shown = l.wait_ended(l.submit("plain.sh", 1))
                self.assertEqual([a["end"] for a in shown["attempts"]], ["succeeded"])
                self.assertIn("belay: starting ", self.consoles(l))

    def test_the_shells_program_comes_with_the_agent(self):
        with Lab(bare=True) as l:
            job = l.submit(
                os.path.join(EXAMPLES, "counter.sh"),
                60,
                method="coop",
                every_ms=1000,
                env={"COUNTER_PAUSE": "0.05"},
            )
            shown = l.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["succeeded"])
            self.assertGreaterEqual(len(shown["checkpoints"]), 1)
            self.consoles(l)

    def test_a_machine_that_cannot_reach_belayd_powers_off(self):
        with Lab(
            bare=True, belayd={"server": "https://127.0.0.1:1"}, pool={"boot_timeout": "10s"}
        ) as l:
            l.submit("plain.sh", 1)
            l.wait_cloud(
                lambda state: state["counts"]["power_offs"] >= 1, "a machine powers itself off"
            )
            self.assertIn(
                "does not become a node: no agent from https://127.0.0.1:1 within 10 s",
                self.consoles(l),
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
