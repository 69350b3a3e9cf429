# SPDX-License-Identifier: Apache-2.0
"""A machine that was deleted from the cluster keeps its certificate and continues to use it: every
agent route answers that the node is gone, and no job changes. The certificate of an existing node
writes only for its own attempts, and not long after their end."""

import contextlib
import os
import re
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import Belayd, Node  # noqa: E402

GONE = "no longer belongs to this cluster"


class DeletedNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd()
        cls.d.start()

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def running(self, cpus):
        """A node with a job that has written four bytes, and the job."""
        node, job = Node(self.d, "spare", cpus=cpus), self.d.submit(cpus=cpus, pool="spare")
        node.begin(job)
        reply = node.call("output/%d/1?offset=0" % job, b"one\n")
        self.assertEqual(reply[:2], (200, {"size": 4}))
        return node, job

    def log(self, job):
        return self.d.call("GET", "/api/v1/jobs/%d/logs" % job)[1]

    def routes(self):
        """The agent routes that need a certificate, from the program's own table."""
        path = os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "..", "..", "scheduler", "api", "api.c"
        )
        with open(path) as f:
            found = re.findall(
                r'\{"(\w+)",\s*"/agent/v1/([^"]+)",\s*NEED_(NODE|MACHINE),', f.read()
            )
        self.assertGreaterEqual(len(found), 9)
        return found

    def test_every_route_refuses_the_certificate_of_a_deleted_node(self):
        node, job = self.running(cpus=70)
        node.attempts[0].update(phase="ended", end="failed", exit_code=3, output_bytes=4)
        node.sync()
        status, body, _ = self.d.call("POST", "/api/v1/nodes/%d/delete" % node.number)
        self.assertEqual(status, 200, body)
        status, body, _ = node.call("output/%d/1?offset=4" % job, b"forged\n")
        self.assertEqual(status, 404, body)
        self.assertIn(GONE, body["error"]["text"])
        tail = {"job": job, "attempt": 1, "offset": 4, "hex": b"forged\n".hex()}
        ended = {
            "job": job,
            "attempt": 1,
            "phase": "ended",
            "started_at": 1,
            "end": "succeeded",
            "output_bytes": 99,
        }
        report = {"incarnation": 1, "seq": 9, "notice": {}, "attempts": [ended], "tails": [tail]}
        status, body, _ = node.call("sync", report)
        self.assertEqual((status, body["error"]["kind"]), (404, "not-found"), body)
        for method, path, need in self.routes():
            path = path.replace("#", str(job), 1).replace("#", "1")
            with self.subTest(path):
                status, body, _ = self.d.call(method, "/agent/v1/" + path, b"{}", cert=node.cert)
                self.assertEqual(status, 401 if need == "MACHINE" else 404, body)
        self.assertEqual(self.log(job), b"one\n")
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["exit_code"], 3)

    def test_a_node_that_lives_does_not_write_for_attempts_of_others(self):
        node, job = self.running(cpus=80)
        stranger, path = Node(self.d, "spare", cpus=1), "output/%d/1?offset=4" % job
        status, body, _ = stranger.call(path, b"forged\n")
        self.assertEqual((status, body["error"]["kind"]), (403, "denied"), body)
        self.assertEqual(node.call(path, b"two\n")[1], {"size": 8})
        self.assertEqual(self.log(job), b"one\ntwo\n")

    def test_a_node_that_lives_does_not_write_for_an_attempt_that_ended_long_ago(self):
        node, job = self.running(cpus=60)
        path = "output/%d/1?offset=" % job
        node.attempts[0].update(phase="ended", end="failed", exit_code=3, output_bytes=4)
        node.sync()
        self.assertEqual(node.call(path + "4", b"late\n")[1], {"size": 9})
        self.d.kill()
        with contextlib.closing(sqlite3.connect(os.path.join(self.d.state, "belay.db"))) as db:
            db.execute("UPDATE attempts SET ended_at = ended_at - 3600000 WHERE job = ?", (job,))
            db.commit()
        self.d.start()
        status, body, _ = node.call(path + "9", b"forged\n")
        self.assertEqual(status, 404, body)
        self.assertIn("its output is closed", body["error"]["text"])
        self.assertEqual(self.log(job), b"one\nlate\n")


if __name__ == "__main__":
    unittest.main()
