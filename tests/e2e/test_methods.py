# SPDX-License-Identifier: Apache-2.0
"""Each way in which a program can take part in checkpoints, over a reclaim with notice."""

import os
import re
import unittest

from lab import BUILD, SEAM, Lab, undisturbed

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def reclaim(l, job):
    l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 4}})
    return l.wait_ended(job)


class Methods(unittest.TestCase):
    def check_ends(self, shown, *ends):
        self.assertEqual([a["end"] for a in shown["attempts"]], list(ends))
        self.assertEqual(shown["job"]["exit_code"], 0)

    def lines(self, l, job, pattern):
        return re.findall(pattern, l.log(job), re.M)

    def test_signal_and_exit_85(self):
        with Lab() as l:
            job = l.submit("digits.py", 200, "exit", method="signal", every_ms=3600000)
            l.wait_log(job, "^step 30 ")
            shown = reclaim(l, job)
            self.check_ends(shown, "reclaimed", "succeeded")
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(shown["attempts"][0]["exit_code"], 85)
            self.assertEqual(
                self.lines(l, job, "^step .*|^digits .*"),
                undisturbed("digits.py", 200, "exit").splitlines(),
            )

    def test_signal_and_done_goes_on_until_it_is_stopped(self):
        with Lab() as l:
            job = l.submit("digits.py", 250, "done", method="signal", every_ms=1000)
            l.wait_event(job, "saved", 2)  # and it continued after the first
            shown = reclaim(l, job)
            self.check_ends(shown, "reclaimed", "succeeded")
            self.assertEqual(shown["checkpoints"][-1]["cause"], "periodic")
            self.assertEqual(
                self.lines(l, job, "^digits .*"),
                undisturbed("digits.py", 250, "done").splitlines()[-1:],
            )
            self.assertIn("resumed at", l.log(job))

    def test_exit_85_without_being_asked_is_continued(self):
        with Lab() as l:
            script = (
                "#!/bin/sh\n"
                "[ $BELAY_RESTORED = 1 ] && read -r part <$BELAY_CHECKPOINT_DIR/part\n"
                "echo part ${part:-0}\n"
                "[ ${part:-0} = 2 ] && exit 0\n"
                "echo $((${part:-0} + 1)) >$BELAY_CHECKPOINT_DIR/part\n"
                "exit 85\n"
            )
            job = l.post(
                "/jobs",
                {"name": "parts", "script": script, "cwd": "/", "checkpoint": {"method": "signal"}},
            )["id"]
            shown = l.wait_ended(job)
            self.check_ends(shown, "checkpointed", "checkpointed", "succeeded")
            self.assertEqual(self.lines(l, job, "^part .*"), ["part 0", "part 1", "part 2"])

    def test_shell_with_belay_checkpoint_commit(self):
        with Lab() as l:
            job = l.submit(
                os.path.join(EXAMPLES, "counter.sh"),
                60,
                method="coop",
                every_ms=3600000,
                env={"COUNTER_PAUSE": "0.05"},
            )
            l.wait_log(job, "^step 15 ")
            shown = reclaim(l, job)
            self.check_ends(shown, "reclaimed", "succeeded")
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(
                shown["attempts"][1]["restored_progress"], shown["checkpoints"][0]["progress"]
            )
            self.assertEqual(self.lines(l, job, "^step (.*) sum"), [str(n) for n in range(1, 61)])
            self.assertEqual(
                self.lines(l, job, "^sum of squares .*"),
                ["sum of squares %d" % sum(n * n for n in range(61))],
            )

    def test_c_with_libbelay(self):
        counter, steps = os.path.join(BUILD, "examples", "counter"), 20000000
        while True:  # enough steps to take this machine long enough
            with Lab() as l:
                job = l.submit(counter, steps, method="coop", every_ms=3600000)
                l.wait_log(job, "^from step 0$")
                shown = reclaim(l, job)
                if len(shown["attempts"]) == 1:
                    steps *= 8
                    continue
                self.check_ends(shown, "reclaimed", "succeeded")
                self.assertEqual(shown["job"]["lost_steps"], 0)
                self.assertEqual(
                    self.lines(l, job, "^resumed at step (.*)$"),
                    [str(shown["checkpoints"][0]["progress"])],
                )
                self.assertEqual(
                    l.log(job).splitlines()[-1], undisturbed(counter, steps).splitlines()[-1]
                )
                return

    def test_none_starts_from_the_beginning(self):
        with Lab() as l:
            job = l.submit("plain.sh", 200)
            l.wait_log(job, "^step 20$")
            shown = reclaim(l, job)
            self.check_ends(shown, "reclaimed", "succeeded")
            self.assertIsNone(shown["attempts"][1]["restored"])
            self.assertEqual(shown["checkpoints"], [])
            self.assertIn("from the beginning", SEAM.findall(l.log(job))[0])
            self.assertEqual(SEAM.split(l.log(job))[1], undisturbed("plain.sh", 200, 0))
            self.assertGreater(shown["job"]["lost_ms"], 0)

    def test_failure_of_the_program_is_not_tried_again(self):
        with Lab() as l:
            job = l.post(
                "/jobs", {"name": "bad", "script": "#!/bin/sh\necho no; exit 3\n", "cwd": "/"}
            )["id"]
            shown = l.wait_ended(job)
            self.assertEqual(
                [(a["end"], a["exit_code"]) for a in shown["attempts"]], [("failed", 3)]
            )
            self.assertEqual(l.log(job), "no\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
