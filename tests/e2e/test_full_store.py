# SPDX-License-Identifier: Apache-2.0
"""A full disk under the checkpoint store: a save that does not fit is reported and the previous
checkpoint is kept, the job continues, and saves work again when there is space."""

import os
import re
import sys
import unittest

from lab import Lab, undisturbed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import small_disk  # noqa: E402

BULK = 1 << 20  # new content of every checkpoint
STEPS = 1200  # of 20 ms: longer than any wait of the test
FULL = r"No space left on device"


class FullLab(Lab):
    """A lab whose store is a separate disk, which the test can fill."""

    def start(self):
        self.store = os.path.join(self.home, "store")
        self.disk = small_disk.SmallDisk(self.store, "16m")
        self.fill, self.free = self.disk.fill, self.disk.free
        os.chmod(self.home, 0o700)
        super().start()

    def end(self):
        problems = super().end()
        self.disk.end()
        return problems


class FullStore(unittest.TestCase):
    def begin(self, l):
        """A job with a checkpoint whose next save meets a full store. Returns its number, and the
        store's checkpoints."""
        job = l.submit("chain.py", STEPS, 0.02, BULK, method="coop", every_ms=1000)
        l.wait_event(job, "saved")
        l.fill()
        failed = l.wait_event(job, "save-failed")
        self.assertRegex(failed["text"], FULL)
        self.assertRegex(failed["text"], r"save checkpoint 1\.\d+ of job %d" % job)
        kept = l.manifests(job)
        self.assertEqual(len(kept), l.kinds(job).count("saved"))
        return job, kept

    def check_goes_on(self, l, job):
        """It continues as the same attempt, and the failed save is reported with its reason."""
        said = l.wait_log(job, r"^belay: not saved, continuing: .*" + FULL)
        step = int(re.findall(r"^step (\d+) ", said.string, re.M)[-1])
        l.wait_log(job, r"^step %d " % (step + 20))
        shown = l.show(job)
        self.assertEqual((shown["job"]["state"], len(shown["attempts"])), ("running", 1))

    def check_result(self, l, job):
        shown = l.wait_ended(job)
        self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
        said = "".join(
            line
            for line in l.log(job).split(" ----\n")[-1].splitlines(True)
            if not line.startswith("belay: ")
        )
        self.assertTrue(undisturbed("chain.py", STEPS, 0).endswith(said))
        return shown

    def test_a_save_that_does_not_fit_costs_nothing_but_itself(self):
        with FullLab() as l:
            job, kept = self.begin(l)
            self.check_goes_on(l, job)
            self.assertEqual(l.manifests(job), kept)
            l.free()
            l.wait_event(job, "saved", len(kept) + 1)
            self.assertGreater(l.manifests(job)[-1], kept[-1])
            l.post("/jobs/%d/requeue" % job)  # saved again, and restored from that
            shown = self.check_result(l, job)
            first, second = shown["attempts"]
            newest = next(c for c in shown["checkpoints"] if c["attempt"] == 1)
            self.assertEqual(second["restored"], {"attempt": 1, "sequence": newest["sequence"]})
            self.assertEqual(newest["cause"], "drain")

    def test_a_machine_lost_while_the_store_is_full_goes_back_to_what_fitted(self):
        with FullLab() as l:
            job, kept = self.begin(l)
            self.check_goes_on(l, job)
            l.cloud({"reclaim": {"instance": l.instance_of(job), "without_notice": True}})
            l.wait_event(job, "started", 2)  # restoring writes nothing but a fence, which is empty
            self.assertEqual(l.manifests(job), kept)
            l.free()
            l.wait_event(job, "saved", len(kept) + 1)
            shown = self.check_result(l, job)
            self.assertEqual(
                shown["attempts"][1]["restored"], {"attempt": kept[-1][0], "sequence": kept[-1][1]}
            )
            self.assertNotIn("damaged", l.kinds(job))


if __name__ == "__main__":
    small_disk.main()
