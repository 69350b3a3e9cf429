# SPDX-License-Identifier: Apache-2.0
"""Drills on real machines: only programs that resume are certified, and the job continues in any
case."""

import json
import os
import subprocess
import unittest

import lab
from lab import BUILD, Lab, undisturbed

STEPS = 400  # of 20 ms


class Drill(unittest.TestCase):
    def begin(self, l, job, *options):
        return subprocess.Popen(
            [BUILD + "/cli/belay", "drill", "--json", *options, str(job)],
            cwd=l.dir,
            env=l.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def finish(self, process):
        """(exit code, the drill, stderr)"""
        out, said = process.communicate(timeout=2 * lab.WAIT_S)
        return process.returncode, json.loads(out or "{}"), said

    def drill(self, l, job, *options):
        return self.finish(self.begin(l, job, *options))

    def test_what_resumes_is_certified_and_what_begins_again_is_not(self):
        """coop, signal and one that ignores its checkpoints, in parallel; then coop without
        notice."""
        with Lab() as l:
            signal = l.submit("digits.py", 100000, "done", method="signal", every_ms=1000)
            forgets = l.submit("forgets.py", 100000, method="coop", every_ms=3600000)
            for job in (signal, forgets):
                l.wait_log(job, "^step 40( |$)")
            coop = l.submit(
                "chain.py", STEPS, method="coop", every_ms=3600000
            )  # last, because it ends
            l.wait_log(coop, "^step 40 ")
            running = [(job, job != forgets, self.begin(l, job)) for job in (coop, signal, forgets)]
            for job, good, process in running:
                code, drill, said = self.finish(process)
                self.assertEqual(
                    (code, drill.get("state")),
                    (0, "passed") if good else (1, "failed"),
                    (drill, said),
                )
                self.assertEqual(
                    drill["saved"], {"attempt": 1, "sequence": drill["saved"]["sequence"]}
                )
                self.assertNotEqual(drill["resumed_node"], drill["node"])
                self.assertGreater(drill["resume_ms"], 0)
                self.assertEqual(l.kinds(job).count("drill"), 1)
                self.assertEqual(l.kinds(job).count("drill-passed" if good else "drill-failed"), 1)
                if not good:
                    self.assertRegex(
                        drill["text"],
                        r"was at step \d+ after the resume, and its checkpoint 1\.1 at step \d+",
                    )
                    self.assertIn("docs/reference/checkpoints.md", said)
            self.check_figures(l, coop)
            code, drill, said = self.drill(l, signal, "--without-notice")
            self.assertEqual((code, drill.get("state")), (0, "passed"), (drill, said))
            self.assertEqual(self.drill(l, 99)[0], 1)
            self.check_lists(l, coop, forgets)
            for job in (forgets, signal):
                l.post("/jobs/%d/cancel" % job)
            shown = l.wait_ended(coop)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["drilled", "succeeded"])
            self.assertEqual((shown["job"]["reclaims"], shown["job"]["lost_steps"]), (0, 0))
            self.assertEqual(l.said(coop), undisturbed("chain.py", STEPS, 0))

    def check_figures(self, l, job):
        drill = l.show(job)["drills"][0]
        self.assertGreaterEqual(drill["saved_progress"], 40)
        self.assertGreaterEqual(drill["progress"], drill["saved_progress"])
        self.assertEqual(
            (drill["lost_steps"], drill["method"], drill["by"]), (0, "coop", drill["user"])
        )
        self.assertGreater(drill["bytes"], 0)
        self.assertRegex(drill["script_key"], "^[0-9a-f]{64}$")

    def check_lists(self, l, coop, forgets):
        drills = json.loads(l.belay("drill", "--list", "--json"))["drills"]
        self.assertIn((coop, "passed"), [(d["job"], d["state"]) for d in drills])
        self.assertIn("certified", l.belay("drill", "--list"))
        self.assertIn("resumes in ", l.belay("show", str(coop)))
        self.assertEqual(l.show(coop)["certificate"]["job"], coop)
        self.assertIsNone(l.show(forgets)["certificate"])
        twin = l.submit("chain.py", 1, method="coop")  # the same script with another argument
        self.assertEqual(l.show(twin)["certificate"]["job"], coop)

    def test_submitted_so_and_belayd_killed_in_the_middle(self):
        """Also compares the job's result with that of an undisturbed run."""
        with Lab() as l:
            script = l.write(
                "count.sh",
                '#!/bin/sh\n#BELAY --checkpoint coop --checkpoint-every 1s\nexec %s %s/result.py 60 "$1"\n'
                % (lab.PYTHON, lab.JOBS),
                0o755,
            )
            go = l.write("go", "")
            undisturbed = int(l.belay("submit", "--parsable", script, go))
            l.wait_ended(undisturbed)
            os.unlink(go)
            job = int(l.belay("submit", "--parsable", "--drill", script, go))
            l.wait_event(job, "drill")
            l.kill_belayd()
            l.up()
            l.wait_event(job, "drill-passed")
            compare = self.begin(
                l, job, "--compare", "diff -r -x attempt", "--against", str(undisturbed)
            )
            l.write("go", "")
            code, drill, said = self.finish(compare)
            self.assertEqual(
                (code, drill.get("state"), drill.get("compared_with")),
                (0, "passed", undisturbed),
                said,
            )
            shown = l.wait_ended(job)
            self.assertEqual([a["end"] for a in shown["attempts"]], ["drilled", "succeeded"])
            self.assertEqual([d["state"] for d in shown["drills"]], ["passed"])
            self.check_comparisons(l, job, undisturbed)

    def check_comparisons(self, l, job, undisturbed):
        for command, against, more, text in (
            ("true", job, (), "not succeeded in a single attempt"),
            ("sleep 60; true", undisturbed, ("--compare-limit", "1s"), "did not end within 1 s"),
            ("no-such-program", undisturbed, (), "exit code 127"),
        ):
            code, drill, said = self.drill(
                l, job, "--compare", command, "--against", str(against), *more
            )
            self.assertEqual((code, drill), (1, {}), said)
            self.assertIn(text, said)
        for wrong in (
            ("--compare", "true"),
            ("--against", "1"),
            ("--compare", "", "--against", "1"),
            ("--list", "--compare", "true", "--against", "1"),
            ("--compare", "true", "--against", "1", "--compare-limit", "2d"),
        ):
            self.assertEqual(self.drill(l, job, *wrong)[0], 2, wrong)
        self.assertEqual(l.show(job)["certificate"]["job"], job)
        code, drill, said = self.drill(
            l, job, "--compare", "diff -r", "--against", str(undisturbed)
        )
        self.assertEqual((code, drill["state"]), (1, "failed"), said)
        self.assertIn(
            "its result differs from that of job %d, which ran undisturbed: --compare ended with exit code 1"
            % undisturbed,
            drill["text"],
        )
        self.assertIn("diff", said)  # the command's output
        self.assertIsNone(l.show(job)["certificate"])
        self.assertEqual(l.kinds(job).count("drill-compared"), 2)

    def test_a_pool_asks_for_it_before_spot(self):
        with Lab(pool={"require_drill": "true", "return_after": "1s"}) as l:
            job = l.submit("chain.py", 100000, method="coop", every_ms=3600000)
            l.wait_log(job, "^step 20 ")
            self.assertEqual(self.market(l, job), "on-demand")
            self.assertIn("keeps its spot machines", l.belay("why", str(job)))
            self.assertEqual(self.drill(l, job)[0], 0)
            twin = l.submit("chain.py", 10, method="coop", every_ms=3600000, market="spot")
            l.wait_ended(twin)
            self.assertEqual(self.market(l, twin), "spot")
            self.assertNotIn("keeps its spot machines", l.belay("why", str(job)))

    def market(self, l, job):
        node = l.show(job)["attempts"][-1]["node"]
        return next(
            i["market"] for i in l.get("/instances?state=all")["instances"] if i["node"] == node
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
