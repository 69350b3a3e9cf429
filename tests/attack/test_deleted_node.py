# SPDX-License-Identifier: Apache-2.0
"""A machine that was deleted from the cluster keeps its certificate and continues to use it: every
agent route answers that the node is gone, and no job changes. The certificate of an existing node
writes only for its own attempts."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
from belayd import Belayd, Keys  # noqa: E402

GONE = "no longer belongs to this cluster"


class DeletedNode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.d = Belayd()
        cls.d.start()
        cls.keys = Keys(cls.d)

    @classmethod
    def tearDownClass(cls):
        cls.d.__exit__(None, None, None)

    def joined(self, cpus):
        key = self.keys.key()
        status, body, _ = self.d.call(
            "POST",
            "/agent/v1/join",
            {
                "token": self.d.token(kind="join", pool="spare"),
                "csr_pem": self.keys.request(key),
                "host": "n",
                "version": "1",
                "cpus": cpus,
                "memory_mib": 100,
            },
            tls=True,
        )
        self.assertEqual(status, 200, body)
        return body["node"], (self.keys.save(body["cert_pem"]), key)

    def post(self, cert, path, body=b""):
        return self.d.call("POST", "/agent/v1/" + path, body, cert=cert)

    def sync(self, cert, seq, **more):
        return self.post(cert, "sync", {"incarnation": 1, "seq": seq, "notice": {}, **more})

    def running(self, cpus):
        """A node with a job that has written four bytes: its number, its certificate, the job."""
        node, cert = self.joined(cpus)
        rev = self.sync(cert, 1)[1]["rev"]
        job = self.d.submit(cpus=cpus, pool="spare")
        desired = self.sync(cert, 2, have_rev=rev, wait_ms=20000)[1]
        self.assertEqual([a["job"] for a in desired["attempts"]], [job])
        self.sync(
            cert, 3, attempts=[{"job": job, "attempt": 1, "phase": "running", "started_at": 1}]
        )
        self.assertEqual(
            self.post(cert, "output/%d/1?offset=0" % job, b"one\n")[:2], (200, {"size": 4})
        )
        return node, cert, job

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
        node, cert, job = self.running(cpus=70)
        self.sync(
            cert,
            4,
            attempts=[
                {
                    "job": job,
                    "attempt": 1,
                    "phase": "ended",
                    "started_at": 1,
                    "end": "failed",
                    "exit_code": 3,
                    "output_bytes": 4,
                }
            ],
        )
        status, body, _ = self.d.call("POST", "/api/v1/nodes/%d/delete" % node)
        self.assertEqual(status, 200, body)
        status, body, _ = self.post(cert, "output/%d/1?offset=4" % job, b"forged\n")
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
        status, body, _ = self.sync(cert, 9, attempts=[ended], tails=[tail])
        self.assertEqual((status, body["error"]["kind"]), (404, "not-found"), body)
        for method, path, need in self.routes():
            path = path.replace("#", str(job), 1).replace("#", "1")
            with self.subTest(path):
                status, body, _ = self.d.call(method, "/agent/v1/" + path, b"{}", cert=cert)
                self.assertEqual(status, 401 if need == "MACHINE" else 404, body)
        self.assertEqual(self.log(job), b"one\n")
        self.assertEqual(self.d.call("GET", "/api/v1/jobs/%d" % job)[1]["job"]["exit_code"], 3)

    def test_a_node_that_lives_does_not_write_for_attempts_of_others(self):
        _, cert, job = self.running(cpus=80)
        _, stranger = self.joined(cpus=1)
        status, body, _ = self.post(stranger, "output/%d/1?offset=4" % job, b"forged\n")
        self.assertEqual((status, body["error"]["kind"]), (403, "denied"), body)
        self.assertEqual(self.post(cert, "output/%d/1?offset=4" % job, b"two\n")[1], {"size": 8})
        self.assertEqual(self.log(job), b"one\ntwo\n")


if __name__ == "__main__":
    unittest.main()
