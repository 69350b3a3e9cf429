# SPDX-License-Identifier: Apache-2.0
"""Warnings about a job, given to its user by the API and by the command line."""

import contextlib
import os
import sqlite3
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


class RightSize(unittest.TestCase):
    """The last runs of a name would fit a cheaper instance type."""

    SPEC = {"name": "train", "cpus": 8, "memory_mib": 28 * 1024, "pool": "burst"}

    def end(self, d, jobs, memory_gib):
        """While belayd is stopped: these jobs ran for an hour and ended well."""
        with contextlib.closing(sqlite3.connect(os.path.join(d.state, "belay.db"))) as db:
            columns = db.execute("PRAGMA table_info(attempts)").fetchall()
            now = int(time.time() * 1000)
            for job in jobs:
                row = {c[1]: "" if c[2] == "TEXT" else 0 for c in columns}
                row.update(job=job, attempt=1, state="ended", end_kind="succeeded")
                row.update(stop_reason="none", cpu_ms=3600000)
                row.update(started_at=now - 3600000, ended_at=now)
                row.update(memory_peak=memory_gib << 30)
                db.execute(
                    "INSERT INTO attempts (%s) VALUES (%s)"
                    % (", ".join(row), ", ".join("?" * len(row))),
                    list(row.values()),
                )
                db.execute(
                    "UPDATE jobs SET plain = 0, state = 'ended', end_kind = 'succeeded', attempts = 1,"
                    " started_at = ?, ended_at = ? WHERE id = ?",
                    (now - 3600000, now, job),
                )
            db.commit()

    def test_it_is_said_at_the_submit_when_three_runs_have_ended(self):
        with Belayd(BURST.replace("[m6i.xlarge]", "[m6i.xlarge, c6i.4xlarge]")) as d:
            for n, expected in ((2, False), (1, True)):
                jobs = [d.submit(**self.SPEC) for _ in range(n)]
                self.assertEqual(d.stop(), 0)
                self.end(d, jobs, 9)
                d.start()
                job = d.submit(**self.SPEC)
                warnings = d.call("GET", "/api/v1/jobs/%d/why" % job)[1]["warnings"]
                d.call("POST", "/api/v1/jobs/%d/cancel" % job)
                self.assertEqual([w["code"] for w in warnings], ["right-size"] * expected)
            self.assertRegex(
                warnings[0]["text"],
                r"^the last 3 runs of this name used at most 9\.0 of 28 GiB, 1\.0 of 8 cpus on "
                r"average: --mem 11G --cpus 2 fits m6i\.xlarge instead of c6i\.4xlarge, "
                r"\$0\.\d\d/h less, \$0\.\d\d a run$",
            )
            with open(os.path.join(d.dir, "train.sh"), "w") as f:
                f.write("#!/bin/sh\n#BELAY -J train -p burst --cpus 8 --mem 28G\ntrue\n")
            done = d.belay("submit", "train.sh")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("warning: the last 3 runs of this name", done.stderr)
            demands = {"constraint": "spot|on-demand", "exclude": "n9"}
            job = d.submit(**{**self.SPEC, **demands})
            why = d.call("GET", "/api/v1/jobs/%d/why" % job)[1]
            self.assertEqual([w["text"] for w in why["warnings"]], [warnings[0]["text"]])
            for other in (
                {"name": "other"},
                {"memory_mib": 11264, "cpus": 2},
                {"constraint": "c6i.4xlarge"},
                {"exclusive": True},
            ):
                job = d.submit(**{**self.SPEC, **other})
                why = d.call("GET", "/api/v1/jobs/%d/why" % job)[1]
                self.assertEqual(why["warnings"], [], other)


if __name__ == "__main__":
    unittest.main(verbosity=2)
