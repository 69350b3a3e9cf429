# SPDX-License-Identifier: Apache-2.0
"""The machine that a job will continue on fetches its newest checkpoint while the job still runs:
the restore fetches only what has changed since."""

import unittest

from lab import CLOUD, Lab

CONSTANT = 8 << 20  # in all checkpoints of the job
PLACE = {"zone": "us-east-1a", "type": "m6i.xlarge"}
SPOT = {"capacity": 0, "usd_per_hour": 0.0768}
DROUGHT = {**CLOUD, "pools": [{**PLACE, "spot": SPOT, "on_demand": {"capacity": 2}}]}
ONE_ZONE = {"zones": [PLACE["zone"]]}


class Prefetch(unittest.TestCase):
    def submit(self, l, **spec):
        """Runs until it is cancelled; has saved twice, so that it is known how little changes."""
        steps = (1000000, 0.02, 0, CONSTANT)
        job = l.submit("chain.py", *steps, method="coop", every_ms=1000, **spec)
        l.wait_event(job, "saved", 2)
        return job

    def check(self, l, job, then):
        l.wait_event(job, "restored")
        l.post("/jobs/%d/cancel" % job)
        shown = l.wait_ended(job)
        kinds = l.kinds(job)
        told = [kinds.index(kind) for kind in ("prefetch", "prefetched", *then, "restored")]
        self.assertEqual(told, sorted(told), kinds)
        self.assertNotIn("prefetch-failed", kinds)
        resumed = shown["attempts"][1]
        self.assertGreater(resumed["restored_bytes"], CONSTANT)
        self.assertLess(resumed["fetched_bytes"], 1000)
        last = next(c for c in shown["checkpoints"] if c["attempt"] == 1)  # newest first
        self.assertEqual(resumed["restored"], {"attempt": 1, "sequence": last["sequence"]})
        self.assertEqual(shown["job"]["lost_steps"], 0)
        text = [e["text"] for e in l.events(job) if e["kind"] == "restored"][0]
        self.assertRegex(text, r"; \d+ B were fetched, the rest was on the node$")
        return shown

    def test_a_job_moves_to_spot_when_its_checkpoint_is_there(self):
        with Lab(cloud=DROUGHT, pool={**ONE_ZONE, "return_after": "1s"}) as l:
            job = self.submit(l, exclusive=True)  # it pays for the whole machine
            l.cloud({"capacity": {**PLACE, "market": "spot", "n": 2}})
            shown = self.check(l, job, ["move"])
            self.assertEqual([a["end"] for a in shown["attempts"]], ["evicted", "cancelled"])
            restart = shown["attempts"][1]["restart"]
            self.assertEqual(restart["restore_ms"], shown["attempts"][1]["restore_ms"])

    def test_a_job_under_notice_finds_its_checkpoint_on_the_next_machine(self):
        with Lab(pool={"notice_reserve": "2s"}) as l:
            job = self.submit(l, market="spot")
            l.cloud({"reclaim": {"instance": l.instance_of(job), "notice_s": 15}})
            shown = self.check(l, job, ["ended"])
            self.assertEqual([a["end"] for a in shown["attempts"]], ["reclaimed", "cancelled"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
