# SPDX-License-Identifier: Apache-2.0
"""Warnings about a job, given to its user by the API and by the command line."""

import os
import time
import unittest

from belayd import Belayd, Node

BURST = """\
cluster: lab
listen: 127.0.0.1:0
pools:
  base: {}
  burst:
    provider: aws
    region: us-east-1
    zones: [us-east-1a]
    types: [m6i.xlarge]
    image: ami-1
    endpoint: http://127.0.0.1:9
    max_nodes: 0
"""
COOP = {"method": "coop"}


class Advice(unittest.TestCase):
    def setUp(self):
        self.d = Belayd(BURST)
        self.d.start()
        self.addCleanup(self.d.__exit__, None, None, None)

    def save(self, node, job, took_ms):
        """An agent runs the job and reports a save of took_ms."""
        now = int(time.time() * 1000)
        node.begin(job)
        node.attempts[0]["checkpoints"] = [
            {
                "sequence": 1,
                "bytes": 1000,
                "stored_bytes": 500,
                "took_ms": took_ms,
                "saved_at": now,
                "cause": "periodic",
            }
        ]
        node.sync()

    def warnings(self, job):
        status, body, _ = self.d.call("GET", "/api/v1/jobs/%d/why" % job)
        self.assertEqual(status, 200, body)
        return body["warnings"]

    def test_a_save_that_takes_longer_than_the_notice(self):
        job = self.d.submit(name="train", checkpoint=COOP)
        self.assertEqual(self.warnings(job), [])
        self.save(Node(self.d), job, 150000)
        text = "a save takes 2m30s (%s); aws gives 2m00s (pool burst)"
        got = self.warnings(job)
        self.assertEqual([w["code"] for w in got], ["save-too-slow"])
        self.assertIn(text % "its last one did", got[0]["text"])

        again = self.d.submit(name="train", checkpoint=COOP)
        self.assertIn(text % ("one of job %d did" % job), self.warnings(again)[0]["text"])
        for other in (
            {"name": "other", "checkpoint": COOP},
            {"name": "train"},
            {"name": "train", "checkpoint": COOP, "pool": "base"},
            {"name": "train", "checkpoint": COOP, "market": "on-demand"},
        ):
            with self.subTest(other):
                self.assertEqual(self.warnings(self.d.submit(**other)), [])

        with open(os.path.join(self.d.dir, "train.sh"), "w") as f:
            f.write("#!/bin/sh\n#BELAY -J train --checkpoint coop\ntrue\n")
        done = self.d.belay("submit", "train.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: " + text % ("one of job %d did" % job), done.stderr)
        self.assertIn("  ! " + text % "its last one did", self.d.belay("why", str(job)).stdout)

    def test_a_save_that_fits(self):
        job = self.d.submit(name="train", checkpoint=COOP)
        self.save(Node(self.d), job, 110000)
        self.assertEqual(self.warnings(job), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
