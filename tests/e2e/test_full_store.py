# SPDX-License-Identifier: Apache-2.0
"""A full disk under the checkpoint store: what does not fit is told and the checkpoint before stays, the job goes on, and all
works again when there is room. The disk is a small tmpfs in a mount namespace of the test's own, so nothing of it is left
behind."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import unittest

from lab import Lab, undisturbed

INSIDE = "BELAY_TEST_IN_NAMESPACE"
SIZE = "16m"
BULK = 1 << 20  # that every checkpoint writes anew
STEPS = 1200  # of 20 ms: longer than all that the test waits for
FULL = r"No space left on device"


class FullLab(Lab):
    """A lab whose store is a disk of its own, which is full when we say so."""

    def start(self):
        self.store = os.path.join(self.home, "store")
        self.ballast = os.path.join(self.store, "ballast")
        os.makedirs(self.store, 0o700)
        os.chmod(self.home, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=700" % SIZE, "belay-test", self.store], check=True)
        super().start()

    def end(self):
        problems = super().end()
        subprocess.run(["umount", "-l", self.store])
        return problems

    def fill(self):
        with open(self.ballast, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while f.write(b"x" * 4096) == 4096:
                pass

    def free(self):
        os.unlink(self.ballast)


class FullStore(unittest.TestCase):
    def begin(self, l):
        """A job with a checkpoint, that meets a full store at its next one. Its number, and what the store holds."""
        job = l.submit("chain.py", STEPS, 0.02, BULK, method="coop", every_ms=1000)
        l.wait_event(job, "saved")
        l.fill()
        failed = l.wait_event(job, "save-failed")
        self.assertRegex(failed["text"], FULL)
        self.assertRegex(failed["text"], r"save checkpoint 1-\d+ of job %d" % job)
        kept = l.manifests(job)
        self.assertEqual(len(kept), l.kinds(job).count("saved"))
        return job, kept

    def check_goes_on(self, l, job):
        """It steps on, as the same attempt, and was told why it has no newer checkpoint."""
        said = l.wait_log(job, r"^belay: not saved, going on: .*" + FULL)
        step = int(re.findall(r"^step (\d+) ", said.string, re.M)[-1])
        l.wait_log(job, r"^step %d " % (step + 20))
        shown = l.show(job)
        self.assertEqual((shown["job"]["state"], len(shown["attempts"])), ("running", 1))

    def check_result(self, l, job):
        shown = l.wait_ended(job)
        self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("succeeded", 0))
        said = "".join(line for line in l.log(job).split(" ----\n")[-1].splitlines(True) if not line.startswith("belay: "))
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
            self.assertEqual(shown["attempts"][1]["restored"], {"attempt": kept[-1][0], "sequence": kept[-1][1]})
            self.assertNotIn("damaged", l.kinds(job))


def why_not():
    if os.geteuid() != 0:
        return "a disk of our own needs root"
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "x", "/mnt"],
                                                     stderr=subprocess.DEVNULL).returncode != 0:
        return "this machine mounts nothing for us"
    return None


def main():
    if os.environ.pop(INSIDE, None):
        unittest.main(verbosity=2)
        return
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
