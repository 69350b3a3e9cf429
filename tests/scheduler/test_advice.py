# SPDX-License-Identifier: Apache-2.0
"""What a job's user is warned of, by the API and by the command line."""

import os
import subprocess
import time
import unittest

from belayd import BUILD, WAIT_S, Belayd, Keys

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

    def join(self):
        keys = Keys(self.d)
        key = keys.key()
        status, body, _ = self.d.call(
            "POST",
            "/agent/v1/join",
            {
                "token": self.d.token(kind="join", pool="base"),
                "csr_pem": keys.request(key),
                "host": "n",
                "version": "1",
                "cpus": 1,
                "memory_mib": 100,
            },
            tls=True,
        )
        self.assertEqual(status, 200, body)
        return keys.save(body["cert_pem"]), key

    def save(self, cert, job, took_ms):
        """An agent runs the job, and tells of a save that took so long."""
        seq, now = 0, int(time.time() * 1000)
        attempt = {"job": job, "attempt": 1, "phase": "running", "started_at": now}
        attempts, wait_ms, end = [], 1000, time.monotonic() + WAIT_S
        while True:
            seq += 1
            status, desired, _ = self.d.call(
                "POST",
                "/agent/v1/sync",
                {
                    "incarnation": 1,
                    "seq": seq,
                    "wait_ms": wait_ms,
                    "notice": {},
                    "attempts": attempts,
                },
                cert=cert,
                tls=True,
            )
            self.assertEqual(status, 200, desired)
            if attempts:
                break
            self.assertLess(time.monotonic(), end)
            if desired.get("attempts"):
                attempt["checkpoints"] = [
                    {
                        "sequence": 1,
                        "bytes": 1000,
                        "stored_bytes": 500,
                        "took_ms": took_ms,
                        "saved_at": now,
                        "cause": "periodic",
                    }
                ]
                attempts, wait_ms = [attempt], 0

    def warnings(self, job):
        status, body, _ = self.d.call("GET", "/api/v1/jobs/%d/why" % job)
        self.assertEqual(status, 200, body)
        return body["warnings"]

    def belay(self, *arguments):
        env = {**os.environ, "BELAY_HOME": self.d.state}
        return subprocess.run(
            [BUILD + "/cli/belay", *arguments],
            cwd=self.d.dir,
            env=env,
            timeout=WAIT_S,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )

    def test_a_save_that_takes_longer_than_the_notice(self):
        job = self.d.submit(name="train", checkpoint=COOP)
        self.assertEqual(self.warnings(job), [])
        self.save(self.join(), job, 150000)
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
        done = self.belay("submit", "train.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: " + text % ("one of job %d did" % job), done.stderr)
        self.assertIn("  ! " + text % "its last one did", self.belay("why", str(job)).stdout)

    def test_a_save_that_fits(self):
        job = self.d.submit(name="train", checkpoint=COOP)
        self.save(self.join(), job, 110000)
        self.assertEqual(self.warnings(job), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
