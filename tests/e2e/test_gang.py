# SPDX-License-Identifier: Apache-2.0
"""Jobs of several nodes: started together, saved together, resumed together."""

import re
import sys
import unittest

from lab import JOBS, Lab

sys.path.insert(0, JOBS)
from ring import undisturbed  # noqa: E402

STEPS, ELASTIC_STEPS, RANKS = 200, 400, 3


class Gang(unittest.TestCase):
    def start(self, l, *args, every_ms=3600000):
        return l.submit("ring.py", STEPS, 0.02, *args, method="coop", every_ms=every_ms, nodes=RANKS)

    def node_of(self, l, job, rank):
        shown = l.show(job)
        return [a["node"] for a in shown["attempts"] if a["rank"] == rank][-1]

    def machine_of(self, l, node):
        return l.wait(lambda: [i["provider_id"] for i in l.get("/instances?state=all")["instances"]
                               if i["node"] == node and i["provider_id"]], "the machine of node %d" % node)[0]

    def wait_rank_log(self, l, job, rank, pattern):
        follower = l.start_belay("logs", "-f", "--rank", str(rank), str(job))
        for line in follower.stdout:
            if re.search(pattern, line):
                break
        else:
            self.fail("rank %d has not told %s" % (rank, pattern))
        follower.terminate()
        follower.communicate()

    def check_result(self, l, job):
        shown = l.show(job)
        self.assertEqual((shown["job"]["state"], shown["job"]["end"]), ("ended", "succeeded"), l.log(job))
        expected = undisturbed(STEPS, RANKS)
        for rank in range(RANKS):
            text = l.belay("logs", "--rank", str(rank), str(job))
            self.assertEqual(re.findall("^ring (.*)$", text, re.M), [expected[rank]])
        for number in {a["attempt"] for a in shown["attempts"]}:
            ranks = [a for a in shown["attempts"] if a["attempt"] == number]
            self.assertEqual([a["rank"] for a in ranks], list(range(RANKS)))
            self.assertEqual(len({a["node"] for a in ranks}), RANKS)
            self.assertEqual(len({str(a["restored"]) for a in ranks}), 1)
        return shown

    def test_a_notice_for_one_node_saves_all_and_loses_nothing(self):
        with Lab() as l:
            job = self.start(l)
            l.wait_log(job, "^step 20 ")
            doomed = self.node_of(l, job, 1)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "notice_s": 8}})
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual([(a["end"], a["rank"]) for a in shown["attempts"][:RANKS]],
                             [("gang", 0), ("reclaimed", 1), ("gang", 2)])
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(len(shown["checkpoints"]), 1)
            self.assertEqual(shown["job"]["reclaims"], 1)

    def test_a_node_that_vanishes_takes_all_back_to_the_last_checkpoint(self):
        with Lab() as l:
            job = self.start(l, every_ms=1000)
            l.wait_event(job, "saved", 2)
            doomed = self.node_of(l, job, 2)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "without_notice": True}})
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(max(a["attempt"] for a in shown["attempts"]), 2)
            self.assertIsNotNone(shown["attempts"][-1]["restored"])

    def test_a_node_that_vanishes_while_the_others_wait_for_its_part(self):
        with Lab() as l:
            job = self.start(l, 2, 10, "hold", every_ms=1000)
            self.wait_rank_log(l, job, 2, "^holds$")
            doomed = self.node_of(l, job, 2)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "without_notice": True}})
            l.wait_ended(job)
            self.assertEqual(max(a["attempt"] for a in self.check_result(l, job)["attempts"]), 2)

    def test_an_elastic_one_goes_on_smaller_and_grows_again(self):
        with Lab() as l:
            job = l.submit("ring.py", ELASTIC_STEPS, 0.02, method="coop", every_ms=3600000, nodes=RANKS, nodes_min=1)
            for size, rank in ((RANKS, 1), (RANKS - 1, 0)):
                l.wait_event(job, "started", RANKS - size + 1)
                self.wait_rank_log(l, job, 0, "^rank 0 of %d on" % size)
                doomed = self.node_of(l, job, rank)
                l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "notice_s": 8}})
                l.wait_event(job, "requeued", RANKS - size + 1)
            self.wait_rank_log(l, job, 0, "^rank 0 of 1 on")
            self.assertEqual(l.job(job)["ranks"], 1)
            l.belay("requeue", str(job))
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["ranks"]), ("succeeded", RANKS), l.log(job))
            self.assertEqual(shown["job"]["lost_steps"], 0)
            sizes = re.findall("^rank 0 of ([0-9]+) on .* at step ([0-9]+)$", l.log(job), re.M)
            self.assertEqual([int(n) for n, _ in sizes], [RANKS, RANKS - 1, 1, RANKS])
            expected = undisturbed(ELASTIC_STEPS, RANKS, [(int(step), int(n)) for n, step in sizes[1:]])
            for rank in range(RANKS):
                text = l.belay("logs", "--rank", str(rank), str(job))
                self.assertEqual(re.findall("^ring (.*)$", text, re.M), [expected[rank]])

    def test_a_rank_that_fails_ends_the_job_with_its_exit_code(self):
        with Lab() as l:
            job = self.start(l, 1, 30)
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("failed", 7))
            self.assertEqual(len(shown["attempts"]), RANKS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
